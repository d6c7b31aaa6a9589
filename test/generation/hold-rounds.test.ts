import { expect, test } from "bun:test";
import type { Price } from "../../src/catalog/price.ts";
import { NO_TOKENS } from "../../src/catalog/tokens.ts";
import { Hold } from "../../src/generation/hold.ts";
import { RunningStream } from "../../src/generation/stream/running-stream.ts";
import type { GrantAnswer } from "../../src/ledger/grants.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Reservation } from "../../src/ledger/reservation.ts";
import type { GenerationRequest, Usage } from "../../src/surfaces/surface.ts";

/** A nano-dollar a token. */
const PRICE = { input: 0, output: 1e6, cacheRead: 0, cacheWrite: 0 } as Price;
const ROUNDS = 32;

/** A stream that holds 100 tokens, on a ledger that says what it is made to. */
function holdOn(ledger: { room: boolean; answer: GrantAnswer }, promptCost = 0, price = PRICE) {
  const requested: number[] = [];
  const reservation = {
    request: { price, amount: 100 },
    held: 100,
    isOpen: true,
    beyond: (cost: number) => cost - 100,
  };
  const books = {
    extend: (_: unknown, beyond: number) => {
      if (ledger.room) reservation.held += beyond;
      return ledger.room;
    },
    coversMore: () => ledger.room,
    growthShortfall: () => null,
    shrink: () => {},
    replenishHold: async (_: unknown, amount: number) => {
      requested.push(amount);
      return ledger.answer;
    },
  };
  const hold = new Hold(
    books as unknown as Ledger,
    reservation as unknown as Reservation,
    { bound: promptCost, retentions: {}, hasAudio: false },
    100,
    64_000,
    true,
    { tokensPerSecond: 250, aheadTokens: 512, stepTokens: 4_096, leastStepTokens: 64 },
  );
  const judge: { usage: Usage | null; text: { estimateSinceReport: number } } = {
    usage: null,
    text: { estimateSinceReport: 0 },
  };
  const request = {
    promptEstimate: 0,
    promptUnseen: false,
    promptWithoutAudio: null,
    promptRetentions: {},
    answersInAudio: false,
  } as unknown as GenerationRequest;
  hold.begin(new RunningStream(request, judge, price, 250, 0, 512));
  const report = (input: number) => {
    judge.usage = { ...NO_TOKENS, input };
  };
  return { hold, requested, reservation, report };
}

test("others who say each time that there is room, which is then gone, are requested a bounded number of times", async () => {
  const ledger = { room: false, answer: "room" as GrantAnswer };
  const { hold, requested } = holdOn(ledger);
  hold.covers(50, 0);
  for (let more = hold.more(); more !== null; more = hold.more()) {
    await more;
    expect(requested.length).toBeLessThanOrEqual(ROUNDS);
  }
  expect(requested).toHaveLength(ROUNDS);
});

test("a prompt that its host reports beyond a step raises the hold of prompt and answer, or stops the stream", async () => {
  const above = [{ ...PRICE, input: 1e6, output: 3e6, prompt: 5_000 }];
  const price = { ...PRICE, above } as unknown as Price;
  const ledger = { room: true, answer: "short" as GrantAnswer };
  const { hold, requested, reservation, report } = holdOn(ledger, 10_000, price);
  // Counted, it is below the step; a token of answer is held at one nano-dollar.
  hold.promptHas(3_000);
  expect(hold.covers(100, 0)).toBeTrue();
  const { held } = reservation;
  report(6_000);
  ledger.room = false;
  expect(hold.covers(100, 0)).toBeFalse();
  await hold.more();
  expect(requested).toEqual([6_000 + 3 * held - held]);
  ledger.room = true;
  expect(hold.covers(100, 0)).toBeTrue();
  expect(reservation.held).toBe(6_000 + 3 * held);
});

test("so is what an ended answer costs beyond its hold", async () => {
  const ledger = { room: false, answer: "room" as GrantAnswer };
  const { hold, requested } = holdOn(ledger);
  await hold.cover(150 as Parameters<Hold["cover"]>[0]);
  expect(requested).toEqual(Array(ROUNDS).fill(50));
});

test("once it could grow, a stream has all its rounds again", async () => {
  const ledger = { room: false, answer: "room" as GrantAnswer };
  const { hold, requested } = holdOn(ledger);
  hold.covers(50, 0);
  for (let round = 0; round < ROUNDS - 1; round++) await hold.more();
  ledger.room = true;
  expect(hold.covers(60, 0)).toBeTrue();
  ledger.room = false;
  expect(hold.covers(60_000, 0)).toBeFalse();
  for (let more = hold.more(); more !== null; more = hold.more()) await more;
  expect(requested).toHaveLength(ROUNDS - 1 + ROUNDS);
});

test.each(["short", "held", "unanswered"] as const)(
  "after the answer %s nobody is requested any more",
  async (answer) => {
    const { hold, requested } = holdOn({ room: false, answer });
    hold.covers(50, 0);
    await hold.more();
    expect(hold.more()).toBeNull();
    expect(requested).toHaveLength(1);
  },
);

test("as much is requested as was written beyond the hold, and a step at least", async () => {
  const { hold, requested } = holdOn({ room: false, answer: "room" });
  expect(hold.covers(120, 0)).toBeFalse();
  await hold.more();
  expect(hold.covers(400, 0)).toBeFalse();
  await hold.more();
  expect(requested).toEqual([64, 300]);
});

test("a prompt that costs nothing is never a large part of what is left", () => {
  expect(holdOn({ room: false, answer: "short" }).hold.isPromptLarge).toBeFalse();
});
