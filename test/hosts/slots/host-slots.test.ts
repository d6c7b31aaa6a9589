import { describe, expect, test } from "bun:test";
import { AdaptiveLimit } from "../../../src/hosts/slots/adaptive-limit.ts";
import { HostSlots, MAX_WAITING, type Slot } from "../../../src/hosts/slots/host-slots.ts";
import { ManualClock } from "../../fakes/clock.ts";

const STAYS = new AbortController().signal;
const sender = (balanceId: string, keyId = "key", isFree = false) => ({ balanceId, keyId, isFree });
/** A key as shedding looks at it. */
const keyOf = (balanceId: string, id = "key") => ({ id, balanceId });
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("what a host takes at once", () => {
  test("is what the operator allows, until it complains; then a part of what it had", () => {
    const limit = new AdaptiveLimit(1_000);
    expect(limit.at(0)).toBe(1_000);
    limit.overloaded(100, 0, 10);
    expect(limit.at(10)).toBe(70);
  });

  test("complaints of one moment cut once: they are about the same crowd", () => {
    const limit = new AdaptiveLimit(1_000);
    for (let index = 0; index < 50; index++) limit.overloaded(100, index / 10, 10);
    expect(limit.at(10)).toBe(70);
    limit.overloaded(70, 11, 20);
    expect(limit.at(20)).toBe(49);
  });

  test("never falls to nothing, and never rises above what is allowed", () => {
    const limit = new AdaptiveLimit(20);
    for (let at = 1; at < 100; at++) limit.overloaded(2, at, at);
    expect(limit.at(100)).toBe(16);
    expect(limit.at(1e9)).toBe(20);
    const small = new AdaptiveLimit(2);
    small.overloaded(2, 0, 1);
    expect(small.at(1)).toBe(2);
  });

  test("doubles every ten seconds without a complaint", () => {
    const limit = new AdaptiveLimit(1_000);
    limit.overloaded(200, 0, 0);
    expect([0, 5_000, 10_000, 20_000, 60_000].map((at) => limit.at(at))).toEqual([140, 197, 280, 560, 1_000]);
  });

  test("settles near what a host can do, and few requests are refused on the way", () => {
    const limit = new AdaptiveLimit(10_000);
    const CAPACITY = 120;
    let [sent, refused] = [0, 0];
    // A crowd of 500 that all want in; the host answers within a second, and refuses above its capacity.
    for (let atMs = 1_000; atMs < 600_000; atMs += 1_000) {
      const crowd = Math.min(limit.at(atMs), 500);
      for (let index = CAPACITY; index < crowd; index++) limit.overloaded(crowd, atMs, atMs + 10);
      if (atMs < 60_000) continue;
      sent += crowd;
      refused += Math.max(0, crowd - CAPACITY);
    }
    expect((sent - refused) / (540 * CAPACITY)).toBeGreaterThan(0.85);
    expect(refused / sent).toBeLessThan(0.02);
  });
});

