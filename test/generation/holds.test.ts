import { afterEach, describe, expect, test } from "bun:test";
import type { Host } from "../../src/catalog/catalog.ts";
import type { Price } from "../../src/catalog/price.ts";
import { Hold } from "../../src/generation/hold.ts";
import { RunningCount } from "../../src/generation/stream/running-count.ts";
import { RunningStream } from "../../src/generation/stream/running-stream.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import type { Reservation } from "../../src/ledger/reservation.ts";
import type { GenerationRequest, Usage } from "../../src/surfaces/surface.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationRequest } from "../fakes/reservation.ts";
import { chatText } from "../fakes/transcripts.ts";
import {
  heldNano,
  openTestGateway,
  read,
  requestBody,
  type TestGateway,
  type TestGatewayOptions,
} from "./test-gateway.ts";

/** Nano-dollars a token; the prompt "Hello" costs less than one token of answer. */
const OUTPUT = 1_000_000;
const PRICE = {
  input: 1_000,
  output: OUTPUT * 1_000_000,
  cacheRead: 1_000,
  cacheWrite: 1_000,
} as unknown as Price;
const LONGEST = 64_000;
/** What a host can think in 30 s, and 512 tokens ahead. */
const AT_ONCE = 30 * 250 + 512;

let host: FakeHost;
let gateway: TestGateway;
let answers: Gate<void>;
let reports: Partial<Record<"input" | "output", number>>;
afterEach(async () => {
  answers.open();
  await gateway.close();
  await host.close();
});

async function serve(row: Partial<Host> = {}, options: TestGatewayOptions = {}): Promise<void> {
  answers = gate();
  reports = {};
  host = await startFakeHost((request) => async (wire, seen) => {
    await answers.passed;
    const { events, whole } = chatText(["Hi"], { input: 2, output: 1, ...reports });
    await (request.json().stream === true ? sse(events) : json(whole))(wire, seen);
  });
  const rows = [hostRow(host, row)];
  const price = PRICE;
  const routes = rows.map((one) => ({ host: one, model: "m", price, free: false }));
  const model = { maxOutputTokens: LONGEST, price, routes };
  gateway = await openTestGateway(rows, { creditUsd: 10_000, model, ...options });
}

const chat = (more: object) => gateway.send("chat.completions", requestBody("chat.completions", more));

/** Tokens of answer that are held while the host works on it. */
async function heldWhile(more: object): Promise<number> {
  const requests = host.requests.length;
  const sent = chat(more);
  await host.arrived(requests);
  const held = Math.floor((await heldNano(gateway)) / OUTPUT);
  answers.open();
  await read(await sent);
  return held;
}

describe("what is held of an answer when it begins", () => {
  const STREAM = { stream: true, max_tokens: LONGEST };
  test.each<[string, object, Partial<Host>, number]>([
    ["a stream: what its host can think before the first token", STREAM, {}, AT_ONCE],
    ["with a ceiling below that: the ceiling", { ...STREAM, max_tokens: 5_000 }, {}, 5_000],
    ["without a ceiling: the gateway's own", { stream: true }, {}, 1_000],
    ["several answers: an eighth of all of them", { ...STREAM, n: 3 }, {}, 24_000],
    ["a whole answer: all of it", { max_tokens: LONGEST }, {}, LONGEST],
    ["of a host that bills what is left: all", STREAM, { onDisconnect: "drain" }, LONGEST],
    ["of a host that cannot stream: all", STREAM, { quirks: { noStream: true } }, LONGEST],
  ])("%s", async (_, more, row, tokens) => {
    await serve(row);
    expect(await heldWhile(more)).toBe(tokens);
  });

  test("half as much again as the key's answers by this model came to lately, once there are some", async () => {
    await serve();
    reports = { output: 20_000 };
    const held: number[] = [];
    for (let n = 0; n < 5; n++) held.push(await heldWhile(STREAM));
    expect(held).toEqual([AT_ONCE, AT_ONCE, AT_ONCE, AT_ONCE, 30_000]);
  });
});

