import { afterEach, describe, expect, test } from "bun:test";
import type { Holder } from "../../src/customers/keys/keyring.ts";
import type { GenerationAnswer, GenerationCall, Sink, StreamedAnswer } from "../../src/generation/answer.ts";
import { KEPT_MS, Repeats } from "../../src/generation/idempotency.ts";
import { SharedStream } from "../../src/generation/shared-stream.ts";
import { UnpaidRequests } from "../../src/ledger/limits/unpaid-allowance.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { untilNothingIsInUse } from "../fakes/nothing-in-use.ts";
import { Random } from "../sim/random.ts";

/** What repeats may keep in memory, and what becomes of those for which there is no room. */
class House {
  constructor() {
    houses.push(this);
  }

  readonly clock = new ManualClock();
  /** One for each call that was made; it writes as the test says. */
  readonly calls: FakeStream[] = [];
  /** What the next calls are answered with at once, in bytes. */
  wholeBytes: number | null = null;
  readonly poor = new Set<string>();
  readonly repeats = new Repeats({
    clock: this.clock,
    generate: async (): Promise<GenerationAnswer> => {
      const stream = new FakeStream(this.calls.length);
      this.calls.push(stream);
      if (this.wholeBytes === null) return stream;
      return { ...stream, kind: "whole", status: 200, body: new Uint8Array(this.wholeBytes) };
    },
    keyring: {
      identify: (secret) =>
        ({ key: { rotationId: secret }, balance: { id: secret, suspended: null } }) as unknown as Holder,
    },
    // As where the store has to be asked.
    spendable: { of: async (balance) => (this.poor.has(balance) ? 0 : 1) as NanoUsd },
    unpaidRequests: new UnpaidRequests(this.clock, { known: () => null }),
    peers: null,
  });

  send(key: string, more: Parameters<House["call"]>[1] = {}) {
    return this.repeats.answer("chat.completions", this.call(key, more));
  }

  call(key: string, { balance = "bal_one", body = "a", signal = new AbortController().signal } = {}) {
    const call: GenerationCall = {
      secret: balance,
      headers: new Headers({ "idempotency-key": key }),
      body: Buffer.from(body),
      blocks: () => ["192.0.2.0/24"],
      isUnpaid: false,
      signal,
    };
    return call;
  }

  async stream(key: string, more: Parameters<House["send"]>[1] = {}): Promise<StreamedAnswer> {
    const answer = await this.send(key, more);
    if (refused(answer) || answer.kind !== "stream") throw new Error("it is no stream");
    return answer;
  }

  /** The status, or what a refusal says. */
  async outcome(key: string, more: Parameters<House["send"]>[1] = {}): Promise<string> {
    const answer = await this.send(key, more);
    return refused(answer) ? answer.message : String(answer.status);
  }
}

const houses: House[] = [];
afterEach(async () => {
  for (const { calls, clock, repeats } of houses.splice(0)) {
    for (const call of calls) if (call.isRead) await call.end();
    clock.advance(KEPT_MS);
    await untilNothingIsInUse(() => Object.entries(repeats.inUse));
  }
});

class FakeStream implements StreamedAnswer {
  readonly kind = "stream";
  readonly status = 200;
  readonly headers: Record<string, string>;
  /** A whole answer is none. */
  isRead = false;
  private readonly started: Gate<Sink> = gate();
  private readonly ended = gate();

  constructor(n: number) {
    this.headers = { "x-gateway-receipt": `rcpt_${n}` };
  }

  run(sink: Sink): Promise<void> {
    this.isRead = true;
    this.started.open(sink);
    return this.ended.passed;
  }

  /** False once nobody is there. */
  async write(bytes: Uint8Array): Promise<boolean> {
    return (await this.started.passed).write(bytes);
  }

  async end(): Promise<void> {
    (await this.started.passed).close();
    this.ended.open();
    await turns();
  }
}

/** A client that takes bytes when the test lets it. */
class Client implements Sink {
  text = "";
  isClosed = false;
  private turn: Gate<boolean> | null = null;

  constructor(private isSlow = false) {}

  write(bytes: Uint8Array): boolean | Promise<boolean> {
    this.text += Buffer.from(bytes).toString("latin1");
    if (!this.isSlow) return true;
    this.turn = gate<boolean>();
    return this.turn.passed;
  }

  close(): void {
    this.isClosed = true;
  }

  go(isThere: boolean): void {
    this.isSlow = false;
    this.turn?.open(isThere);
  }
}

