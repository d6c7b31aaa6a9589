import { describe, expect, test } from "bun:test";
import { OpenStreams } from "../../../src/generation/stream/open-streams.ts";
import { type RelayContext, type RelayEnd, relay } from "../../../src/generation/stream/relay.ts";
import { HostFault, type Read } from "../../../src/hosts/transport.ts";
import type { StreamJudge } from "../../../src/surfaces/surface.ts";
import { AnswerText } from "../../../src/tokens/answer-text.ts";
import { Deadlines } from "../../../src/units/deadlines.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { type Gate, gate } from "../../fakes/gate.ts";
import { rethrow } from "../../fakes/rethrow.ts";

const COVERS: RelayContext["meter"] = {
  covers: () => true,
  more: () => null,
  dueMs: Number.POSITIVE_INFINITY,
};

/**
 * A host and a client that are both played by the test: each read, and each write, ends when the test says
 * so.
 */
class Played {
  /** What the client was given, in order. */
  readonly given: Uint8Array[] = [];
  takesAtOnce = false;
  readonly clock = new ManualClock();
  readonly open = new OpenStreams();
  readonly reads: Gate<Read>[] = [];
  readonly writes: Gate<boolean>[] = [];
  cancelled = false;
  end: RelayEnd | null = null;
  private readonly leaving = new AbortController();
  private readonly judge = {
    isComplete: false,
    fault: null,
    countedTokens: 0,
    text: new AnswerText(),
    push(bytes: Uint8Array): Uint8Array {
      this.countedTokens += bytes.length;
      return bytes;
    },
    end(): Uint8Array {
      this.isComplete = true;
      return NOTHING;
    },
  };

  constructor(
    onDisconnect: RelayContext["onDisconnect"] = "cancel",
    meter: RelayContext["meter"] = COVERS,
    keepaliveMs = Number.POSITIVE_INFINITY,
    { first = WORD, takesAtOnce = false } = {},
  ) {
    this.takesAtOnce = takesAtOnce;
    const line: RelayContext = {
      source: { next: (reader) => this.next(reader) },
      judge: this.judge as unknown as StreamJudge,
      sink: {
        write: (bytes) => {
          this.given.push(bytes);
          return this.takesAtOnce || this.wait(this.writes);
        },
      },
      signal: this.leaving.signal,
      onDisconnect,
      limits: { chunkGapMs: GAP_MS, deadlineMs: DEADLINE_MS, keepaliveMs },
      keepalive: PING,
      clock: this.clock,
      deadlines: new Deadlines(this.clock, rethrow),
      meter,
      host: { cancel: () => this.cancel() },
      open: this.open,
    };
    void relay(line, first).then((end) => {
      this.end = end;
    });
  }

  leave(): void {
    this.leaving.abort();
  }

  private next(reader: { arrived(read: Read): void }): Read | undefined {
    if (this.cancelled) return CANCELLED;
    void this.wait(this.reads).then((read) => reader.arrived(read));
    return undefined;
  }

  private wait<Value>(waiting: Gate<Value>[]): Promise<Value> {
    const one = gate<Value>();
    waiting.push(one);
    return one.passed;
  }

  private cancel(): void {
    this.cancelled = true;
    for (const read of this.reads) read.open(CANCELLED);
  }
}

const GAP_MS = 100;
const DEADLINE_MS = 1_000;
const CANCELLED = new HostFault("cancelled", "cancelled");
const NOTHING = new Uint8Array();
const WORD = Uint8Array.of(1);
const PING = Uint8Array.of(0);

/** Everything that can go on without the test has. */
const settled = (): Promise<void> => new Promise((done) => setImmediate(done));

test("a host is not held to be silent while its client takes its time", async () => {
  const played = new Played();
  played.clock.advance(5 * GAP_MS);
  await settled();
  expect([played.cancelled, played.end]).toEqual([false, null]);
  played.writes[0]!.open(true);
  await settled();
  played.clock.advance(GAP_MS - 1);
  played.reads[0]!.open(null);
  await settled();
  expect(played.end).toEqual({ kind: "complete", isHeldUp: true });
});

test("a host that is silent afterwards is, as long after as ever", async () => {
  const played = new Played();
  played.clock.advance(2.5 * GAP_MS);
  played.writes[0]!.open(true);
  await settled();
  played.clock.advance(GAP_MS - 1);
  await settled();
  expect(played.end).toBeNull();
  played.clock.advance(1);
  await settled();
  expect(played.end).toEqual({
    kind: "host_failed",
    message: `nothing arrived for ${GAP_MS} ms`,
  });
});

