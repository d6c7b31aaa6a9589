import { expect, test } from "bun:test";
import { type CountEach, DeliveredCounts } from "../../src/generation/delivered-counts.ts";
import type { Reservation } from "../../src/ledger/reservation.ts";
import { AnswerText } from "../../src/tokens/answer-text.ts";

/** Each word counts as one token. */
const countWords: CountEach = async (pieces) =>
  pieces.map(({ texts }) => texts.join("").split(" ").length - 1);

function counted(countEach: CountEach) {
  const delivered = new Map<string, number>();
  const batches: number[] = [];
  const ledger = { delivered: (of: Reservation, tokens: number) => void delivered.set(String(of), tokens) };
  const counts = new DeliveredCounts(ledger, (pieces) => {
    // Nothing to count: it loads a vocabulary.
    if (pieces.some(({ texts }) => texts.length > 0)) batches.push(pieces.length);
    return countEach(pieces);
  });
  const open = (name: string) => {
    const text = new AnswerText();
    counts.add(name as unknown as Reservation, text, "o200k");
    return text;
  };
  return { counts, delivered, batches, open };
}
const write = (text: AnswerText, words: number) => text.add(" word".repeat(words), 0);

test("each piece is counted once, and one token less for each further cut", async () => {
  const { counts, delivered, open } = counted(countWords);
  const text = open("a");
  write(text, 100);
  await counts.count();
  expect(delivered.get("a")).toBe(100);
  write(text, 50);
  await counts.count();
  expect(delivered.get("a")).toBe(149);
});

test("nothing is counted of a stream that wrote little since the last time, and of one that ended", async () => {
  const { counts, open, batches } = counted(countWords);
  const text = open("a");
  write(text, 160);
  await counts.count();
  write(text, 7);
  expect(counts.count()).toBeNull();
  counts.remove("a" as unknown as Reservation);
  write(text, 100);
  expect(counts.count()).toBeNull();
  expect(batches).toEqual([1]);
});

test("many streams are counted together, as many as 256 KiB at once", async () => {
  const { counts, delivered, open, batches } = counted(countWords);
  for (let stream = 0; stream < 4; stream++) write(open(`s${stream}`), 20_000);
  await counts.count();
  expect(batches).toEqual([3, 1]);
  expect([...delivered.values()]).toEqual([20_000, 20_000, 20_000, 20_000]);
});

test("what the thread cannot count is billed at half of its estimate", async () => {
  const { counts, delivered, open } = counted(async () => null);
  const text = open("a");
  write(text, 100);
  await counts.count();
  expect(delivered.get("a")).toBe(Math.floor(text.estimate / 2));
});

test("the vocabulary is loaded when the first stream begins, not when it is first counted", () => {
  const loaded: string[] = [];
  const counts = new DeliveredCounts({ delivered() {} }, async (pieces) => {
    loaded.push(...pieces.map(({ family, texts }) => `${family} ${texts.length}`));
    return null;
  });
  for (const family of ["o200k", "o200k", "cl100k"] as const)
    counts.add({} as Reservation, new AnswerText(), family);
  expect(loaded).toEqual(["o200k 0", "cl100k 0"]);
});

test("a count that takes longer than the time between two is not asked for twice", async () => {
  const requested = Promise.withResolvers<void>();
  const { counts, open } = counted(async (pieces) => {
    await requested.promise;
    return countWords(pieces);
  });
  write(open("a"), 10);
  const counting = counts.count();
  expect(counts.count()).toBeNull();
  requested.resolve();
  await counting;
});
