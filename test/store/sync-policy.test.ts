import { describe, expect, test } from "bun:test";
import { SyncPolicy } from "../../src/store/journal/disk.ts";

const FAST_MS = 0.1;
const SLOW_MS = 4;
const SECOND = 1_000;

/** Syncs one by one, a millisecond apart and each taking so long; returns how many were done on the loop. */
function onLoop(policy: SyncPolicy, took: readonly number[], fromMs = 0, lines = 1): number {
  return took.filter((ms, index) => {
    const nowMs = fromMs + index;
    if (!policy.onLoop(lines, nowMs)) return false;
    policy.took(ms, nowMs + ms);
    return true;
  }).length;
}

const times = (count: number, ms: number) => new Array<number>(count).fill(ms);

describe("a sync", () => {
  test("of a fast disk is done on the event loop", () => {
    expect(onLoop(new SyncPolicy(FAST_MS, 0), times(1_000, FAST_MS))).toBe(1_000);
  });

  test("that many wait for leaves the loop to others", () => {
    const policy = new SyncPolicy(FAST_MS, 0);
    expect(onLoop(policy, times(10, FAST_MS), 0, 15)).toBe(10);
    expect(onLoop(policy, times(10, FAST_MS), 0, 16)).toBe(0);
  });

  test("of a slow disk is not, from the first", () => {
    expect(onLoop(new SyncPolicy(SLOW_MS, 0), times(1_000, SLOW_MS))).toBe(0);
  });

  test("of a disk that becomes slow is not any more, after four", () => {
    const policy = new SyncPolicy(FAST_MS, 0);
    onLoop(policy, times(100, FAST_MS));
    expect(onLoop(policy, times(500, SLOW_MS), 100)).toBe(4);
  });

  test.each([
    ["once", [50]],
    ["twice in a row, as where another process has the core", [2, 2]],
    ["every third time", [2, FAST_MS, FAST_MS, 2, FAST_MS, FAST_MS, 2]],
  ])("that takes long %s changes nothing", (_, slow) => {
    const policy = new SyncPolicy(FAST_MS, 0);
    const took = [...times(20, FAST_MS), ...slow, ...times(20, FAST_MS)];
    expect(onLoop(policy, took)).toBe(took.length);
  });

  test("of a slow disk is tried on the loop after a second, then after twice as long, up to a minute", () => {
    const policy = new SyncPolicy(SLOW_MS, 0);
    const triedAtS: number[] = [];
    for (let nowS = 0; nowS < 300; nowS++)
      if (onLoop(policy, times(5, SLOW_MS), nowS * SECOND) > 0) triedAtS.push(nowS);
    expect(triedAtS).toEqual([1, 4, 9, 18, 35, 68, 129, 190, 251]);
  });

  test("of a disk that is fast again is done on the loop again, and its next pause is short", () => {
    const policy = new SyncPolicy(SLOW_MS, 0);
    onLoop(policy, times(5, SLOW_MS), 1 * SECOND);
    expect(onLoop(policy, times(1_000, FAST_MS), 4 * SECOND)).toBe(1_000);
    onLoop(policy, times(5, SLOW_MS), 6 * SECOND);
    expect(onLoop(policy, times(100, FAST_MS), 8 * SECOND)).toBe(100);
  });
});