test("when time is up while the client takes nothing, it ends at once, and not by the host's fault", async () => {
  const played = new Played();
  played.clock.advance(DEADLINE_MS);
  await settled();
  expect(played.cancelled).toBe(true);
  expect(played.end).toEqual({
    kind: "cut",
    message: "the answer took longer than allowed",
    by: "client",
  });
  expect(played.clock.pending).toBe(0);
});

test("when time is up while the host says nothing, it is the host's", async () => {
  const played = new Played();
  played.clock.advance(DEADLINE_MS - GAP_MS / 2);
  played.writes[0]!.open(true);
  await settled();
  played.clock.advance(GAP_MS / 2);
  await settled();
  expect(played.end).toEqual({ kind: "host_failed", message: "the answer took longer than allowed" });
});

test("a client that leaves while it takes nothing has left", async () => {
  const played = new Played();
  played.leave();
  played.writes[0]!.open(false);
  await settled();
  expect(played.end).toEqual({ kind: "client_left", delivered: 0 });
  expect(played.cancelled).toBe(true);
});

test("a host that is to be drained is read to its end after the client has left in the middle of a write", async () => {
  const played = new Played("drain");
  played.leave();
  played.writes[0]!.open(false);
  await settled();
  expect([played.cancelled, played.end]).toEqual([false, null]);
  played.reads[0]!.open(WORD);
  await settled();
  expect(played.writes).toHaveLength(1);
  played.reads[1]!.open(null);
  await settled();
  expect(played.end).toMatchObject({ kind: "client_left" });
});

describe("a gateway that stops", () => {
  test("ends a stream whose host says nothing, and not by the host's fault", async () => {
    const played = new Played();
    played.writes[0]!.open(true);
    await settled();
    played.open.cutAll("the gateway stops");
    await settled();
    expect(played.end).toEqual({ kind: "cut", message: "the gateway stops", by: "gateway" });
    expect([played.cancelled, played.clock.pending]).toEqual([true, 0]);
  });

  test("ends one whose client takes nothing", async () => {
    const played = new Played();
    played.open.cutAll("the gateway stops");
    await settled();
    expect(played.end).toEqual({ kind: "cut", message: "the gateway stops", by: "gateway" });
  });

  test("changes nothing of one that has ended", async () => {
    const played = new Played();
    played.writes[0]!.open(true);
    await settled();
    played.reads[0]!.open(null);
    await settled();
    played.open.cutAll("the gateway stops");
    expect(played.end).toEqual({ kind: "complete", isHeldUp: true });
  });
});

describe("while nothing comes, the meter is asked again when it wants to be", () => {
  /** Covers what comes for so long, and looks every `LOOK_MS`. */
  class Meter {
    dueMs = CHECK_MS;
    readonly reads: number[] = [];

    constructor(private readonly untilMs: number) {}

    covers(_delivered: number, nowMs: number): boolean {
      this.reads.push(nowMs);
      this.dueMs = nowMs + CHECK_MS;
      return nowMs < this.untilMs;
    }

    more(): null {
      return null;
    }
  }
  const CHECK_MS = 20;

  test("and the stream ends when it does not cover what the host may have thought", async () => {
    const meter = new Meter(50);
    const played = new Played("cancel", meter);
    played.writes[0]!.open(true);
    await settled();
    played.clock.advance(59);
    expect([played.end, meter.reads]).toEqual([null, [0, 20, 40]]);
    played.clock.advance(1);
    await settled();
    expect([played.end, played.cancelled]).toEqual([{ kind: "out_of_credit" }, true]);
    expect(played.clock.pending).toBe(0);
  });

  test("also while the client takes nothing, and its host writes on", async () => {
    const played = new Played("cancel", new Meter(50));
    played.clock.advance(60);
    await settled();
    expect(played.end).toEqual({ kind: "out_of_credit" });
    played.writes[0]!.open(true);
    await settled();
    expect(played.clock.pending).toBe(0);
  });

  test("not once the client has left, and its host is read to the end", async () => {
    const meter = new Meter(50);
    const played = new Played("drain", meter);
    played.leave();
    played.writes[0]!.open(false);
    await settled();
    played.clock.advance(GAP_MS - 1);
    played.reads[0]!.open(null);
    await settled();
    expect(played.end).toEqual({ kind: "client_left", delivered: 0 });
  });

  test("nor does it put off the end of a host that is silent", async () => {
    const played = new Played("cancel", new Meter(Number.POSITIVE_INFINITY));
    played.writes[0]!.open(true);
    await settled();
    played.clock.advance(GAP_MS);
    await settled();
    expect(played.end).toMatchObject({ kind: "host_failed" });
  });
});

