import { expect, test } from "bun:test";
import { DurableWaiters } from "../../src/store/journal/durable-waiters.ts";

test("all who wait for one batch share a promise, and who comes while it is on its way waits for the next", async () => {
  const waiters = new DurableWaiters();
  const first = waiters.wait(1);
  expect(waiters.wait(3)).toBe(first);
  expect(waiters.wait(2)).toBe(first);
  waiters.sent(4);
  expect(waiters.wait(4)).toBe(first);
  const next = waiters.wait(5);
  expect(next).not.toBe(first);
  expect(waiters.wait(7)).toBe(next);
  waiters.answer(true, 4);
  waiters.answer(false, 6);
  waiters.sent(7);
  waiters.answer(true, 7);
  expect([await first, await next]).toEqual([true, true]);
});

test("a batch that has to be sent again does not make its waiters deaf, nor those who came meanwhile", async () => {
  const waiters = new DurableWaiters();
  const first = waiters.wait(1);
  waiters.sent(1);
  const second = waiters.wait(2);
  waiters.sent(2);
  waiters.answer(true, 2);
  expect([await first, await second]).toEqual([true, true]);
  const third = waiters.wait(3);
  waiters.answer(false, Number.POSITIVE_INFINITY);
  expect(await third).toBe(false);
  waiters.sent(3);
  waiters.answer(true, 3);
  expect(waiters.wait(4)).not.toBe(third);
});
