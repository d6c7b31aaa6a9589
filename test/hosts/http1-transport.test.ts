import { afterEach, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import net from "node:net";
import zlib from "node:zlib";
import { type Http1Options, Http1Transport } from "../../src/hosts/http1/transport.ts";
import { HostFault, type HostReply, type Transport } from "../../src/hosts/transport.ts";
import {
  after,
  chunk,
  closeAfterHead,
  closeBeforeHead,
  closeInsideHead,
  drip,
  emptyOk,
  head,
  headThenSilence,
  json,
  raw,
  resetAfterHead,
  resetBeforeHead,
  silence,
  sse,
  status,
  truncatedLength,
} from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import {
  type Behaviour,
  type FakeHost,
  hostRow,
  REFUSED_PORT,
  type Script,
  startFakeHost,
} from "../fakes/host.ts";
import { chatText, sseText } from "../fakes/transcripts.ts";
import { bodyOf, exchanged, faultOf, nextText, post, replyTo } from "./exchange.ts";

const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function fake(script: Script | Behaviour[]): Promise<FakeHost> {
  const choose: Script = Array.isArray(script) ? (_request, n) => script[n] ?? status(500) : script;
  const host = await startFakeHost(choose);
  opened.push(host);
  return host;
}

function transportOf(options: Partial<Http1Options> = {}): Transport {
  const transport = new Http1Transport({ clock: new ManualClock(), onFault: console.error, ...options });
  opened.push(transport);
  return transport;
}

const ok = json({ ok: true });
const EVENTS = chatText(["one", " two", " three"]).events;

describe("a request", () => {
  test("goes out once, framed by the transport alone", async () => {
    const host = await fake([ok]);
    await exchanged(
      transportOf(),
      post(hostRow(host), {
        headers: {
          authorization: "Bearer secret",
          "x-anything": "caf\xe9",
          host: "elsewhere.example",
          "content-length": "1",
          connection: "close",
          "transfer-encoding": "chunked",
          "accept-encoding": "br",
          expect: "100-continue",
        },
        body: [new TextEncoder().encode('{"a":"ä"}')],
      }),
    );
    const request = host.requests[0]!;
    expect([request.method, request.path, request.text()]).toEqual([
      "POST",
      "/v1/chat/completions",
      '{"a":"ä"}',
    ]);
    expect(request.headers).toEqual({
      host: `127.0.0.1:${host.port}`,
      connection: "keep-alive",
      "accept-encoding": "identity",
      authorization: "Bearer secret",
      "x-anything": "caf\xe9",
      "content-length": "10",
    });
  });

  const TARGETS: [base: string, path: string, target: string][] = [
    ["", "/messages", "/messages"],
    ["/", "/messages", "/messages"],
    ["/openai/v1", "/responses", "/openai/v1/responses"],
    ["/v1?api-version=2024-10-21", "/responses", "/v1/responses?api-version=2024-10-21"],
    ["/v1?api-version=2024-10-21", "/messages?beta=true", "/v1/messages?beta=true&api-version=2024-10-21"],
  ];
  for (const [base, path, target] of TARGETS) {
    test(`to a base address ending in "${base}" and ${path} asks for ${target}`, async () => {
      const host = await fake([ok]);
      await exchanged(transportOf(), post(hostRow(host, { baseUrl: host.url + base }), { path }));
      expect(host.requests[0]!.path).toBe(target);
    });
  }

  test("without a body says so, or says nothing for GET", async () => {
    const host = await fake([ok, ok]);
    const transport = transportOf();
    await exchanged(transport, post(hostRow(host), { body: null }));
    await exchanged(transport, post(hostRow(host), { body: null, method: "GET", path: "/models" }));
    expect(host.requests.map(({ method, headers }) => [method, headers["content-length"]])).toEqual([
      ["POST", "0"],
      ["GET", undefined],
    ]);
  });

  test("says what all requests to its destination say, and its own in addition", async () => {
    const host = await fake([ok, ok]);
    const transport = transportOf();
    const { to } = post(hostRow(host));
    const destination = { ...to, headers: { authorization: "Bearer secret", "x-tenant": "one", te: "no" } };
    for (const headers of [{ authorization: "Bearer stolen", "x-own": "first" }, { "user-agent": "second" }])
      await exchanged(transport, { to: destination, headers, body: null });
    const framed = {
      host: `127.0.0.1:${host.port}`,
      connection: "keep-alive",
      "accept-encoding": "identity",
      "content-length": "0",
    };
    const all = { ...framed, authorization: "Bearer secret", "x-tenant": "one" };
    expect(host.requests.map(({ headers }) => headers)).toEqual([
      { ...all, "x-own": "first" },
      { ...all, "user-agent": "second" },
    ]);
  });

  test("that would smuggle a line break is never sent", async () => {
    const host = await fake([ok]);
    const transport = transportOf();
    const row = hostRow(host);
    for (const call of [
      post(row, { headers: { "x-a": "b\r\nx-c: d" } }),
      post(row, { headers: { "x-a": "b\nx-c: d" } }),
      post(row, { headers: { "x-a": "b\0" } }),
      post(row, { headers: { "x-a\r\nx-c": "b" } }),
      post(row, { headers: { "x a": "b" } }),
      post(row, { headers: { "x-a": "snow \u2603" } }),
      post(row, { path: "/a b" }),
      post(row, { path: "/a HTTP/1.1\r\nx: y" }),
    ]) {
      expect(() => transport.open(call)).toThrow();
      const { to, headers, body } = call;
      const standing = { to: { ...to, headers }, headers: {}, body };
      expect(() => transport.open(standing)).toThrow();
      // Nor when it is tried again.
      expect(() => transport.open(standing)).toThrow();
    }
    expect(host.connections).toBe(0);
  });

  test("of 24 MB arrives whole at a host that is slow to take it", async () => {
    const host = await fake((request) =>
      json({ sha: createHash("sha256").update(request.body).digest("hex") }),
    );
    const body = randomBytes(24 * 1024 * 1024);
    const answer = JSON.parse(await exchanged(transportOf(), post(hostRow(host), { body: [body] })));
    expect(answer.sha).toBe(createHash("sha256").update(body).digest("hex"));
  });

  const SIZES: readonly (readonly number[])[] = [
    [0],
    [1, 60_000, 0, 2],
    [10, 5, 70_000],
    [70_000, 1, 16_384, 1, 16_385],
    [1, 3_000_000, 1, 1, 3_000_000, 1],
  ];
  test.each(SIZES)("in parts arrives as one: %p …", async (...sizes) => {
    const host = await fake((request) =>
      json({ sha: createHash("sha256").update(request.body).digest("hex") }),
    );
    const body = sizes.map((size) => randomBytes(size));
    const answer = JSON.parse(await exchanged(transportOf(), post(hostRow(host), { body })));
    expect(answer.sha).toBe(createHash("sha256").update(Buffer.concat(body)).digest("hex"));
    const { headers } = host.requests[0]!;
    expect(headers["content-length"]).toBe(String(Buffer.concat(body).length));
  });

  test("that is answered before it was sent whole gets its answer, and its socket is not used again", async () => {
    const gone = gate();
    const server = net.createServer((socket) => {
      socket.pause();
      socket.on("error", () => {});
      socket.on("close", () => gone.open());
      socket.write(`${head(413, { "content-length": "3" })}big`);
      // To notice the reset.
      setImmediate(() => socket.resume());
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    opened.push(server);
    const row = hostRow({ url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}` });
    const reply = await replyTo(transportOf(), post(row, { body: [new Uint8Array(64 * 1024 * 1024)] }));
    expect([reply.status, await bodyOf(reply)]).toEqual([413, { text: "big", fault: null }]);
    await gone.passed;
  });

  test("is not sent on to where a redirect points", async () => {
    const host = await fake([status(307, { location: "/elsewhere" })]);
    const reply = await replyTo(transportOf(), post(hostRow(host)));
    expect([reply.status, reply.headers.get("location"), host.requests.length]).toEqual([
      307,
      "/elsewhere",
      1,
    ]);
  });
});

describe("an answer", () => {
  test("streams: each event can be read as soon as the host has sent it", async () => {
    const gates = EVENTS.map(() => gate());
    const host = await fake([sse(EVENTS, { before: (n) => gates[n]?.passed })]);
    const reply = await replyTo(transportOf(), post(hostRow(host)));
    for (const [n, event] of EVENTS.entries()) {
      gates[n]!.open();
      const text = sseText([event]);
      expect(await nextText(reply, text.length)).toBe(text);
    }
    expect(await reply.read()).toBeNull();
    expect(await reply.read()).toBeNull();
  });

  test("reads at once when bytes are waiting", async () => {
    const host = await fake([ok]);
    const reply = await replyTo(transportOf(), post(hostRow(host)));
    const first = await reply.read();
    expect(Buffer.from(first as Uint8Array).toString()).toBe('{"ok":true}');
    expect(reply.read()).toBeNull();
  });

  const ENDS: Record<string, Behaviour> = {
    "in chunks": sse(EVENTS),
    "by close": sse(EVENTS, { end: "close" }),
    "byte by byte": drip(sse(EVENTS)),
    "of a declared length": raw(
      `${head(200, { "content-length": `${sseText(EVENTS).length}` })}${sseText(EVENTS)}`,
    ),
  };
  for (const [how, behaviour] of Object.entries(ENDS)) {
    test(`${how} is read whole`, async () => {
      const host = await fake([behaviour]);
      expect(await exchanged(transportOf(), post(hostRow(host)))).toBe(sseText(EVENTS));
    });
  }

  test("that is empty ends at once", async () => {
    const host = await fake([emptyOk()]);
    expect(await exchanged(transportOf(), post(hostRow(host)))).toBe("");
  });

  test("that nobody reads stays with the host, and is whole when it is read", async () => {
    const size = 96 * 1024 * 1024;
    const piece = Buffer.alloc(64 * 1024, "x");
    let sent = 0;
    const flood: Behaviour = async (wire) => {
      await wire.write(head(200, { "content-length": `${size}` }));
      for (; sent < size; sent += piece.length) await wire.write(piece);
    };
    const host = await fake((_request, n) => (n === 0 ? flood : ok));
    const transport = transportOf();
    const reply = await replyTo(transport, post(hostRow(host)));
    // A hundred other exchanges are time enough to have swallowed it all.
    for (let n = 0; n < 100; n++) await exchanged(transport, post(hostRow(host)));
    expect(sent).toBeLessThan(size / 2);
    let length = 0;
    for (let next = await reply.read(); next !== null; next = await reply.read()) {
      if (next instanceof HostFault) throw new Error(next.message);
      length += next.length;
    }
    expect(length).toBe(size);
    expect(await exchanged(transport, post(hostRow(host)))).toBe('{"ok":true}');
    expect(host.connections).toBe(2);
  });
});

describe("a compressed answer", () => {
  for (const coding of ["gzip", "deflate", "br"] as const) {
    test(`in ${coding} streams event by event, and its socket is used again`, async () => {
      const gates = EVENTS.map(() => gate());
      const host = await fake([sse(EVENTS, { coding, before: (n) => gates[n]?.passed }), ok]);
      const transport = transportOf();
      const reply = await replyTo(transport, post(hostRow(host)));
      expect(reply.headers.has("content-encoding")).toBe(false);
      for (const [n, event] of EVENTS.entries()) {
        gates[n]!.open();
        const text = sseText([event]);
        expect(await nextText(reply, text.length)).toBe(text);
      }
      expect(await reply.read()).toBeNull();
      await exchanged(transport, post(hostRow(host)));
      expect(host.connections).toBe(1);
    });
  }

  const compressed =
    (body: Uint8Array, coding: string): Behaviour =>
    async (wire) => {
      await wire.write(head(200, { "content-encoding": coding, "content-length": `${body.length}` }));
      await wire.write(body);
    };
  const TEXT = "a body that was compressed ".repeat(1000);
  const BODIES: Record<string, { behaviour: Behaviour; text?: string; fault: string | null }> = {
    "gzip in one piece": { behaviour: compressed(zlib.gzipSync(TEXT), "GZIP"), text: TEXT, fault: null },
    "deflate without its header": {
      behaviour: compressed(zlib.deflateRawSync(TEXT), "deflate"),
      text: TEXT,
      fault: null,
    },
    zstd: { behaviour: compressed(zlib.zstdCompressSync(TEXT), "zstd"), text: TEXT, fault: null },
    identity: { behaviour: compressed(Buffer.from(TEXT), "identity"), text: TEXT, fault: null },
    "gzip dripping": { behaviour: drip(compressed(zlib.gzipSync(TEXT), "gzip")), text: TEXT, fault: null },
    "an empty gzip body": { behaviour: compressed(Buffer.alloc(0), "gzip"), text: "", fault: null },
    "gzip without its end": {
      behaviour: compressed(zlib.gzipSync(TEXT).subarray(0, -12), "gzip"),
      fault: "truncated",
    },
    "not gzip at all": { behaviour: compressed(Buffer.from(TEXT), "gzip"), fault: "malformed" },
    "an unknown coding": { behaviour: compressed(Buffer.from(TEXT), "lzma"), fault: "malformed" },
    "two codings": { behaviour: compressed(zlib.gzipSync(TEXT), "gzip, gzip"), fault: "malformed" },
    "gzip that the connection cuts": {
      behaviour: sse(EVENTS, { coding: "gzip", end: "cut" }),
      fault: "truncated",
    },
  };
  for (const [what, { behaviour, text, fault }] of Object.entries(BODIES)) {
    test(`${what}: ${fault ?? "read whole"}`, async () => {
      const host = await fake([behaviour]);
      const body = await bodyOf(await replyTo(transportOf(), post(hostRow(host))));
      expect(body.fault).toBe(fault);
      if (text !== undefined) expect(body.text).toBe(text);
    });
  }

  test("that swells a thousandfold is inflated no faster than it is read", async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(256 * 1024 * 1024));
    const host = await fake([compressed(bomb, "gzip")]);
    const exchange = transportOf().open(post(hostRow(host)));
    const reply = await exchange.reply;
    if (reply instanceof HostFault) throw new Error(reply.message);
    for (let n = 0; n < 10; n++)
      expect(((await reply.read()) as Uint8Array).length).toBeLessThanOrEqual(1024 * 1024);
    exchange.cancel();
    expect(await reply.read()).toMatchObject({ kind: "cancelled" });
  });
});

describe("sockets", () => {
  test("are used again, the last one first", async () => {
    const [a, b] = [gate(), gate()];
    const script = [after(a.passed, ok), after(b.passed, ok), ok, ok];
    const host = await fake(script);
    const transport = transportOf();
    const first = exchanged(transport, post(hostRow(host)));
    await host.arrived(0);
    const second = exchanged(transport, post(hostRow(host)));
    await host.arrived(1);
    a.open();
    await first;
    b.open();
    await second;
    await exchanged(transport, post(hostRow(host)));
    await exchanged(transport, post(hostRow(host)));
    expect(host.requests.map(({ connection }) => connection)).toEqual([0, 1, 1, 1]);
  });

  test("are shared by the rows of one origin", async () => {
    const host = await fake(() => ok);
    const transport = transportOf();
    for (const id of ["one", "two"]) {
      await exchanged(transport, post(hostRow(host, { id, baseUrl: `${host.url}/${id}` })));
    }
    expect(host.connections).toBe(1);
  });

  test("go back when the answer has arrived, read or not", async () => {
    const host = await fake(() => ok);
    const transport = transportOf();
    for (let n = 0; n < 3; n++) await replyTo(transport, post(hostRow(host)));
    expect(host.connections).toBe(1);
  });

  test("go back when the body ends after an answer that is over", async () => {
    const end = gate();
    const host = await fake([
      sse(EVENTS, { before: (n) => (n === EVENTS.length ? end.passed : undefined) }),
      ok,
      ok,
      ok,
    ]);
    const transport = transportOf();
    const exchange = transport.open(post(hostRow(host)));
    const reply = (await exchange.reply) as HostReply;
    await nextText(reply, sseText(EVENTS).length);
    exchange.done();
    end.open();
    expect(await reply.read()).toBeNull();
    await exchanged(transport, post(hostRow(host)));
    expect(host.connections).toBe(1);
  });

  test("are left when the body does not end within a second of an answer that is over", async () => {
    const host = await fake([headThenSilence()]);
    const clock = new ManualClock();
    const exchange = transportOf({ clock }).open(post(hostRow(host)));
    const reply = (await exchange.reply) as HostReply;
    exchange.done();
    clock.advance(999);
    expect(host.openConnections).toBe(1);
    clock.advance(1);
    expect(await reply.read()).toMatchObject({ kind: "cancelled" });
    await host.idle();
  });

  test("are left when a body goes on and on behind an answer that is over", async () => {
    const host = await fake([
      async (wire, request) => {
        await wire.write(head(200, { "transfer-encoding": "chunked" }));
        let isGone = false;
        void request.gone.then(() => {
          isGone = true;
        });
        while (!isGone) await wire.write(chunk("x".repeat(1_000)));
      },
    ]);
    const exchange = transportOf().open(post(hostRow(host)));
    await exchange.reply;
    exchange.done();
    await host.idle();
  });

  const ONCE: Record<string, Behaviour> = {
    "connection: close": json({}, 200, { connection: "close" }),
    "an answer that ends by close": sse([], { end: "close" }),
    "HTTP/1.0": raw("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"),
    "bytes after the answer": raw(`${head(200, { "content-length": "1" })}xy`),
    "a 408, which may be no answer to it": json({}, 408),
    "a keep-alive that has no second left": json({}, 200, { "keep-alive": "timeout=1" }),
  };
  for (const [what, behaviour] of Object.entries(ONCE)) {
    test(`are not used again after ${what}`, async () => {
      const host = await fake([behaviour, ok]);
      const transport = transportOf();
      await exchanged(transport, post(hostRow(host)));
      await host.idle();
      await exchanged(transport, post(hostRow(host)));
      expect(host.connections).toBe(2);
    });
  }

  test("that the host closes while they are idle are never used", async () => {
    for (const how of ["close", "reset"] as const) {
      const host = await fake(() => ok);
      const transport = transportOf();
      await exchanged(transport, post(hostRow(host)));
      host.dropConnections(how);
      await host.idle();
      await turns(10);
      await exchanged(transport, post(hostRow(host)));
      expect(host.connections).toBe(2);
    }
  });

  test("that speak unasked while they are idle are thrown away", async () => {
    const unasked = gate();
    const host = await fake([
      async (wire, request) => {
        await ok(wire, request);
        await unasked.passed;
        await wire.write("HTTP/1.1 408 Request Timeout\r\n\r\n");
      },
      ok,
    ]);
    const transport = transportOf();
    await exchanged(transport, post(hostRow(host)));
    unasked.open();
    await host.idle();
    await exchanged(transport, post(hostRow(host)));
    expect(host.connections).toBe(2);
  });

  test("are let go after 4 idle seconds, or a second before the host's own time", async () => {
    for (const [headers, keptMs] of [
      [{}, 4000],
      [{ "keep-alive": "timeout=15" }, 14_000],
      [{ "keep-alive": "timeout=100000" }, 60_000],
    ] as const) {
      const clock = new ManualClock();
      const host = await fake(() => json({}, 200, headers));
      const transport = transportOf({ clock });
      await exchanged(transport, post(hostRow(host)));
      clock.advance(keptMs - 1);
      await exchanged(transport, post(hostRow(host)));
      expect(host.connections).toBe(1);
      clock.advance(keptMs);
      await exchanged(transport, post(hostRow(host)));
      expect(host.connections).toBe(2);
      clock.advance(keptMs + 1000);
      await host.idle();
      expect(clock.pending).toBe(0);
    }
  });

  test("are kept idle up to a bound", async () => {
    const all = gate();
    const host = await fake(() => after(all.passed, ok));
    const transport = transportOf({ maxIdlePerOrigin: 2 });
    const wave = Array.from({ length: 5 }, () => exchanged(transport, post(hostRow(host))));
    await host.arrived(4);
    all.open();
    await Promise.all(wave);
    await Promise.all(Array.from({ length: 5 }, () => exchanged(transport, post(hostRow(host)))));
    expect(host.connections).toBe(8);
  });

  test("above the origin's bound are refused until one is free", async () => {
    const go = gate();
    const host = await fake(() => after(go.passed, ok));
    const transport = transportOf({ maxSocketsPerOrigin: 2 });
    const wave = [0, 1].map(() => exchanged(transport, post(hostRow(host))));
    expect(await faultOf(transport, post(hostRow(host)))).toMatchObject({ kind: "refused" });
    go.open();
    await Promise.all(wave);
    expect(await exchanged(transport, post(hostRow(host)))).toBe('{"ok":true}');
  });

  test("count against the bound only while they are open, however they end", async () => {
    const ends = [
      ok,
      resetBeforeHead(),
      truncatedLength({ a: 1 }),
      json({}, 200, { connection: "close" }),
      silence(),
    ];
    const host = await fake((_request, n) => ends[n] ?? ok);
    const transport = transportOf({ maxSocketsPerOrigin: 1 });
    const row = hostRow(host);
    for (let n = 0; n < ends.length; n++) {
      const exchange = transport.open(post(row));
      const request = await host.arrived(n);
      if (n === 4) exchange.cancel();
      const reply = await exchange.reply;
      if (!(reply instanceof HostFault)) await bodyOf(reply);
      if (n > 0) await request.gone;
    }
    // Cancelled while it is dialled: it counts until the dial has ended.
    transport.open(post(row)).cancel();
    let refusals = 0;
    while ((await transport.open(post(row)).reply) instanceof HostFault) {
      expect(++refusals).toBeLessThan(1000);
      await turns(1);
    }
  });

  test("close with the transport: idle ones now, the others when they are done", async () => {
    const go = gate();
    const host = await fake([ok, after(go.passed, ok), ok]);
    const transport = transportOf();
    const row = hostRow(host);
    await exchanged(transport, post(row));
    const inUse = exchanged(transport, post(row));
    await host.arrived(1);
    transport.close();
    go.open();
    expect(await inUse).toBe('{"ok":true}');
    await host.idle();
  });
});

describe("a fault", () => {
  const BEFORE_THE_HEAD: Record<string, { behaviour: Behaviour; kind: string }> = {
    "a reset": { behaviour: resetBeforeHead(), kind: "reset" },
    "a close": { behaviour: closeBeforeHead(), kind: "reset" },
    "a close inside the head": { behaviour: closeInsideHead(), kind: "reset" },
    "another protocol": { behaviour: raw("220 mail.example ESMTP\r\n"), kind: "malformed" },
    "two lengths": {
      behaviour: raw(`${head(200, { "content-length": "1" }).slice(0, -2)}content-length: 2\r\n\r\nx`),
      kind: "malformed",
    },
  };
  for (const [what, { behaviour, kind }] of Object.entries(BEFORE_THE_HEAD)) {
    test(`before the head, by ${what}, is the reply: ${kind}`, async () => {
      const host = await fake([behaviour]);
      expect(await faultOf(transportOf(), post(hostRow(host)))).toMatchObject({ kind, stale: false });
      await host.idle();
    });
  }

  const INSIDE_THE_BODY: Record<string, { behaviour: Behaviour; text: string; fault: string }> = {
    "a close after the head": { behaviour: closeAfterHead(), text: "", fault: "truncated" },
    "a reset after the head": { behaviour: resetAfterHead(), text: "", fault: "truncated" },
    "a close between events": {
      behaviour: sse(EVENTS, { end: "cut" }),
      text: sseText(EVENTS),
      fault: "truncated",
    },
    "a close inside a chunk": {
      behaviour: sse(EVENTS, { end: "cut inside a chunk" }),
      text: `${sseText(EVENTS)}data: half an event`,
      fault: "truncated",
    },
    "fewer bytes than declared": {
      behaviour: truncatedLength({ ok: true }, 4),
      text: '{"ok":t',
      fault: "truncated",
    },
    "a broken chunk": {
      behaviour: raw(`${head(200, { "transfer-encoding": "chunked" })}3\r\nabc\r\nzz\r\n`),
      text: "abc",
      fault: "malformed",
    },
  };
  for (const [what, { behaviour, text, fault }] of Object.entries(INSIDE_THE_BODY)) {
    test(`inside the body, by ${what}, comes after the bytes before it: ${fault}`, async () => {
      const host = await fake([behaviour]);
      const reply = await replyTo(transportOf(), post(hostRow(host)));
      expect(await bodyOf(reply)).toEqual({ text, fault });
      expect(await reply.read()).toMatchObject({ kind: fault });
      await host.idle();
    });
  }

  test("of a host that is not there: refused", async () => {
    const port = REFUSED_PORT;
    const fault = await faultOf(transportOf(), post(hostRow({ url: `http://127.0.0.1:${port}` })));
    expect(fault).toMatchObject({ kind: "refused", stale: false });
    expect(fault.message).toBe("No connection: ECONNREFUSED.");
  });

  test("of a name that has no address: dns", async () => {
    expect(await faultOf(transportOf(), post(hostRow({ url: "http://no-such-host.invalid" })))).toMatchObject(
      { kind: "dns" },
    );
  });

  test("of a pooled socket that breaks before any byte is stale, and a fresh one answers", async () => {
    for (const breaks of [resetBeforeHead(), closeBeforeHead()]) {
      const host = await fake([ok, breaks, ok]);
      const transport = transportOf();
      await exchanged(transport, post(hostRow(host)));
      expect(await faultOf(transport, post(hostRow(host)))).toMatchObject({ kind: "reset", stale: true });
      expect(await exchanged(transport, post(hostRow(host), { fresh: true }))).toBe('{"ok":true}');
      expect(host.requests.map(({ connection }) => connection)).toEqual([0, 0, 1]);
    }
  });

  test("of a pooled socket that breaks inside its head is not stale: the host saw the request", async () => {
    const host = await fake([ok, closeInsideHead()]);
    const transport = transportOf();
    await exchanged(transport, post(hostRow(host)));
    expect(await faultOf(transport, post(hostRow(host)))).toMatchObject({ kind: "reset", stale: false });
  });

  test("a fresh request leaves pooled sockets alone", async () => {
    const host = await fake(() => ok);
    const transport = transportOf();
    await exchanged(transport, post(hostRow(host)));
    await exchanged(transport, post(hostRow(host), { fresh: true }));
    expect(host.connections).toBe(2);
  });
});

describe("cancelling", () => {
  const MOMENTS: Record<string, Behaviour> = {
    "before the head": silence(),
    "before the body": headThenSilence(),
    "inside the body": raw(`${head(200, { "transfer-encoding": "chunked" })}${chunk("data: 1\n\n")}`),
  };
  for (const [moment, behaviour] of Object.entries(MOMENTS)) {
    test(`${moment} tells the host at once`, async () => {
      const host = await fake([behaviour]);
      const exchange = transportOf().open(post(hostRow(host)));
      const request = await host.arrived(0);
      const reading = moment === "before the head" ? null : exchange.reply;
      const reply = await reading;
      const pending = reply === null || reply instanceof HostFault ? null : reply.read();
      if (moment === "inside the body") await pending;
      exchange.cancel();
      await request.gone;
      if (reply === null) expect(await exchange.reply).toMatchObject({ kind: "cancelled" });
      else if (!(reply instanceof HostFault)) {
        if (moment === "before the body") expect(await pending).toMatchObject({ kind: "cancelled" });
        expect(await reply.read()).toMatchObject({ kind: "cancelled" });
      }
      exchange.cancel();
      await host.idle();
    });
  }

  test("drops what has arrived and was not read", async () => {
    const more = gate();
    const host = await fake([sse(EVENTS, { before: (n) => (n === 2 ? more.passed : undefined) })]);
    const exchange = transportOf().open(post(hostRow(host)));
    const reply = await exchange.reply;
    exchange.cancel();
    expect(await (reply as { read(): unknown }).read()).toMatchObject({ kind: "cancelled" });
    await host.idle();
  });

  test("while it is being dialled leaves no socket behind", async () => {
    const host = await fake([ok]);
    const clock = new ManualClock();
    const exchange = transportOf({ clock }).open(post(hostRow(host)));
    exchange.cancel();
    expect(await exchange.reply).toMatchObject({ kind: "cancelled" });
    expect(clock.pending).toBe(0);
    await exchanged(transportOf(), post(hostRow(host)));
    expect(host.requests.length).toBe(1);
  });

  test("after the end changes nothing, and the socket is used again", async () => {
    const host = await fake(() => ok);
    const transport = transportOf();
    const exchange = transport.open(post(hostRow(host)));
    const reply = await exchange.reply;
    if (reply instanceof HostFault) throw new Error(reply.message);
    await bodyOf(reply);
    exchange.cancel();
    expect(reply.read()).toBeNull();
    await exchanged(transport, post(hostRow(host)));
    expect(host.connections).toBe(1);
  });
});

test("four hundred exchanges at once leave no socket and no timer behind", async () => {
  const host = await fake(
    (_request, n) =>
      [ok, sse(EVENTS), resetBeforeHead(), truncatedLength({ a: 1 }), sse(EVENTS, { end: "reset" })][n % 5]!,
  );
  const clock = new ManualClock();
  const transport = transportOf({ clock });
  const row = hostRow(host);
  await Promise.all(
    Array.from({ length: 400 }, async (_, n) => {
      const exchange = transport.open(post(row));
      if (n % 7 === 0) exchange.cancel();
      const reply = await exchange.reply;
      if (!(reply instanceof HostFault)) await bodyOf(reply);
    }),
  );
  transport.close();
  await host.idle();
  expect([host.openConnections, clock.pending]).toEqual([0, 0]);
});

/** Lets the event loop take in what has arrived meanwhile. */
async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise(setImmediate);
}