describe("where what came is not covered, and there may be more", () => {
  /** Covers so many bytes; `raise` answers for more. */
  class Meter {
    readonly dueMs = 5;
    gates: Gate<void>[] = [];
    final = false;

    constructor(public most: number) {}

    covers(delivered: number): boolean {
      return delivered <= this.most;
    }

    more(): Promise<void> | null {
      if (this.final) return null;
      const opened = gate<void>();
      this.gates.push(opened);
      return opened.passed;
    }

    async raise(bytes: number): Promise<void> {
      this.most += bytes;
      this.gates.at(-1)!.open();
      await settled();
    }
  }

  async function short(onDisconnect: RelayContext["onDisconnect"] = "cancel") {
    const meter = new Meter(0);
    const played = new Played(onDisconnect, meter, Number.POSITIVE_INFINITY, { takesAtOnce: true });
    expect(meter.gates).toHaveLength(0);
    played.reads[0]!.open(WORD);
    await settled();
    expect([meter.gates.length, played.reads.length, played.end]).toEqual([1, 1, null]);
    return { meter, played };
  }

  test("nothing is read until there is, and then the stream goes on; its time says nothing about the host", async () => {
    const { meter, played } = await short();
    await meter.raise(2 * WORD.length);
    expect(played.reads).toHaveLength(2);
    played.reads[1]!.open(null);
    await settled();
    expect(played.end).toEqual({ kind: "complete", isHeldUp: true });
    expect([played.given.length, played.clock.pending]).toEqual([2, 0]);
  });

  test("it is asked for again as long as there may be, and the stream ends once there is not", async () => {
    const { meter, played } = await short();
    await meter.raise(0);
    expect([meter.gates.length, played.end]).toEqual([2, null]);
    meter.final = true;
    await meter.raise(0);
    expect([played.end, played.cancelled]).toEqual([{ kind: "out_of_credit" }, true]);
  });

  test("the wait is not the host's silence, and the meter has its time; but it ends with the answer's", async () => {
    const { played } = await short();
    played.clock.advance(DEADLINE_MS - 1);
    await settled();
    expect(played.end).toBeNull();
    played.clock.advance(1);
    await settled();
    expect(played.end).toMatchObject({ kind: "cut", by: "gateway" });
    expect(played.clock.pending).toBe(0);
  });

  test("a client that leaves meanwhile has left, and a gateway that stops ends it", async () => {
    const { played: left } = await short();
    left.leave();
    await settled();
    expect(left.end).toMatchObject({ kind: "client_left" });
    const { played: stopped } = await short();
    stopped.open.cutAll("the gateway stops");
    await settled();
    expect(stopped.end).toMatchObject({ kind: "cut", by: "gateway" });
  });

  test("after a client has left, a host that is drained is read to its end", async () => {
    const { meter, played } = await short("drain");
    played.leave();
    await meter.raise(0);
    played.reads[1]!.open(null);
    await settled();
    expect(played.end).toMatchObject({ kind: "client_left" });
  });
});

