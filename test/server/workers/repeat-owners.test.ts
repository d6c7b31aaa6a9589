import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  GenerationAnswer,
  GenerationCall,
  Sink,
  StreamedAnswer,
} from "../../../src/generation/answer.ts";
import { PassedRepeats } from "../../../src/server/workers/passed-repeats.ts";
import { inOrder, RepeatOwners } from "../../../src/server/workers/repeat-owners.ts";
import { workerIdentity } from "../../../src/server/workers/worker-identity.ts";
import { systemClock } from "../../../src/units/clock.ts";
import { Deadlines } from "../../../src/units/deadlines.ts";
import { type Refusal, refuse, refused } from "../../../src/units/errors/refusal.ts";
import type { BalanceId } from "../../../src/units/id.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { FaultyLine } from "../../fakes/faulty-line.ts";
import { gate } from "../../fakes/gate.ts";
import { until } from "../../fakes/until.ts";
import { rounds } from "../../rounds.ts";
import { Random } from "../../sim/random.ts";

/** Three workers, of which the last one named in `inOrder` passes requests on. */
const REQUEST = {
  id: "bal_one key",
  balance: "bal_one" as BalanceId,
  pays: true,
  surface: "chat.completions" as const,
};
const [FIRST, SECOND, OWN] = inOrder(REQUEST.id, 3) as [number, number, number];

let folder: string;
let stops: (() => void)[];
let faults: unknown[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "repeats-"));
  [stops, faults] = [[], []];
});
afterEach(() => {
  for (const stop of stops) stop();
  rmSync(folder, { recursive: true, force: true });
  expect(faults).toEqual([]);
});

const identityOf = (number: number, more = {}) =>
  workerIdentity({ GATEWAY_WORKER: String(number), GATEWAY_WORKERS: "3", GATEWAY_SOCKETS: folder, ...more })!;

function ownersAt(
  number: number,
  clock: ManualClock | typeof systemClock = systemClock,
  identity = identityOf(number),
): RepeatOwners {
  return new RepeatOwners(identity, {
    clock,
    deadlines: new Deadlines(clock, (fault) => faults.push(fault)),
    silenceMs: () => 60_000,
    brokenOff: (surface, { code }) => Buffer.from(`${surface} broke off: ${code}`),
  });
}

type Answer = (call: GenerationCall, ifKept: boolean) => Promise<GenerationAnswer | Refusal | null>;

async function worker(
  number: number,
  answer: Answer,
  path = identityOf(number).socketOf(number),
): Promise<PassedRepeats> {
  const passed = new PassedRepeats(10_000_000, {
    clock: systemClock,
    deadlines: new Deadlines(systemClock, (fault) => faults.push(fault)),
    answer: (_surface, call, ifKept) => answer(call, ifKept),
    onFault: (fault) => faults.push(fault),
  });
  stops.push(() => passed.stop());
  await passed.listen(path);
  return passed;
}

/** Somebody at a worker's socket who is no worker of this version. */
async function stranger(number: number, serve: (socket: Socket) => void): Promise<void> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    stops.push(() => socket.destroy());
    serve(socket);
  });
  stops.push(() => server.close());
  await new Promise<void>((listening) => server.listen(identityOf(number).socketOf(number), listening));
}

const callOf = (
  body: Uint8Array = Buffer.from("{}"),
  signal = new AbortController().signal,
): GenerationCall => ({
  secret: "or-live-secret",
  headers: new Headers({ "idempotency-key": "key", "x-client": "Zoë" }),
  body,
  blocks: () => ["192.0.2.7", "192.0.2.0/24"],
  isUnpaid: false,
  signal,
});

const send = (owners: RepeatOwners, call = callOf(), request = REQUEST) =>
  owners.answer({ ...request, call });

const whole = (text: string): GenerationAnswer => ({
  kind: "whole",
  status: 200,
  headers: { "x-gateway-receipt": "rcpt_1" },
  body: Buffer.from(text),
});