describe("a request is refused before it is sent", () => {
  const WORST_USD = (LONGEST * OUTPUT) / 1e9;

  test("if the balance cannot cover its worst case, whatever would be held of it", async () => {
    await serve({}, { creditUsd: WORST_USD - 1 });
    const answer = await chat({ stream: true, max_tokens: LONGEST });
    expect(answer.status).toBe(402);
    expect(await read(answer)).toContain(`whose worst case is $${WORST_USD}`);
    expect(host.requests).toHaveLength(0);
  });

  test("not if the worst case fits next to what is spent, though it does not next to what is held", async () => {
    await serve({}, { creditUsd: WORST_USD + 1 });
    const both = [1, 2].map(() => chat({ stream: true, max_tokens: LONGEST }));
    await host.arrived(1);
    answers.open();
    for (const sent of both) expect(await read(await sent)).toContain("[DONE]");
  });

  test("once what is spent leaves less than the worst case, though hardly anything is held", async () => {
    await serve({}, { creditUsd: WORST_USD + 1 });
    reports = { output: 2_000 };
    answers.open();
    const stream = { stream: true, max_tokens: LONGEST };
    expect(await read(await chat(stream))).toContain("[DONE]");
    expect((await chat(stream)).status).toBe(402);
  });
});

describe("a hold that follows its stream", () => {
  const MS = 1_000;
  const NO_USAGE = { cacheRead: 0, cacheWrite: 0, reasoning: 0 };

  /** A stream that holds 2,000 of at most 64,000 tokens and a prompt of 1,000, at a nano-dollar each. */
  class Stream {
    readonly clock = new ManualClock();
    readonly judge = { usage: null as Usage | null, text: { estimateSinceReport: 0 } };
    private reservation!: Reservation;
    private readonly journal: number[] = [];
    hold!: Hold;

    static async open(room: number, isNamed = true, count: RunningCount | null = null): Promise<Stream> {
      const stream = new Stream();
      const { clock, journal } = stream;
      const price = { input: 1e6, output: 1e6, cacheRead: 1e5, cacheWrite: 1e6 } as Price;
      const append = (record: { kind: string; held?: number }) =>
        record.kind === "extend" ? journal.push(record.held!) : 0;
      const sums = { spent: () => ZERO_USD, credited: () => (3_000 + room) as NanoUsd };
      const holders = new KnownHolders();
      const ledger = new Ledger(clock, { append, withdraw: () => false }, sums, holders);
      const key = keyOf({ balanceId: "bal_a" as BalanceId, dailyLimit: null, monthlyLimit: null });
      holders.put(key);
      const most = { amount: 65_000 as NanoUsd, tokens: 65_000 };
      const request = reservationRequest({
        at: clock.now(),
        key,
        amount: 3_000,
        most,
        promptTokens: 400,
        price,
      });
      const reservation = ledger.admit(
        await ledger.counters.of(key, [], [], request.at),
        request,
      ) as Reservation;
      stream.reservation = reservation;
      const prompt = { bound: 1_000, retentions: {}, hasAudio: false };
      const growth = { tokensPerSecond: 250, aheadTokens: 512, stepTokens: 4_096, leastStepTokens: 64 };
      stream.hold = new Hold(ledger, reservation, prompt, 2_000, LONGEST, isNamed, growth);
      const generation = {
        promptEstimate: 400,
        promptUnseen: false,
        promptWithoutAudio: null,
        promptRetentions: {},
      };
      stream.hold.begin(
        new RunningStream(
          generation as GenerationRequest,
          stream.judge,
          price,
          250,
          clock.elapsedMs(),
          512,
          count,
        ),
      );
      return stream;
    }

    /** So many tokens have come, that much later. */
    covers(tokens: number, afterMs = 0): boolean {
      this.clock.advance(afterMs);
      return this.hold.covers(tokens, this.clock.elapsedMs());
    }

    get held(): number {
      return this.reservation.held;
    }

    get changes(): number {
      return this.journal.length;
    }
  }

  test("grows a step ahead of the tokens that come, up to the ceiling", async () => {
    const stream = await Stream.open(100_000);
    expect([stream.covers(1_400, 100), stream.held]).toEqual([true, 3_000]);
    expect([stream.covers(1_500, 100), stream.held]).toEqual([true, 7_096]);
    for (let tokens = 2_000; tokens <= 90_000; tokens += 500) expect(stream.covers(tokens, 100)).toBe(true);
    expect(stream.held).toBe(1_000 + LONGEST);
  });

  test.each([
    ["named", true, LONGEST],
    ["not named, which leaves the model's longest answer, or what was written beyond it", false, 70_000],
  ])("never exceeds the ceiling: it is %s", async (_, isNamed, most) => {
    const stream = await Stream.open(1_000_000, isNamed);
    // Silence, then most of the answer in one packet, then the rest.
    for (let checks = 0; checks < 20; checks++) expect(stream.covers(10, 20 * MS)).toBe(true);
    expect(stream.held).toBe(1_000 + LONGEST);
    expect(stream.covers(50_000)).toBe(true);
    expect(stream.held).toBe(1_000 + LONGEST);
    for (const tokens of [66_000, 70_000]) expect(stream.covers(tokens, 100)).toBe(true);
    expect(stream.held).toBe(1_000 + most);
  });

  test("grows with the time in which nothing comes, because the host may think", async () => {
    const stream = await Stream.open(100_000);
    expect([stream.covers(0, 5 * MS), stream.held]).toEqual([true, 3_000]);
    expect([stream.covers(0, 2 * MS), stream.held]).toEqual([true, 7_096]);
    // What was thought stays held when words come again.
    expect(stream.covers(3_900, 100)).toBe(true);
    expect(stream.held).toBe(11_192);
  });

  test("asks to be looked at while nothing comes, and not any more when all of it is held", async () => {
    const stream = await Stream.open(100_000);
    const { clock, hold } = stream;
    for (let checks = 0; checks < 300 && hold.dueMs < Number.POSITIVE_INFINITY; checks++) {
      expect(hold.dueMs - clock.elapsedMs()).toBeWithin(1, 2_001);
      clock.advance(hold.dueMs - clock.elapsedMs());
      expect(stream.covers(0)).toBe(true);
      // It never has less than may be written before it is looked at again.
      const next = Math.min(LONGEST, (250 * (clock.elapsedMs() + 2 * MS)) / MS);
      expect(stream.held - 1_000).toBeGreaterThanOrEqual(next);
    }
    expect([hold.dueMs, stream.held]).toEqual([Number.POSITIVE_INFINITY, 1_000 + LONGEST]);
  });

  test("stops the stream when what came, or may have been thought, is not held and nothing is left", async () => {
    const [writing, thinking] = [await Stream.open(500), await Stream.open(500)];
    let written = 0;
    while (writing.covers(written, 100)) written += 10;
    expect(written).toBeWithin(2_400, 2_501);
    expect(writing.held).toBeWithin(3_400, 3_501);
    let ms = 0;
    while (thinking.covers(0, 250)) ms += 250;
    expect((ms * 250) / MS).toBeWithin(2_200, 2_501);
  });

  test.each<[string, number | null, number]>([
    ["too high: it goes on as far as the credit does", 0.75, 2_500 / 0.75],
    ["right", 1, 2_500],
    ["too low: it stops in time", 1.25, 2_500 / 1.25],
    ["all that there is, because too much is to be counted", null, 2_500],
  ])("where nothing is left, what came is counted; its estimate is %s", async (_, share, stopsAt) => {
    let estimate = 0;
    const pieces: number[] = [];
    const text = {
      get moment() {
        return { length: estimate, unkept: 0, estimate };
      },
      reportMoment: { length: 0, unkept: 0, estimate: 0 },
      since: ({ length }: { length: number }) => ({ texts: [`${estimate - length}`], unkept: 0 }),
    };
    const answer = async ([tokens]: readonly string[]) => {
      pieces.push(Number(tokens));
      return share === null ? null : Number(tokens) * share;
    };
    const stream = await Stream.open(500, true, new RunningCount(text, { answer }));
    while (stream.covers(estimate, 100)) {
      await Promise.resolve();
      estimate += 10;
    }
    expect(estimate).toBeWithin(stopsAt - 100, stopsAt + 100);
    expect(stream.held).toBeWithin(3_400, 3_501);
    // Each piece once, none of them tiny, and none before it matters.
    expect(pieces[0]).toBeGreaterThan(1_400);
    expect(Math.min(...pieces)).toBeGreaterThanOrEqual(64);
    expect(pieces.reduce((sum, tokens) => sum + tokens, 0)).toBeLessThanOrEqual(estimate);
    if (share === null) expect(pieces).toHaveLength(1);
  });

  /** What comes is estimated a third too high, and counted; `reportMoment` is the host's last report. */
  function counted() {
    const text = {
      estimate: 0,
      reported: 0,
      get moment() {
        return { length: text.estimate, unkept: 0, estimate: text.estimate };
      },
      get reportMoment() {
        return { length: text.reported, unkept: 0, estimate: text.reported };
      },
      since: ({ length }: { length: number }) => ({ texts: [`${text.estimate - length}`], unkept: 0 }),
    };
    const answer = async ([tokens]: readonly string[]) => Number(tokens) * 0.75;
    return { text, count: new RunningCount(text, { answer }) };
  }

  test("what came in one moment and is not held by its estimate is counted before the stream is stopped", async () => {
    const { text, count } = counted();
    const stream = await Stream.open(500, true, count);
    text.estimate = 3_200;
    expect(stream.covers(3_200)).toBe(false);
    await stream.hold.more();
    // 2,400 tokens of 2,500.
    expect(stream.covers(3_200)).toBe(true);
    text.estimate = 3_600;
    expect(stream.covers(3_600)).toBe(false);
    await stream.hold.more();
    expect([stream.covers(3_600), stream.hold.more()]).toEqual([false, null]);
  });

  async function endOf(stream: Stream, text: ReturnType<typeof counted>["text"]): Promise<number> {
    while (text.estimate < 9_000 && stream.covers(text.estimate, 100)) {
      await Promise.resolve();
      text.estimate += 10;
      stream.judge.text.estimateSinceReport = text.estimate - text.reported;
    }
    return text.estimate;
  }

  test("a host that says how much it has written is believed, whatever its text counts", async () => {
    const { text, count } = counted();
    const stream = await Stream.open(500, true, count);
    text.estimate = text.reported = 1_600;
    stream.judge.usage = { ...NO_USAGE, input: 1_000, output: 2_400 };
    // A quarter less is counted of what comes after it.
    expect(await endOf(stream, text)).toBeWithin(1_640, 1_600 + 100 / 0.75 + 70);
  });

  test("and what comes after a host has said so once, early, is counted", async () => {
    const { text, count } = counted();
    const stream = await Stream.open(500, true, count);
    stream.judge.usage = { ...NO_USAGE, input: 1_000, output: 1 };
    expect(await endOf(stream, text)).toBeWithin(2_500 / 0.75 - 100, 2_500 / 0.75 + 100);
  });

  test("where nothing is left, a host that says to have written less than is estimated is believed", async () => {
    const stream = await Stream.open(500);
    let estimate = 0;
    while (estimate < 9_000 && stream.covers(estimate, 100)) {
      estimate += 10;
      stream.judge.usage = { ...NO_USAGE, input: 1_000, output: Math.ceil(estimate * 0.75) };
    }
    expect(estimate).toBeWithin(2_500 / 0.75 - 100, 2_500 / 0.75 + 100);
  });

  test("and what came after it said so is held next to that", async () => {
    const stream = await Stream.open(500);
    stream.judge.usage = { ...NO_USAGE, input: 1_000, output: 2_000 };
    stream.judge.text.estimateSinceReport = 400;
    expect(stream.covers(2_900)).toBe(true);
    expect(stream.covers(3_000)).toBe(false);
  });

  test("unless that is too little to be true", async () => {
    const stream = await Stream.open(500);
    let estimate = 0;
    while (estimate < 9_000 && stream.covers(estimate, 100)) {
      estimate += 10;
      stream.judge.usage = { ...NO_USAGE, input: 1_000, output: 1 };
    }
    expect(estimate).toBeWithin(2_400, 2_511);
  });

  test("believes a host that says how much it has written, and no more than can be", async () => {
    const stream = await Stream.open(1_000_000, false);
    expect(stream.covers(100, 20 * MS)).toBe(true);
    stream.judge.usage = { ...NO_USAGE, input: 400, output: 9_000 };
    expect(stream.covers(110, 100)).toBe(true);
    expect(stream.held - 400).toBeWithin(9_500, 15_000);
    stream.judge.usage = { ...NO_USAGE, input: 400, output: 900_000_000 };
    expect(stream.covers(120, 100)).toBe(true);
    expect(stream.held).toBeLessThan(75_000);
  });

  test.each<[string, Partial<Usage>, number]>([
    ["all of it read", { input: 500 }, 500],
    ["most of it from its cache, at the price of that", { input: 50, cacheRead: 450 }, 50 + 45],
    ["nothing yet", { input: 0 }, 1_000],
    ["less than any text can have", { input: 99 }, 1_000],
    ["more than it can have", { input: 1_001 }, 1_000],
  ])(
    "gives back what the prompt does not need, once the host says what it has: %s",
    async (_, usage, held) => {
      const stream = await Stream.open(0);
      stream.judge.usage = { ...NO_USAGE, input: 0, output: 0, ...usage };
      expect(stream.covers(1, 10)).toBe(true);
      expect(stream.held - 2_000).toBe(held);
    },
  );

  test("gives back what a count shows not to be needed, and never takes more for it", async () => {
    const stream = await Stream.open(0);
    stream.hold.promptHas(700);
    expect(stream.held).toBe(2_700);
    stream.hold.promptHas(900);
    stream.hold.promptHas(2_000_000);
    expect(stream.held).toBe(2_700);
  });

  test("writes a line into the journal only for what is worth it", async () => {
    const stream = await Stream.open(100_000);
    stream.hold.promptHas(950);
    for (let tokens = 0; tokens < 1_400; tokens += 10) stream.covers(tokens, 20);
    expect(stream.changes).toBe(0);
  });
});