const turns = () => new Promise<void>((resolve) => setImmediate(resolve));
const MIB = 1024 * 1024;

test("an answer is kept for ten minutes after its end; then the key is new", async () => {
  const house = new House();
  house.wholeBytes = 10;
  await house.send("k");
  house.clock.advance(599_999);
  expect(await house.outcome("k", { body: "b" })).toContain("sent with another request");
  house.clock.advance(1);
  expect(await house.outcome("k", { body: "b" })).toBe("200");
  expect(house.calls).toHaveLength(2);
  house.repeats.stop();
  expect(house.clock.pending).toBe(0);
});

test("how long a stream takes is not counted", async () => {
  const house = new House();
  void (await house.stream("k")).run(new Client());
  house.clock.advance(3_600_000);
  await house.calls[0]!.end();
  expect(await house.outcome("k")).toBe("200");
  expect(house.calls).toHaveLength(1);
});

describe("a balance's answers", () => {
  test("push out its oldest, whose key then tells the receipt, and nobody else's", async () => {
    const house = new House();
    house.wholeBytes = 5 * MIB;
    await house.send("other", { balance: "bal_other" });
    for (const key of ["1", "2", "3", "4"]) await house.send(key);
    expect(await house.outcome("1")).toContain("no longer kept. What it cost is in receipt `rcpt_1`");
    for (const key of ["2", "3", "4"]) expect(await house.outcome(key)).toBe("200");
    expect(await house.outcome("other", { balance: "bal_other" })).toBe("200");
    expect(house.calls).toHaveLength(5);
  });

  test("are no more than 2,000, or 20 without credit, of which the oldest are forgotten", async () => {
    const house = new House();
    house.poor.add("bal_poor");
    house.wholeBytes = 1;
    for (let n = 0; n <= 2_000; n++) await house.send(`${n}`);
    for (let n = 0; n <= 20; n++) await house.send(`${n}`, { balance: "bal_poor" });
    const before = house.calls.length;
    await house.send("2000");
    await house.send("20", { balance: "bal_poor" });
    expect(house.calls).toHaveLength(before);
    await house.send("0");
    await house.send("0", { balance: "bal_poor" });
    expect(house.calls).toHaveLength(before + 2);
  });

  test("that have not ended are not forgotten: a further one is refused", async () => {
    const house = new House();
    house.poor.add("bal_poor");
    for (let n = 0; n < 20; n++) await house.stream(`${n}`, { balance: "bal_poor" });
    expect(await house.outcome("20", { balance: "bal_poor" })).toContain("Too many requests");
    await house.calls[0]!.end();
    expect(await house.outcome("20", { balance: "bal_poor" })).toBe("200");
  });

  test("of all together are 64 MiB, and those of who has no credit have 4 MiB of their own", async () => {
    const house = new House();
    house.wholeBytes = 200 * 1024;
    for (let n = 0; n < 30; n++) house.poor.add(`bal_poor_${n}`);
    await house.send("k", { balance: "bal_one" });
    for (const balance of house.poor) await house.send("k", { balance });
    expect(await house.outcome("k", { balance: "bal_poor_0" })).toContain("no longer kept");
    expect(await house.outcome("k", { balance: "bal_poor_29" })).toBe("200");
    expect(await house.outcome("k")).toBe("200");
    house.wholeBytes = 12 * MIB;
    for (let n = 0; n < 6; n++) await house.send("k", { balance: `bal_${n}` });
    expect(await house.outcome("k")).toContain("no longer kept");
    expect(await house.outcome("k", { balance: "bal_5" })).toBe("200");
  });

  test("too large to be kept is given to those that waited for it", async () => {
    const house = new House();
    house.wholeBytes = 17 * MIB;
    const outcomes = await Promise.all([house.outcome("k"), house.outcome("k"), house.outcome("k")]);
    expect(outcomes).toEqual(["200", "200", "200"]);
    expect(await house.outcome("k")).toContain("no longer kept");
    expect(house.calls).toHaveLength(1);
  });
});

