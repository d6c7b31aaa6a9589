import { expect, test } from "bun:test";
import { RateWindow } from "../../../src/ledger/limits/rate-window.ts";

test("no span of 60 seconds ever holds more than the limit, wherever it begins", () => {
  const limit = 10;
  const window = new RateWindow();
  const takenAt: number[] = [];
  for (let at = 0; at < 400_000; at += 137) {
    if (window.taken(at) + 1 <= limit) {
      window.take(1, at);
      takenAt.push(at);
    }
  }
  for (const from of takenAt) {
    const within = takenAt.filter((at) => at >= from && at < from + 60_000);
    expect(within.length).toBeLessThanOrEqual(limit);
  }
  expect(takenAt.length).toBeGreaterThan(limit * 6);
});

test("the seconds it names are enough, and one second less is not", () => {
  const window = new RateWindow();
  window.take(3, 500);
  window.take(4, 10_250);
  for (const [amount, limit, at] of [
    [1, 7, 20_000],
    [4, 7, 20_000],
    [3, 7, 20_000],
    [7, 7, 20_000],
    [5, 8, 59_999],
  ] as const) {
    const seconds = window.secondsUntilFits(amount, limit, at)!;
    const copy = new RateWindow();
    copy.take(3, 500);
    copy.take(4, 10_250);
    expect(copy.taken(at + (seconds - 1) * 1_000 - 1) + amount).toBeGreaterThan(limit);
    expect(copy.taken(at + seconds * 1_000) + amount).toBeLessThanOrEqual(limit);
  }
});

test("a slot leaves a minute after it was last taken from, so that no refusal says to wait longer", () => {
  const window = new RateWindow();
  window.take(1, 500);
  window.take(1, 999);
  expect(window.secondsUntilFits(1, 2, 999)).toBe(60);
  expect(window.taken(60_998)).toBe(2);
  expect(window.taken(60_999)).toBe(0);
});

test("what is taken after hours of rest is counted as ever", () => {
  const window = new RateWindow();
  const slot = window.take(2, 500);
  window.take(3, 7_200_000);
  window.adjust(slot, 5, 7_200_000);
  expect(window.taken(7_200_000)).toBe(3);
  expect(window.secondsUntilFits(1, 3, 7_210_000)).toBe(50);
});

test("what is taken exactly 61 seconds after something else counts alone, although nobody looked in between", () => {
  const window = new RateWindow();
  window.take(2, 0);
  window.take(3, 61_000);
  expect(window.taken(61_000)).toBe(3);
  expect(window.taken(120_999)).toBe(3);
});

test("an amount larger than the limit never fits", () => {
  expect(new RateWindow().secondsUntilFits(11, 10, 0)).toBeNull();
});

test("an estimate is corrected within the minute, and forgotten after it", () => {
  const window = new RateWindow();
  const slot = window.take(1_000, 0);
  window.adjust(slot, -900, 5_000);
  expect(window.taken(5_000)).toBe(100);
  window.adjust(slot, -100, 120_000);
  expect(window.taken(120_000)).toBe(0);
});

test("a clock that stands still or steps back a little frees nothing", () => {
  const window = new RateWindow();
  window.take(5, 30_000);
  expect(window.taken(29_000)).toBe(5);
  expect(window.taken(30_000)).toBe(5);
});

test("the wait for room counts only what is still within the minute", () => {
  const window = new RateWindow();
  window.take(10, 0);
  window.take(5, 30_000);
  expect(window.secondsUntilFits(10, 10, 60_000)).toBe(30);
  expect(window.secondsUntilFits(1, 10, 90_000)).toBe(1);
});
