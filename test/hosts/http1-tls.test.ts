import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import net from "node:net";
import { type Http1Options, Http1Transport } from "../../src/hosts/http1/transport.ts";
import type { Transport } from "../../src/hosts/transport.ts";
import { head, json, raw, resetBeforeHead, sse } from "../fakes/behaviours.ts";
import { makeAuthority } from "../fakes/certificates.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import { type FakeHost, type FakeTls, hostRow, type Script, startFakeHost } from "../fakes/host.ts";
import { chatText, sseText } from "../fakes/transcripts.ts";
import { exchanged, faultOf, post, replyTo } from "./exchange.ts";

const opened: { close(): unknown }[] = [];

const authority = makeAuthority();
const trusted = authority.issue("DNS:localhost,IP:127.0.0.1");
afterAll(() => authority.remove());
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function fake(tls: FakeTls, script: Script = () => json({ ok: true })): Promise<FakeHost> {
  const host = await startFakeHost(script, tls);
  opened.push(host);
  return host;
}

function transportOf(options: Partial<Http1Options> = {}): Transport {
  const transport = new Http1Transport({
    clock: new ManualClock(),
    onFault: console.error,
    ca: authority.ca,
    ...options,
  });
  opened.push(transport);
  return transport;
}

const named = (host: FakeHost): { url: string } => ({ url: `https://localhost:${host.port}` });

describe("a host's certificate", () => {
  test("is accepted for its name and for its address", async () => {
    const host = await fake(trusted);
    const transport = transportOf();
    expect(await exchanged(transport, post(hostRow(named(host))))).toBe('{"ok":true}');
    expect(await exchanged(transport, post(hostRow(host)))).toBe('{"ok":true}');
  });

  test("is refused when nobody we trust signed it, and the request is never sent", async () => {
    const host = await fake(trusted);
    const transport = new Http1Transport({ clock: new ManualClock(), onFault: console.error });
    opened.push(transport);
    expect(await faultOf(transport, post(hostRow(named(host))))).toMatchObject({ kind: "tls" });
    await host.idle();
    expect(host.requests.length).toBe(0);
  });

  const OTHERS: Record<string, () => FakeTls> = {
    "for another name": () => authority.issue("DNS:other.example"),
    "for a name that only begins like it": () => authority.issue("DNS:localhost.example"),
    "for an address and not for the name": () => authority.issue("IP:127.0.0.1"),
    "that has expired": () => authority.issue("DNS:localhost", "expired"),
  };
  for (const [what, issue] of Object.entries(OTHERS)) {
    test(`${what} is refused, and the request is never sent`, async () => {
      const host = await fake(issue());
      expect(await faultOf(transportOf(), post(hostRow(named(host))))).toMatchObject({ kind: "tls" });
      await host.idle();
      expect(host.requests.length).toBe(0);
    });
  }

  test("for the name and not for the address is refused by address", async () => {
    const host = await fake(authority.issue("DNS:localhost"));
    expect(await faultOf(transportOf(), post(hostRow(host)))).toMatchObject({ kind: "tls" });
  });
});

describe("over TLS", () => {
  test("a stream and the next request share a socket", async () => {
    const { events } = chatText();
    const host = await fake(trusted, () => sse(events));
    const transport = transportOf();
    for (let n = 0; n < 3; n++) {
      expect(await exchanged(transport, post(hostRow(named(host))))).toBe(sseText(events));
    }
    expect(host.connections).toBe(1);
  });

  test("idle sockets close with the transport", async () => {
    const host = await fake(trusted);
    const transport = transportOf();
    await exchanged(transport, post(hostRow(named(host))));
    transport.close();
    await host.idle();
  });

  test("24 MB go out whole", async () => {
    const host = await fake(trusted, (request) =>
      json({ sha: createHash("sha256").update(request.body).digest("hex") }),
    );
    const body = randomBytes(24 * 1024 * 1024);
    const answer = JSON.parse(await exchanged(transportOf(), post(hostRow(named(host)), { body: [body] })));
    expect(answer.sha).toBe(createHash("sha256").update(body).digest("hex"));
  });

  test("an answer that nobody reads stays with the host, and is whole when it is read", async () => {
    const size = 96 * 1024 * 1024;
    const piece = Buffer.alloc(64 * 1024, "x");
    let sent = 0;
    const host = await fake(trusted, (_request, n) =>
      n > 0
        ? json({})
        : async (wire) => {
            await wire.write(head(200, { "content-length": `${size}` }));
            for (; sent < size; sent += piece.length) await wire.write(piece);
          },
    );
    const transport = transportOf();
    const reply = await replyTo(transport, post(hostRow(named(host))));
    for (let n = 0; n < 100; n++) await exchanged(transport, post(hostRow(named(host))));
    expect(sent).toBeLessThan(size / 2);
    let length = 0;
    for (let next = await reply.read(); next instanceof Uint8Array; next = await reply.read())
      length += next.length;
    expect(length).toBe(size);
  });

  test("a pooled socket that breaks is stale", async () => {
    const host = await fake(trusted, (_request, n) =>
      n === 1 ? resetBeforeHead() : raw(head(200, { "content-length": "0" })),
    );
    const transport = transportOf();
    await exchanged(transport, post(hostRow(named(host))));
    expect(await faultOf(transport, post(hostRow(named(host))))).toMatchObject({
      kind: "reset",
      stale: true,
    });
  });
});

describe("a handshake that fails", () => {
  /** A server that does this with the first bytes of each connection. */
  async function server(act: (socket: net.Socket) => void): Promise<{ url: string; gone: Promise<void> }> {
    const gone = gate();
    const listener = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.on("close", () => gone.open());
      socket.once("data", () => act(socket));
    });
    await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
    opened.push(listener);
    return { url: `https://localhost:${(listener.address() as net.AddressInfo).port}`, gone: gone.passed };
  }

  const ACTS: Record<string, (socket: net.Socket) => void> = {
    "a host that speaks plain HTTP": (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"),
    "a host that closes": (socket) => socket.end(),
    "a host that resets": (socket) => socket.resetAndDestroy(),
  };
  for (const [what, act] of Object.entries(ACTS)) {
    test(`${what}: tls`, async () => {
      expect(await faultOf(transportOf(), post(hostRow(await server(act))))).toMatchObject({ kind: "tls" });
    });
  }

  test("a host that says nothing: connect_timeout after 5 s, and the socket is freed", async () => {
    const clock = new ManualClock();
    const greeted = gate();
    const host = await server(() => greeted.open());
    const exchange = transportOf({ clock }).open(post(hostRow(host)));
    await greeted.passed;
    clock.advance(4999);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    expect(await exchange.reply).toMatchObject({ kind: "connect_timeout" });
    await host.gone;
    expect(clock.pending).toBe(0);
  });
});