describe("the line before a host", () => {
  function fullHost(maxConcurrent = 2) {
    const host = { id: "h", maxConcurrent };
    const clock = new ManualClock();
    const slots = new HostSlots(clock);
    const taken = Array.from({ length: maxConcurrent }, (): Slot => slots.take(host)!);
    expect(slots.take(host)).toBeNull();
    return { host, clock, slots, taken };
  }

  test("a place that is given back goes to who waits, and is given back once only", async () => {
    const { host, slots, taken } = fullHost();
    const waiting = slots.wait(host, sender("key"), 1_000, STAYS);
    taken[0]!.release();
    taken[0]!.release();
    expect(await waiting).not.toBeNull();
    expect(slots.take(host)).toBeNull();
    expect([...slots.loads()]).toEqual([{ host: "h", inFlight: 2, limit: 2, waiting: 0, cut: 0 }]);
  });

  test("who waits too long, or leaves, gets none, and takes none from the others", async () => {
    const { host, clock, slots, taken } = fullHost();
    const leaving = new AbortController();
    const late = slots.wait(host, sender("a"), 1_000, STAYS);
    const left = slots.wait(host, sender("b"), 5_000, leaving.signal);
    const stays = slots.wait(host, sender("c"), 5_000, STAYS);
    leaving.abort();
    clock.advance(1_000);
    expect(await Promise.all([late, left])).toEqual([null, null]);
    taken[0]!.release();
    expect(await stays).not.toBeNull();
    expect(clock.pending).toBe(0);
  });

  test("each balance has its turn, whatever number of keys it has: a hundred requests of one do not keep another waiting", async () => {
    const { host, slots, taken } = fullHost(1);
    const order: string[] = [];
    const request = (balance: string, key?: string) =>
      void slots.wait(host, sender(balance, key), 1_000, STAYS).then((slot) => {
        order.push(balance);
        slot!.release();
      });
    for (let index = 0; index < 100; index++) request("greedy", `key ${index}`);
    request("modest");
    request("modest");
    taken[0]!.release();
    await settled();
    expect(order).toHaveLength(102);
    expect(order.slice(0, 4)).toEqual(["greedy", "modest", "greedy", "modest"]);
  });

  test("in a full line the greedy key makes room for others, never the other way round", async () => {
    const { host, slots } = fullHost(1);
    let shed = 0;
    for (let index = 0; index < MAX_WAITING; index++) {
      void slots.wait(host, sender("greedy"), 1_000, STAYS).then(() => {
        shed += 1;
      });
    }
    const fullFor = (balance: string, key: string, isFree: boolean) =>
      slots.full(host, keyOf(balance, key), isFree);
    expect(fullFor("greedy", "key", false)).toBe(true);
    expect(fullFor("greedy", "another", false)).toBe(false);
    expect(fullFor("modest", "key", false)).toBe(false);
    expect(fullFor("modest", "key", true)).toBe(true);
    expect(await slots.wait(host, sender("greedy"), 1_000, STAYS)).toBeNull();
    expect(shed).toBe(0);
    void slots.wait(host, sender("modest"), 1_000, STAYS);
    await settled();
    expect(shed).toBe(1);
    expect([...slots.loads()][0]!.waiting).toBe(MAX_WAITING);
  });

  test("a line full of free requests is full for free ones alone", async () => {
    const { host, slots, taken } = fullHost(1);
    for (let index = 0; index < MAX_WAITING; index++)
      void slots.wait(host, sender(`balance ${index}`, "key", true), 1_000, STAYS);
    expect(slots.full(host, keyOf("one more"), true)).toBe(true);
    expect(slots.full(host, keyOf("one more"), false)).toBe(false);
    const paid = slots.wait(host, sender("one more"), 1_000, STAYS);
    taken[0]!.release();
    expect(await paid).not.toBeNull();
  });

  test("a lower limit lets nobody in until enough have gone", () => {
    const { host, clock, slots, taken } = fullHost(100);
    clock.advance(1);
    taken[0]!.overloaded();
    for (const slot of taken.slice(0, 30)) slot.release();
    expect(slots.take(host)).toBeNull();
    taken[30]!.release();
    expect(slots.take(host)).not.toBeNull();
  });

  test("as the limit grows, who waits gets in before who comes", async () => {
    const { host, clock, slots, taken } = fullHost(100);
    clock.advance(1);
    taken[0]!.overloaded();
    for (const slot of taken.slice(0, 30)) slot.release();
    const waiting = slots.wait(host, sender("first"), 60_000, STAYS);
    clock.advance(1_000);
    expect(slots.take(host)).not.toBeNull();
    expect(await waiting).not.toBeNull();
  });
});

