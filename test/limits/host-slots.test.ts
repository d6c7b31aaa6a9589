import { describe, expect, test } from "bun:test";
import { AdaptiveLimit } from "../../src/limits/adaptive-limit.ts";
import { HostSlots, MAX_WAITING, type Slot } from "../../src/limits/host-slots.ts";
import { ManualClock } from "../fakes/clock.ts";

const STAYS = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("what a host takes at once", () => {
  test("is what the operator allows, until it complains; then a part of what it had", () => {
    const limit = new AdaptiveLimit(1_000);
    expect(limit.current).toBe(1_000);
    limit.overloaded(100, 0, 10);
    expect(limit.current).toBe(70);
  });

  test("complaints of one moment cut once: they are about the same crowd", () => {
    const limit = new AdaptiveLimit(1_000);
    for (let index = 0; index < 50; index++) limit.overloaded(100, index / 10, 10);
    expect(limit.current).toBe(70);
    limit.overloaded(70, 11, 20);
    expect(limit.current).toBe(49);
  });

  test("never falls to nothing, and never rises above what is allowed", () => {
    const limit = new AdaptiveLimit(20);
    for (let at = 1; at < 100; at++) limit.overloaded(2, at, at);
    expect(limit.current).toBe(4);
    for (let answers = 0; answers < 1_000; answers++) limit.served(20);
    expect(limit.current).toBe(20);
  });

  test("rises by a tenth with every round of answers, when it is used", () => {
    const limit = new AdaptiveLimit(1_000);
    limit.overloaded(200, 0, 1);
    for (let answers = 0; answers <= 140; answers++) limit.served(140);
    expect(limit.current).toBe(154);
    for (let answers = 0; answers < 1_000; answers++) limit.served(10);
    expect(limit.current).toBe(154);
  });

  test("settles near what a host can do", () => {
    const limit = new AdaptiveLimit(10_000);
    const CAPACITY = 120;
    const seen: number[] = [];
    for (let round = 1; round < 400; round++) {
      // As many requests as are allowed, each round; the host refuses those above its capacity.
      const crowd = Math.min(limit.current, 500);
      for (let index = 0; index < crowd; index++) {
        if (index < CAPACITY) limit.served(crowd);
        else limit.overloaded(crowd, round, round);
      }
      if (round > 50) seen.push(crowd);
    }
    const mean = seen.reduce((a, b) => a + b) / seen.length;
    expect(mean).toBeGreaterThan(CAPACITY * 0.8);
    expect(mean).toBeLessThan(CAPACITY * 1.1);
  });
});

describe("the line before a host", () => {
  function fullHost(most = 2): { clock: ManualClock; slots: HostSlots; taken: Slot[] } {
    const clock = new ManualClock();
    const slots = new HostSlots(clock);
    const taken = Array.from({ length: most }, () => slots.take("h", most)!);
    expect(slots.take("h", most)).toBeNull();
    return { clock, slots, taken };
  }

  test("a place that is given back goes to who waits, and is given back once only", async () => {
    const { slots, taken } = fullHost();
    const waiting = slots.wait("h", 2, "key", 1_000, STAYS);
    taken[0]!.release();
    taken[0]!.release();
    expect(await waiting).not.toBeNull();
    expect(slots.take("h", 2)).toBeNull();
    expect([...slots.lines()]).toEqual([{ host: "h", inFlight: 2, limit: 2, waiting: 0 }]);
  });

  test("who waits too long, or leaves, gets none, and takes none from the others", async () => {
    const { clock, slots, taken } = fullHost();
    const leaving = new AbortController();
    const late = slots.wait("h", 2, "a", 1_000, STAYS);
    const left = slots.wait("h", 2, "b", 5_000, leaving.signal);
    const stays = slots.wait("h", 2, "c", 5_000, STAYS);
    leaving.abort();
    clock.advance(1_000);
    expect(await Promise.all([late, left])).toEqual([null, null]);
    taken[0]!.release();
    expect(await stays).not.toBeNull();
    expect(clock.pending).toBe(0);
  });

  test("each key has its turn: a hundred requests of one do not keep another waiting", async () => {
    const { slots, taken } = fullHost(1);
    const order: string[] = [];
    const ask = (key: string) =>
      void slots.wait("h", 1, key, 1_000, STAYS).then((slot) => {
        order.push(key);
        slot!.release();
      });
    for (let index = 0; index < 100; index++) ask("greedy");
    ask("modest");
    ask("modest");
    taken[0]!.release();
    await settled();
    expect(order).toHaveLength(102);
    expect(order.slice(0, 4)).toEqual(["greedy", "modest", "greedy", "modest"]);
  });

  test("in a full line the greedy key makes room for others, never the other way round", async () => {
    const { slots } = fullHost(1);
    let shed = 0;
    for (let index = 0; index < MAX_WAITING; index++) {
      void slots.wait("h", 1, "greedy", 1_000, STAYS).then(() => {
        shed += 1;
      });
    }
    expect(slots.full("h")).toBe(true);
    expect(await slots.wait("h", 1, "greedy", 1_000, STAYS)).toBeNull();
    expect(shed).toBe(0);
    void slots.wait("h", 1, "modest", 1_000, STAYS);
    await settled();
    expect(shed).toBe(1);
    expect([...slots.lines()][0]!.waiting).toBe(MAX_WAITING);
  });

  test("a lower limit lets nobody in until enough have gone", () => {
    const { slots, taken } = fullHost(10);
    taken[0]!.overloaded();
    for (const slot of taken.slice(0, 3)) slot.release();
    expect(slots.take("h", 10)).toBeNull();
    taken[3]!.release();
    expect(slots.take("h", 10)).not.toBeNull();
  });
});
