import { describe, expect, test } from "bun:test";
import { SyncPlace } from "../../src/store/journal/sync-place.ts";

const FAST_MS = 0.1;
const SLOW_MS = 4;
const SECOND = 1_000;

/** Syncs one by one, a millisecond apart and each taking so long; returns how many were done on the loop. */
function onLoop(place: SyncPlace, took: readonly number[], fromMs = 0, lines = 1): number {
  return took.filter((ms, index) => {
    const nowMs = fromMs + index;
    if (!place.onLoop(lines, nowMs)) return false;
    place.took(ms, nowMs + ms);
    return true;
  }).length;
}

const times = (count: number, ms: number) => new Array<number>(count).fill(ms);

describe("a sync", () => {
  test("of a fast disk is done on the event loop", () => {
    expect(onLoop(new SyncPlace(FAST_MS, 0), times(1_000, FAST_MS))).toBe(1_000);
  });

  test("that many wait for leaves the loop to others", () => {
    const place = new SyncPlace(FAST_MS, 0);
    expect(onLoop(place, times(10, FAST_MS), 0, 15)).toBe(10);
    expect(onLoop(place, times(10, FAST_MS), 0, 16)).toBe(0);
  });

  test("of a slow disk is not, from the first", () => {
    expect(onLoop(new SyncPlace(SLOW_MS, 0), times(1_000, SLOW_MS))).toBe(0);
  });

  test("of a disk that becomes slow is not any more, after a few", () => {
    const place = new SyncPlace(FAST_MS, 0);
    onLoop(place, times(100, FAST_MS));
    expect(onLoop(place, times(1_000, SLOW_MS), 100)).toBeLessThan(4);
  });

  test("that takes long once changes nothing", () => {
    const place = new SyncPlace(FAST_MS, 0);
    expect(onLoop(place, [...times(20, FAST_MS), 50, ...times(20, FAST_MS)])).toBe(41);
  });

  test("of a slow disk is tried on the loop twice a minute", () => {
    const place = new SyncPlace(SLOW_MS, 0);
    expect(onLoop(place, times(1_000, SLOW_MS), 31 * SECOND)).toBe(1);
    expect(onLoop(place, times(1_000, SLOW_MS), 62 * SECOND)).toBe(1);
  });

  test("of a disk that is fast again is done on the loop again", () => {
    const place = new SyncPlace(SLOW_MS, 0);
    expect(onLoop(place, times(1_000, FAST_MS), 31 * SECOND)).toBe(1_000);
  });
});