function streamed(run: (sink: Sink) => Promise<void>): StreamedAnswer {
  return { kind: "stream", status: 200, headers: {}, run };
}

/** A client that reads all. */
class Reader implements Sink {
  text = "";
  isClosed = false;
  write(bytes: Uint8Array): boolean {
    this.text += Buffer.from(bytes).toString();
    return true;
  }
  close(): void {
    this.isClosed = true;
  }
}

async function read(answer: GenerationAnswer | Refusal | null): Promise<string> {
  if (answer === null || refused(answer) || answer.kind === "whole") throw new Error("no stream");
  const reader = new Reader();
  await answer.run(reader);
  expect(reader.isClosed).toBe(true);
  return reader.text;
}

describe("a request is passed on", () => {
  test("with all that is known of it, and is answered by its owner alone", async () => {
    let seen: GenerationCall | null = null;
    await worker(FIRST, async (call) => {
      seen = call;
      return whole("answered");
    });
    await worker(SECOND, async () => whole("by another"));
    const part = crypto.getRandomValues(new Uint8Array(65_536));
    const large = Buffer.concat(Array.from({ length: 40 }, () => part));
    const answer = await send(ownersAt(OWN), callOf(large));
    expect(answer).toMatchObject({ kind: "whole", status: 200, headers: { "x-gateway-receipt": "rcpt_1" } });
    expect(Buffer.from((answer as { body: Uint8Array }).body).toString()).toBe("answered");
    const { secret, headers, blocks, isUnpaid, body: sent } = seen! as GenerationCall;
    expect([secret, headers.get("x-client"), blocks(), isUnpaid]).toEqual([
      "or-live-secret",
      "Zoë",
      ["192.0.2.7", "192.0.2.0/24"],
      false,
    ]);
    expect(Buffer.compare(sent, large)).toBe(0);
  });

  test("a refusal keeps its code and details, and a stream its bytes", async () => {
    const why = refuse("rate_limited", "Too often.", { retryAfterS: 7 });
    const first = await worker(FIRST, async () => why);
    expect(await send(ownersAt(OWN))).toEqual(why);
    first.stop();
    const part = "0123456789".repeat(10_000);
    await worker(FIRST, async () =>
      streamed(async (sink) => {
        for (let n = 0; n < 50; n++) await sink.write(Buffer.from(part));
        sink.close();
      }),
    );
    expect(await read(await send(ownersAt(OWN)))).toBe(part.repeat(50));
  });

  test("its owner answers it, and nobody is asked", async () => {
    expect(await send(ownersAt(FIRST))).toBeNull();
  });

  test("the socket is for the gateway's user alone", async () => {
    await worker(FIRST, async () => null);
    expect(statSync(identityOf(FIRST).socketOf(FIRST)).mode & 0o777).toBe(0o600);
  });
});

