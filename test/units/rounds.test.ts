import { expect, test } from "bun:test";
import { Rounds } from "../../src/units/rounds.ts";
import { ManualClock } from "../fakes/clock.ts";

test("a stop ends the pauses; the round that runs sees it, is waited for, and is the last", async () => {
  const clock = new ManualClock();
  const running: (() => void)[] = [];
  const rounds = new Rounds(
    clock,
    10,
    () => new Promise<number>((resolve) => running.push(() => resolve(100))),
  );
  clock.advance(10);
  running[0]!();
  await Promise.resolve();
  await Promise.resolve();
  clock.advance(100);
  expect([running.length, rounds.stopped]).toEqual([2, false]);
  let isOver = false;
  const stopped = rounds.stop().then(() => (isOver = true));
  await Promise.resolve();
  expect([rounds.stopped, isOver]).toEqual([true, false]);
  running[1]!();
  await stopped;
  clock.advance(1_000);
  expect([running.length, clock.pending]).toEqual([2, 0]);
});
