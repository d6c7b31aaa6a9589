import { expect, test } from "bun:test";
import { RunningCount } from "../../../src/generation/stream/running-count.ts";

/** A text of which 100 tokens more have come at each look; a count ends when the test says so. */
function running() {
  const text = {
    came: 0,
    reported: 0,
    get moment() {
      return { length: text.came, unkept: 0, estimate: text.came };
    },
    get reportMoment() {
      return { length: text.reported, unkept: 0, estimate: text.reported };
    },
    since: ({ length }: { length: number }) => ({ texts: [`${text.came - length}`], unkept: 1 }),
  };
  const counts: PromiseWithResolvers<number | null>[] = [];
  const pieces: string[] = [];
  const count = new RunningCount(text, {
    answer: ([piece]) => {
      pieces.push(piece!);
      counts.push(Promise.withResolvers());
      return counts.at(-1)!.promise;
    },
  });
  const tooLow: number[] = [];
  const next = (tokens: number) => {
    text.came += tokens;
    count.update((by) => tooLow.push(by));
  };
  const end = async (tokens: number | null) => {
    counts.at(-1)!.resolve(tokens);
    await count.counting;
  };
  return { text, count, pieces, tooLow, next, end };
}

test("64 tokens are counted, fewer wait for more", async () => {
  const { pieces, tooLow, next, end } = running();
  next(63);
  expect(pieces).toEqual([]);
  next(1);
  expect(pieces).toEqual(["64"]);
  await end(50);
  // What was not kept counts as one.
  expect(tooLow).toEqual([-13]);
});

test("one piece is counted at a time, and each once", async () => {
  const { count, pieces, next, end } = running();
  next(100);
  next(100);
  expect([pieces, count.counting]).toEqual([["100"], expect.any(Promise)]);
  await end(100);
  expect(count.counting).toBeNull();
  next(0);
  expect(pieces).toEqual(["100", "100"]);
});

test("a count that the host overtook by a report of its own is not used", async () => {
  const { text, count, pieces, tooLow, next, end } = running();
  next(100);
  text.reported = 80;
  count.reported();
  await end(10);
  expect(tooLow).toEqual([]);
  next(50);
  expect(pieces).toEqual(["100", "70"]);
});

test("after there was too much to count, the estimate stands", async () => {
  const { pieces, tooLow, next, end } = running();
  next(100);
  await end(null);
  next(1_000);
  expect([pieces, tooLow]).toEqual([["100"], []]);
});