describe("where the owner", () => {
  test("is not there, the next one answers, and in the end the worker that has the request", async () => {
    expect(await send(ownersAt(OWN))).toBeNull();
    await worker(SECOND, async () => whole("second"));
    expect(await send(ownersAt(OWN))).toMatchObject({ kind: "whole" });
  });

  test("is on its way out, the next one answers", async () => {
    await worker(FIRST, async () => null);
    await worker(SECOND, async () => whole("second"));
    expect(await send(ownersAt(OWN))).toMatchObject({ kind: "whole" });
  });

  test("is of another version, the next one answers", async () => {
    await stranger(FIRST, (socket) => socket.write(Buffer.from('\0\0\0\x0e{"protocol":0}')));
    await worker(SECOND, async () => whole("second"));
    expect(await send(ownersAt(OWN))).toMatchObject({ kind: "whole" });
  });

  test("hangs, the next one answers once it was waited for, and then at once for a while", async () => {
    let dialled = 0;
    await stranger(FIRST, () => {
      dialled += 1;
    });
    await worker(SECOND, async () => whole("second"));
    const clock = new ManualClock();
    const owners = ownersAt(OWN, clock);
    const answer = send(owners);
    await until(() => dialled === 1);
    clock.advance(10_000);
    expect(await answer).toMatchObject({ kind: "whole" });
    expect(await send(owners)).toMatchObject({ kind: "whole" });
    expect(dialled).toBe(1);
  });

  test("ends before it answers, its client gets an error that says to retry; nobody else is asked", async () => {
    const requested = gate();
    const owner = await worker(FIRST, async () => {
      requested.open();
      return new Promise<null>(() => {});
    });
    let others = 0;
    await worker(SECOND, async () => {
      others += 1;
      return null;
    });
    const answer = send(ownersAt(OWN));
    await requested.passed;
    owner.stop();
    expect(await answer).toMatchObject({ code: "internal_error", status: 500 });
    expect(others).toBe(0);
  });

  test("ends in the middle of a stream, its end says so", async () => {
    const owner = await worker(FIRST, async () =>
      streamed(async (sink) => {
        sink.write(Buffer.from("half "));
        await new Promise<void>(() => {});
      }),
    );
    const stream = (await send(ownersAt(OWN))) as StreamedAnswer;
    const reader = new Reader();
    const running = stream.run(reader);
    await until(() => reader.text === "half ");
    owner.stop();
    await running;
    expect(reader.text).toBe("half chat.completions broke off: internal_error");
  });
});

describe("an owner that is back", () => {
  const back = (clock = new ManualClock()) =>
    ownersAt(FIRST, clock, identityOf(FIRST, { GATEWAY_WORKER_AGAIN: "1" }));

  test("asks those that answered in its place what they keep, for as long as they keep it", async () => {
    const passed: [number, boolean][] = [];
    await worker(SECOND, async (_, ifKept) => {
      passed.push([SECOND, ifKept]);
      return null;
    });
    await worker(OWN, async (_, ifKept) => {
      passed.push([OWN, ifKept]);
      return whole("kept");
    });
    const clock = new ManualClock();
    const owners = back(clock);
    expect(await send(owners)).toMatchObject({ kind: "whole" });
    expect(await owners.kept({ ...REQUEST, call: callOf() })).toMatchObject({ kind: "whole" });
    expect(passed).toEqual([SECOND, OWN, SECOND, OWN].map((number) => [number, true]));
    clock.advance(600_000);
    expect([await send(owners), passed.length]).toEqual([null, 4]);
  });

  test("answers itself where they keep nothing, are not there, or end before they say so", async () => {
    const dying: PassedRepeats = await worker(SECOND, async () => {
      dying.stop();
      return new Promise<null>(() => {});
    });
    expect(await send(back())).toBeNull();
  });
});

describe("a client", () => {
  test("that leaves, leaves at the owner too, before the answer and in the middle of it", async () => {
    let left = 0;
    const requested = [gate(), gate()];
    await worker(FIRST, async ({ signal }) => {
      signal.addEventListener("abort", () => (left += 1));
      requested.shift()!.open();
      if (requested.length > 0) return new Promise<null>(() => {});
      return streamed(async (sink) => {
        while (await sink.write(Buffer.alloc(100_000))) await Bun.sleep(1);
      });
    });
    const [early, late] = [new AbortController(), new AbortController()];
    const owners = ownersAt(OWN);
    const first = requested[0]!.passed;
    const unanswered = send(owners, callOf(undefined, early.signal));
    await first;
    early.abort();
    expect(refused(await unanswered)).toBe(false);
    await until(() => left === 1);
    const stream = (await send(owners, callOf(undefined, late.signal))) as StreamedAnswer;
    late.abort();
    await stream.run(new Reader());
    await until(() => left === 2);
  });

  test("that reads nothing has its owner wait", async () => {
    let written = 0;
    await worker(FIRST, async () =>
      streamed(async (sink) => {
        for (; written < 1_000; written++) if (!(await sink.write(Buffer.alloc(100_000)))) break;
      }),
    );
    const leaves = new AbortController();
    const stream = (await send(ownersAt(OWN), callOf(undefined, leaves.signal))) as StreamedAnswer;
    const taking = gate<boolean>();
    const running = stream.run({ write: () => taking.passed, close() {} });
    for (let before = -1; written !== before; await Bun.sleep(20)) before = written;
    expect(written).toBeLessThan(100);
    leaves.abort();
    taking.open(false);
    await running;
  });

  test("without credit has a thousand of a worker's requests passed on at a time", async () => {
    await worker(FIRST, async () => new Promise<null>(() => {}));
    const owners = ownersAt(OWN);
    const unpaid = { ...REQUEST, pays: false };
    const leaves = new AbortController();
    const requests = Array.from({ length: 1_000 }, () =>
      send(owners, callOf(undefined, leaves.signal), unpaid),
    );
    expect(await send(owners, callOf(), unpaid)).toMatchObject({ code: "rate_limited" });
    leaves.abort();
    await Promise.all(requests);
  });
});