describe("while the host says nothing, the client receives a sign of life", () => {
  const KEEPALIVE_MS = 15;
  const played = (more = {}) => new Played("cancel", COVERS, KEEPALIVE_MS, more);

  test("as often as it is set, from the first byte on, until the host is given up as before", async () => {
    const { clock, writes, given, end: _, ...rest } = played();
    writes[0]!.open(true);
    await settled();
    for (let n = 1; n * KEEPALIVE_MS < GAP_MS; n++) {
      clock.advance(KEEPALIVE_MS - 1);
      expect(given).toHaveLength(n);
      clock.advance(1);
      expect(given.slice(n)).toEqual([PING]);
      writes[n]!.open(true);
      await settled();
    }
    expect(rest.cancelled).toBe(false);
  });

  test("but the host is given up when it would have been without", async () => {
    const stream = played();
    stream.writes[0]!.open(true);
    await settled();
    for (let ms = 0; ms < GAP_MS - 1; ms++) {
      stream.clock.advance(1);
      stream.writes.at(-1)!.open(true);
      await settled();
    }
    expect(stream.end).toBeNull();
    stream.clock.advance(1);
    await settled();
    expect(stream.end).toEqual({ kind: "host_failed", message: `nothing arrived for ${GAP_MS} ms` });
    const { length } = stream.given;
    expect(length).toBe(1 + Math.floor((GAP_MS - 1) / KEEPALIVE_MS));
    stream.clock.advance(10 * KEEPALIVE_MS);
    expect(stream.given).toHaveLength(length);
    expect(stream.clock.pending).toBe(0);
  });

  test("later, where the host has said something meanwhile", async () => {
    const stream = played();
    stream.writes[0]!.open(true);
    await settled();
    stream.clock.advance(KEEPALIVE_MS - 1);
    stream.reads[0]!.open(WORD);
    await settled();
    stream.writes[1]!.open(true);
    await settled();
    stream.clock.advance(KEEPALIVE_MS - 1);
    expect(stream.given).toEqual([WORD, WORD]);
    stream.clock.advance(1);
    expect(stream.given).toEqual([WORD, WORD, PING]);
  });

  test("not before anything was said", async () => {
    const stream = played({ first: NOTHING, takesAtOnce: true });
    stream.clock.advance(GAP_MS - 1);
    expect(stream.given).toEqual([]);
    stream.reads[0]!.open(WORD);
    await settled();
    stream.clock.advance(KEEPALIVE_MS);
    expect(stream.given).toEqual([WORD, PING]);
  });

  test("also one that takes everything at once, until it has gone", async () => {
    const stream = played({ takesAtOnce: true });
    stream.clock.advance(2 * KEEPALIVE_MS);
    expect(stream.given).toEqual([WORD, PING, PING]);
    stream.leave();
    await settled();
    stream.clock.advance(2 * KEEPALIVE_MS);
    expect(stream.given).toHaveLength(3);
    expect([stream.end, stream.clock.pending]).toEqual([{ kind: "client_left", delivered: 0 }, 0]);
  });

  test("not while it takes nothing, and what the host says then waits for its turn", async () => {
    const stream = played();
    stream.clock.advance(5 * KEEPALIVE_MS);
    expect(stream.given).toEqual([WORD]);
    stream.writes[0]!.open(true);
    await settled();
    stream.clock.advance(5 * KEEPALIVE_MS);
    expect(stream.given).toEqual([WORD, PING]);
    stream.reads[0]!.open(WORD);
    await settled();
    expect(stream.given).toEqual([WORD, PING]);
    stream.writes[1]!.open(true);
    await settled();
    expect(stream.given).toEqual([WORD, PING, WORD]);
    stream.writes[2]!.open(true);
    await settled();
    stream.reads[1]!.open(null);
    await settled();
    expect(stream.end).toEqual({ kind: "complete", isHeldUp: true });
  });

  test("by which it is noticed that the client has gone", async () => {
    const stream = played();
    stream.writes[0]!.open(true);
    await settled();
    stream.clock.advance(KEEPALIVE_MS);
    stream.writes[1]!.open(false);
    await settled();
    expect([stream.end, stream.cancelled]).toEqual([{ kind: "client_left", delivered: 0 }, true]);
  });

  test("not once it has left, and its host is read to the end", async () => {
    const stream = new Played("drain", COVERS, KEEPALIVE_MS);
    stream.writes[0]!.open(true);
    await settled();
    stream.leave();
    stream.clock.advance(GAP_MS - 1);
    stream.reads[0]!.open(null);
    await settled();
    expect([stream.given, stream.end]).toMatchObject([[WORD], { kind: "client_left" }]);
  });

  test("and time that is up meanwhile ends it at once", async () => {
    const stream = played();
    stream.clock.advance(DEADLINE_MS - KEEPALIVE_MS - 1);
    stream.writes[0]!.open(true);
    await settled();
    stream.clock.advance(KEEPALIVE_MS);
    expect(stream.given).toEqual([WORD, PING]);
    stream.clock.advance(1);
    await settled();
    expect(stream.end).toMatchObject({ message: "the answer took longer than allowed" });
    expect(stream.clock.pending).toBe(0);
  });
});