test.each([
  ["no paid routes, free ones lower", [], 21],
  ["paid routes, free ones do not lower", ["h"], 100],
])("at a host with %s the limit when the host complains", (_, paid, limit) => {
  const host = { id: "h", maxConcurrent: 100 };
  const clock = new ManualClock();
  const slots = new HostSlots(clock);
  slots.prepare([host], new Set(paid));
  const taken = Array.from({ length: 30 }, () => slots.take(host, undefined, true)!);
  clock.advance(1);
  taken[0]!.overloaded();
  expect([...slots.loads()][0]!.limit).toBe(limit);
});

test("free requests that have their half and fill the line are turned away, and paid ones are not", () => {
  const host = { id: "h", maxConcurrent: 4 };
  const slots = new HostSlots(new ManualClock());
  slots.prepare([host], new Set(["h"]));
  expect([1, 2, 3].map(() => slots.take(host, undefined, true) !== null)).toEqual([true, true, false]);
  for (let n = 0; n < MAX_WAITING; n++) void slots.wait(host, sender(`${n}`, "key", true), 60_000, STAYS);
  expect(slots.full(host, keyOf("one more"), true)).toBe(true);
  expect(slots.full(host, keyOf("one more"), false)).toBe(false);
});

test("a full line is no reason to turn away once the host takes more again", async () => {
  const host = { id: "h", maxConcurrent: 20 };
  const clock = new ManualClock();
  const slots = new HostSlots(clock);
  const taken = Array.from({ length: 20 }, () => slots.take(host)!);
  clock.advance(1);
  taken[0]!.overloaded();
  for (const slot of taken.slice(0, 4)) slot.release();
  for (let n = 0; n < MAX_WAITING; n++) void slots.wait(host, sender("key"), 60_000, STAYS);
  expect(slots.full(host, keyOf("key"), false)).toBe(true);
  clock.advance(10_000);
  expect(slots.full(host, keyOf("key"), false)).toBe(false);
});

describe("a worker's slots at a shared host", () => {
  function shared(maxConcurrent: number) {
    const messages: string[] = [];
    const slots = new HostSlots(new ManualClock(), (host, most) => ({
      request: (count) => messages.push(`${host} of ${most}: more ${count}`),
      giveBack: (count) => messages.push(`${host} of ${most}: give back ${count}`),
    }));
    const host = { id: "h", maxConcurrent };
    slots.prepare([host], new Set());
    return { slots, host, sent: () => messages.splice(0) };
  }

  test("are requested one ahead and one for each who waits, and never more than the host has", () => {
    const { slots, host, sent } = shared(4);
    expect(sent()).toEqual(["h of 4: more 1"]);
    slots.given("h", 4, 1);
    expect(slots.take(host)).not.toBeNull();
    expect(sent()).toEqual(["h of 4: more 1"]);
    void slots.wait(host, sender("key"), 1_000, STAYS);
    expect(sent()).toEqual(["h of 4: more 1"]);
    for (let n = 0; n < 10; n++) void slots.wait(host, sender("key"), 1_000, STAYS);
    expect(sent()).toEqual(["h of 4: more 1"]);
  });

  test("of a former limit go back: idle ones at once, ones in use with their request", () => {
    const { slots, host, sent } = shared(4);
    slots.given("h", 4, 2);
    const slot = slots.take(host)!;
    sent();
    slots.prepare([{ ...host, maxConcurrent: 8 }], new Set());
    expect(sent()).toEqual(["h of 4: give back 1", "h of 8: more 1"]);
    slot.release();
    expect(sent()).toEqual(["h of 4: give back 1"]);
    slots.given("h", 4, 1);
    expect(sent()).toEqual(["h of 4: give back 1"]);
  });

  test("go back when the host has left the configuration", () => {
    const { slots, sent } = shared(4);
    slots.given("h", 4, 2);
    sent();
    slots.prepare([], new Set());
    expect(sent()).toEqual(["h of 4: give back 2"]);
    expect([...slots.loads()]).toEqual([]);
  });
});