describe("a stream for which there is no room", () => {
  const PIECE = "x".repeat(MIB);

  /** One that has filled all the room of its balance, and its client. */
  async function full(client = new Client()) {
    const house = new House();
    void (await house.stream("k")).run(client);
    for (let n = 0; n < 15; n++) expect(await house.calls[0]!.write(Buffer.from(PIECE))).toBe(true);
    await turns();
    return { house, client, stream: house.calls[0]! };
  }

  test("goes on to those that read it, and nobody else can begin", async () => {
    const { house, client, stream } = await full();
    for (let n = 0; n < 5; n++) expect(await stream.write(Buffer.from(PIECE))).toBe(true);
    expect(await house.outcome("k")).toContain("no longer kept");
    await stream.end();
    expect([client.text.length, client.isClosed]).toEqual([20 * MIB, true]);
  });

  test("waits for the slowest of them", async () => {
    const { house, client, stream } = await full();
    const slow = new Client(true);
    void (await house.stream("k")).run(slow);
    await turns();
    let isTaken = false;
    const writing = stream.write(Buffer.from(PIECE.repeat(2))).then((taken) => {
      isTaken = taken;
    });
    await turns();
    expect([isTaken, client.text.length]).toEqual([false, 17 * MIB]);
    slow.go(true);
    await writing;
    expect([isTaken, slow.text.length]).toEqual([true, 17 * MIB]);
  });

  test("is left with the last of them", async () => {
    const first = new Client();
    const { house, stream } = await full(first);
    const other = new Client(true);
    void (await house.stream("k")).run(other);
    const writing = stream.write(Buffer.from(PIECE.repeat(2)));
    await turns();
    other.go(false);
    expect(await writing).toBe(true);
    first.write = () => false;
    expect(await stream.write(Buffer.from(PIECE))).toBe(false);
  });

  test("gives its room back: the next one is kept", async () => {
    const { house, stream } = await full();
    await stream.write(Buffer.from(PIECE.repeat(3)));
    await stream.end();
    house.wholeBytes = 15 * MIB;
    expect(await house.outcome("next")).toBe("200");
    expect(await house.outcome("next")).toBe("200");
    expect(house.calls).toHaveLength(2);
  });
});

test("a client that leaves before the response is pulled keeps no stream waiting", async () => {
  const house = new House();
  const leaves = new AbortController();
  await house.stream("k", { signal: leaves.signal });
  leaves.abort();
  for (let n = 0; n < 16; n++) await house.calls[0]!.write(Buffer.alloc(MIB));
  expect(await house.calls[0]!.write(Buffer.alloc(MIB))).toBe(false);
});

test("a client that reads a stream, quickly or slowly, from early or late, reads all of it in its order", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new Random(seed);
    let left = random.below(60_000);
    const room = { take: (bytes: number) => (left -= bytes) >= 0, giveBack() {} };
    const stream = new SharedStream(room, () => 0);
    const pieces = Array.from({ length: 60 }, (_, n) => `${n}:${"y".repeat(random.below(2_000))};`);
    const readers: Client[] = [];
    const join = () => {
      if (!stream.canBegin) return;
      const client = new Client();
      const write = client.write.bind(client);
      // Each takes its time now and then.
      client.write = (bytes) => {
        write(bytes);
        return random.chance(0.3) ? turns().then(() => true) : true;
      };
      readers.push(client);
      void stream.reader(200, {}, new AbortController().signal).run(client);
    };
    join();
    for (const piece of pieces) {
      if (random.chance(0.2)) join();
      const buffer = Buffer.from(piece);
      expect(await stream.write(buffer)).toBe(true);
      // It is used again.
      buffer.fill(0);
    }
    stream.close();
    join();
    for (let n = 0; n < 200 && readers.some(({ isClosed }) => !isClosed); n++) await turns();
    const all = pieces.join("");
    for (const [n, { text, isClosed }] of readers.entries())
      expect([seed, n, isClosed, text === all]).toEqual([seed, n, true, true]);
  }
});

test("a worker on its way out joins others' requests to what it answers, and begins none for them", async () => {
  const house = new House();
  const passed = (key: string) => house.repeats.answerPassed("chat.completions", house.call(key));
  await passed("started");
  house.repeats.leave();
  expect(await passed("started")).toMatchObject({ headers: { "idempotent-replayed": "true" } });
  expect(await passed("new")).toBeNull();
  await house.send("own");
  expect(house.calls).toHaveLength(2);
});

test("a worker that is only asked for what it keeps begins nothing", async () => {
  const house = new House();
  const kept = (key: string) => house.repeats.answerPassed("chat.completions", house.call(key), true);
  expect([await kept("new"), await kept(" ")]).toMatchObject([null, { code: "invalid_request" }]);
  await house.send("started");
  expect(await kept("started")).toMatchObject({ headers: { "idempotent-replayed": "true" } });
  expect(house.calls).toHaveLength(1);
});
