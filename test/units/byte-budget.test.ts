import { expect, test } from "bun:test";
import { ByteBudget } from "../../src/units/byte-budget.ts";
import { ManualClock } from "../fakes/clock.ts";

const STAYS = new AbortController().signal;

function budgetOf(most: number) {
  const clock = new ManualClock();
  const budget = new ByteBudget(most, clock);
  return {
    clock,
    budget,
    take: (bytes: number, turn = "key", pays = true) => budget.take({ turn, pays }, bytes, 1_000, STAYS),
  };
}

test("never more is taken than there is, and what is given back twice counts once", async () => {
  const { budget, take } = budgetOf(100);
  const first = (await take(60))!;
  const second = take(60);
  expect(budget.taken).toBe(60);
  first();
  first();
  expect(await second).not.toBeNull();
  expect(budget.taken).toBe(60);
});

test("a large one is not passed over by small ones for ever", async () => {
  const { budget, take } = budgetOf(100);
  const first = (await take(60))!;
  const large = take(90);
  const small = take(10);
  expect(budget.waiting).toBe(2);
  first();
  expect(await large).not.toBeNull();
  expect(await small).not.toBeNull();
  expect(budget.taken).toBe(100);
});

test("one that is larger than all there is has it to itself", async () => {
  const { budget, take } = budgetOf(100);
  const huge = (await take(1_000))!;
  const next = take(1);
  huge();
  expect(await next).not.toBeNull();
  expect(budget.taken).toBe(1);
});

test("who waits too long gets none; a larger budget after a reload lets in who waits", async () => {
  const { clock, budget, take } = budgetOf(100);
  await take(90);
  const late = take(90);
  clock.advance(1_000);
  expect(await late).toBeNull();
  const waiting = take(90);
  budget.resize(200);
  expect(await waiting).not.toBeNull();
  expect(clock.pending).toBe(0);
});

test("keys have their turns", async () => {
  const { take } = budgetOf(1);
  let release = (await take(1))!;
  const order: string[] = [];
  for (const key of ["greedy", "greedy", "greedy", "modest"]) {
    void Promise.resolve(take(1, key)).then((next) => {
      order.push(key);
      release = next!;
    });
  }
  for (let turn = 0; turn < 4; turn++) {
    release();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(order).toEqual(["greedy", "modest", "greedy", "greedy"]);
});

test("who could not pay has a quarter of it, and waits behind who could", async () => {
  const { budget, take } = budgetOf(100);
  const free = (bytes: number, turn = "net") => take(bytes, turn, false);
  const first = (await free(20))!;
  const second = free(20);
  expect([budget.taken, budget.waiting]).toEqual([20, 1]);
  const paid = (await take(60))!;
  const order: string[] = [];
  const [large, late] = [take(60), free(5, "other")];
  void Promise.resolve(large).then(() => order.push("paid"));
  void Promise.resolve(late).then(() => order.push("other"));
  first();
  // There would be room for those without credit, but one who pays waits for more.
  expect([budget.taken, budget.waiting]).toEqual([60, 3]);
  paid();
  expect([await second, await late]).not.toContain(null);
  expect(order).toEqual(["paid", "other"]);
  expect(budget.taken).toBe(85);
});

test("a body larger than the part of those who could not pay has that part to itself", async () => {
  const { budget, take } = budgetOf(100);
  const large = (await take(60, "net", false))!;
  const next = take(1, "net", false);
  expect(budget.taken).toBe(60);
  large.keepOnly(20);
  expect(await next).not.toBeNull();
  large();
  expect(budget.taken).toBe(1);
});

test("room is scarce where more than half is taken, or somebody waits", async () => {
  const { budget, take } = budgetOf(100);
  await take(50);
  expect([budget.scarce, budget.scarceUnpaid]).toEqual([false, false]);
  const small = (await take(1))!;
  expect(budget.scarce).toBe(true);
  small();
  expect(budget.scarce).toBe(false);
  take(60);
  expect([budget.scarce, budget.scarceUnpaid]).toEqual([true, true]);
});

test("bodies that are paid for leave the part of those who could not pay as it is", async () => {
  const { budget, take } = budgetOf(100);
  const large = (await take(60, "net", false))!;
  const paid = take(30);
  expect(budget.taken).toBe(90);
  (await paid)!();
  expect(budget.scarceUnpaid).toBe(true);
  large.keepOnly(20);
  (await take(30))!();
  expect(budget.scarceUnpaid).toBe(true);
  expect(take(6, "net", false)).toBeInstanceOf(Promise);
});

test("what was given back is not taken again by keeping more", async () => {
  const { budget, take } = budgetOf(100);
  const release = (await take(60))!;
  release.keepOnly(20);
  release.keepOnly(50);
  expect(budget.taken).toBe(20);
  release();
  release.keepOnly(50);
  expect(budget.taken).toBe(0);
});

test("what waits may take as much again: some 170 large bodies, or a thousand small ones", async () => {
  const waitingOf = (bytes: number) => {
    const { budget, take } = budgetOf(268_435_456);
    take(268_435_456);
    for (let n = 0; n < 2_000; n++) void take(bytes, `key ${n}`);
    return budget.waiting;
  };
  expect(waitingOf(10_000_000)).toBe(166);
  expect(waitingOf(1_000_000)).toBe(250);
  expect(waitingOf(100_000)).toBe(1_000);
});
