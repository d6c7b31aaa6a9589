import { expect, test } from "bun:test";
import { FairQueue } from "../../src/units/fair-queue.ts";
import { ManualClock } from "../fakes/clock.ts";

const STAYS = new AbortController().signal;

function lineOf(most: number, ranks = 1) {
  const clock = new ManualClock();
  const queue = new FairQueue<string>(most, clock, ranks);
  const ended: string[] = [];
  const join = (turn: string, rank = 0) =>
    void queue
      .wait({ turn, size: 1, rank }, 1_000, STAYS)
      .then((slot) => ended.push(`${turn} ${slot ?? "refused"}`));
  return { clock, queue, ended, join };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a request whose client has left does not wait", async () => {
  const { queue, clock } = lineOf(2);
  expect(await queue.wait({ turn: "key", size: 1 }, 1_000, AbortSignal.abort())).toBeNull();
  expect([queue.waiting, clock.pending]).toEqual([0, 0]);
});

test("a request that got its slot no longer listens for its client to leave", async () => {
  const { queue } = lineOf(2);
  const leaving = new AbortController();
  let listening = 0;
  const signal = Object.assign(leaving.signal, {
    addEventListener: () => void (listening += 1),
    removeEventListener: () => void (listening -= 1),
  });
  const slot = queue.wait({ turn: "key", size: 1 }, 1_000, signal);
  expect(listening).toBe(1);
  queue.invite(() => "slot");
  expect(await slot).toBe("slot");
  expect(listening).toBe(0);
});

test("in a full line nobody makes room for one who would then wait with as many", async () => {
  const { queue, ended, join } = lineOf(5);
  for (const turn of ["a", "a", "a", "b", "b"]) join(turn);
  join("b");
  await settled();
  expect(ended).toEqual(["b refused"]);
  join("c");
  await settled();
  expect(ended).toEqual(["b refused", "a refused"]);
  expect(queue.waiting).toBe(5);
});

test("in a full line of those with the same number, the first of them makes room", async () => {
  const { ended, join } = lineOf(4);
  for (const turn of ["a", "b", "a", "b"]) join(turn);
  join("c");
  await settled();
  expect(ended).toEqual(["a refused"]);
});

test("keys of one turn take turns among themselves, and the greediest of them makes room first", async () => {
  const { queue, join } = lineOf(5);
  const order: string[] = [];
  const joinKey = (key: string) =>
    void queue.wait({ turn: "a", key, size: 1 }, 1_000, STAYS).then((slot) => order.push(`${key} ${slot}`));
  for (const key of ["greedy", "greedy", "greedy", "modest", "late"]) joinKey(key);
  join("b");
  queue.invite(() => "slot");
  await settled();
  expect(order).toEqual(["greedy null", "greedy slot", "modest slot", "late slot", "greedy slot"]);
});

test.each([
  ["the greediest of its keys makes room", ["batch", "batch", "batch", "chat"], ["batch"]],
  ["nobody does for who has as many", ["batch", "batch", "chat", "chat"], ["chat"]],
  ["nobody does where each has one", ["a", "b", "c", "d"], ["d"]],
])("in a full line of one turn %s", async (_, keys, expected) => {
  const { queue, clock } = lineOf(3);
  const refused: string[] = [];
  for (const key of keys)
    void queue.wait({ turn: "a", key, size: 1 }, 1_000, STAYS).then(() => refused.push(key));
  await settled();
  expect(refused).toEqual(expected);
  expect([queue.waiting, clock.pending]).toEqual([3, 3]);
});

test("a full line makes room for a lower rank, and never for a higher one", async () => {
  const { queue, ended, join } = lineOf(2, 2);
  join("paid");
  join("unpaid", 1);
  expect([queue.isFree(0), queue.isFree(1)]).toEqual([false, false]);
  join("paid");
  await settled();
  expect(ended).toEqual(["unpaid refused"]);
  join("late", 1);
  await settled();
  expect(ended).toEqual(["unpaid refused", "late refused"]);
  expect(queue.waiting).toBe(2);
});

test("only those who wait at the same or a lower rank are in the way", () => {
  const { queue, join } = lineOf(2, 2);
  join("unpaid", 1);
  expect([queue.isFree(0), queue.isFree(1)]).toEqual([true, false]);
});

test("in a full line in which each has one, nobody makes room", async () => {
  const { ended, join } = lineOf(2);
  for (const turn of ["a", "b", "c"]) join(turn);
  await settled();
  expect(ended).toEqual(["c refused"]);
});

test("what weighs more makes room only where that suffices", async () => {
  const { queue, ended, join } = lineOf(6, 2);
  const joinLarge = (turn: string, weight: number, rank = 0) =>
    void queue.wait({ turn, size: 1, rank, weight }, 1_000, STAYS).then(() => ended.push(`${turn} refused`));
  joinLarge("a", 2);
  joinLarge("a", 2);
  join("free", 1);
  joinLarge("b", 3);
  await settled();
  // Two of the four that `a` weighs, after those without credit.
  expect(ended).toEqual(["free refused", "a refused"]);
  joinLarge("c", 4);
  await settled();
  expect(ended).toEqual(["free refused", "a refused", "c refused"]);
  expect([queue.waiting, queue.full]).toEqual([2, false]);
  queue.invite(() => "slot");
  expect([queue.waiting, queue.full]).toEqual([0, false]);
  for (let n = 0; n < 6; n++) join("d");
  expect(queue.full).toBe(true);
});