describe("over lines that break at any byte", () => {
  const COUNT = 60;
  /** Some are large, some have several bytes a character. */
  const bodyOf = (number: number) => Buffer.alloc([10, 3_000, 200_000][number % 3]!, `${number} `);
  const answerOf = (number: number) => `${number} ${"é€x".repeat(number % 9 === 0 ? 30_000 : number % 7)}`;

  const answering = async (number: number): Promise<GenerationAnswer> => {
    const text = answerOf(number);
    if (number % 2 === 0) return whole(text);
    return streamed(async (sink) => {
      for (const part of text.match(/.{1,4000}/gu)!) if (!(await sink.write(Buffer.from(part)))) return;
      sink.close();
    });
  };

  /** How often a request was answered that comes to this. */
  const TIMES = { own: [0], lost: [0, 1], whole: [1], streamed: [1], "broken off": [1] };

  /** Null for an answer that is not its own. */
  const outcomeOf = async (
    number: number,
    answer: GenerationAnswer | Refusal | null,
  ): Promise<keyof typeof TIMES | null> => {
    if (answer === null) return "own";
    if (refused(answer)) return answer.code === "internal_error" ? "lost" : null;
    if (answer.kind === "whole")
      return Buffer.from(answer.body).toString() === answerOf(number) ? "whole" : null;
    const text = await read(answer);
    if (text === answerOf(number)) return "streamed";
    const [part, end] = text.split("chat.completions broke off: internal_error");
    return end === "" && answerOf(number).startsWith(part!) ? "broken off" : null;
  };

  test("a request is answered once at most, and its client gets the whole answer or learns that it does not", async () => {
    const outcomes = new Set<string | null>();
    for (let seed = 1; seed <= rounds(3, 20, 200); seed++) {
      const random = new Random(seed);
      const times = Array.from({ length: COUNT }, () => 0);
      for (const number of [FIRST, SECOND]) {
        const path = identityOf(number).socketOf(number);
        const answer: Answer = async ({ body }) => {
          const request = Number.parseInt(Buffer.from(body).toString(), 10);
          if (request % 11 === 10) return null;
          times[request]! += 1;
          return answering(request);
        };
        await worker(number, answer, `${path}.far`);
        const line = await FaultyLine.open(path, `${path}.far`, random);
        stops.push(() => line.stop());
      }
      const owners = ownersAt(OWN);
      const requests = times.map(async (_, number) => {
        const answer = await send(owners, callOf(bodyOf(number)));
        const outcome = await outcomeOf(number, answer);
        outcomes.add(outcome);
        const isRight = outcome !== null && TIMES[outcome].includes(times[number]!);
        expect([seed, number, outcome, isRight]).toEqual([seed, number, outcome, true]);
      });
      await Promise.all(requests);
      for (const stop of stops.splice(0).reverse()) stop();
    }
    expect([...outcomes].sort()).toEqual(Object.keys(TIMES).sort());
  });
});
