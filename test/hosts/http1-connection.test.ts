import { afterEach, expect, test } from "bun:test";
import { Arrivals } from "../../src/hosts/http1/arrivals.ts";
import { HostConnection, type Tenant } from "../../src/hosts/http1/connection.ts";
import { endpointOf } from "../../src/hosts/http1/endpoint.ts";
import { Http1Exchange } from "../../src/hosts/http1/exchange.ts";
import { Pool } from "../../src/hosts/http1/pool.ts";
import { encodeRequest, headStart } from "../../src/hosts/http1/request.ts";
import { HostFault } from "../../src/hosts/transport.ts";
import { after, closeBeforeHead, head, json } from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { gate } from "../fakes/gate.ts";
import { type Behaviour, type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import { bodyOf, post } from "./exchange.ts";

/** No clock of these tests moves, so an exchange that is not ended waits for ever. */
let host: FakeHost;

afterEach(() => host.close());

class FaultAtBytes extends Http1Exchange {
  override received(): void {
    throw new Error("a fault of ours");
  }
}

class FaultInsideBody extends Http1Exchange {
  override received(bytes: Uint8Array): void {
    super.received(bytes);
    if (this.reads++ > 0) throw new Error("a fault of ours");
  }
  private reads = 0;
}

class FaultAtEnd extends Http1Exchange {
  override lost(): void {
    throw new Error("a fault of ours");
  }
}

async function poolTo(script: Behaviour[]) {
  host = await startFakeHost((_request, n) => script[n]!);
  const faults: unknown[] = [];
  const limits = { connectTimeoutMs: 1000, idleTimeoutMs: 1000, maxIdle: 10, maxSockets: 10 };
  const endpoint = endpointOf(hostRow(host));
  const noted = (error: unknown) => void faults.push(error);
  const pool = new Pool(endpoint, limits, null, new ManualClock(), new Arrivals(), noted);
  const started = (Kind: typeof Http1Exchange) => {
    const call = post(hostRow(host));
    const exchange = new Kind(encodeRequest(call, headStart(call.to, endpoint)), new ManualClock());
    exchange.begin(pool, false);
    return exchange;
  };
  return { pool, faults, started };
}

const answered = async (exchange: Http1Exchange) => {
  const reply = await exchange.reply;
  return reply instanceof HostFault ? reply.kind : bodyOf(reply);
};

const AT_ONCE = {
  "at its bytes": [FaultAtBytes, json({})],
  "at its end": [FaultAtEnd, closeBeforeHead()],
} as const;

for (const [where, [Kind, behaviour]] of Object.entries(AT_ONCE)) {
  test(`an exchange that fails ${where} ends at once, is reported, and keeps nothing from the others`, async () => {
    const all = gate();
    const good = after(all.passed, json({ ok: true }));
    const { pool, faults, started } = await poolTo([good, after(all.passed, behaviour), good]);
    const kinds = [Http1Exchange, Kind, Http1Exchange];
    const exchanges = kinds.map(started);
    while (host.requests.length < kinds.length) await new Promise((next) => setImmediate(next));
    all.open();
    const whole = { text: '{"ok":true}', fault: null };
    expect(await Promise.all(exchanges.map(answered))).toEqual([whole, "internal", whole]);
    expect(faults.map(String)).toEqual(["Error: a fault of ours"]);
    pool.close();
    expect(pool.vacant).toBe(true);
  });
}

test("an exchange that fails inside its body gives what it had read, and then the fault", async () => {
  const rest = gate();
  const twoParts: Behaviour = async (wire) => {
    await wire.write(`${head(200, { "content-length": "6" })}one`);
    await rest.passed;
    await wire.write("two");
  };
  const { pool, faults, started } = await poolTo([twoParts]);
  const exchange = started(FaultInsideBody);
  const reply = await exchange.reply;
  rest.open();
  if (reply instanceof HostFault) throw new Error(reply.message);
  expect((await bodyOf(reply)).fault).toBe("internal");
  expect(faults).toHaveLength(1);
  expect(pool.vacant).toBe(true);
});

test("bytes that come twice within a turn of the event loop reach their reader in order", async () => {
  host = await startFakeHost(() => json({}));
  const endpoint = endpointOf(hostRow(host));
  const received: string[] = [];
  const tenant = {
    takeRequest: () => [new Uint8Array(1)],
    received: (bytes: Uint8Array) => void received.push(new TextDecoder().decode(bytes)),
  } as unknown as Tenant;
  const connection = new HostConnection({} as never, endpoint, new Arrivals(), tenant);
  const socket = { write: () => 1, setNoDelay() {}, setKeepAlive() {} };
  connection.connected(socket as never);
  for (const part of ["1", "2", "3"]) connection.received(new TextEncoder().encode(part));
  await new Promise((next) => setImmediate(next));
  expect(received).toEqual(["1", "2", "3"]);
});
