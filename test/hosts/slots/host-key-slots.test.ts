import { describe, expect, test } from "bun:test";
import type { HostKey } from "../../../src/catalog/catalog.ts";
import { HostKeySlots, type KeyLease, type KeyRequest } from "../../../src/hosts/slots/host-key-slots.ts";
import { ManualClock } from "../../fakes/clock.ts";

const key = (name: string, limits: Partial<HostKey> = {}): HostKey => ({
  name,
  from: "env",
  secret: { text: `sk-${name}` },
  weight: 1,
  ...limits,
});

function slotsOf(keys: readonly HostKey[], processes = 1) {
  const clock = new ManualClock();
  const retired: string[] = [];
  const slots = new HostKeySlots(clock, processes, (name) => retired.push(name));
  slots.use(keys);
  const take = (request: Partial<KeyRequest> = {}): KeyLease | null =>
    slots.take({ conversation: null, model: "m", tokens: 0, ...request });
  const nameFor = (conversation: number) => {
    const lease = take({ conversation });
    lease?.release();
    return lease?.key.name ?? null;
  };
  return { clock, slots, retired, take, nameFor };
}

/** A host's own count of a key: never more than so many in any 60 seconds. */
class HostsCount {
  private readonly at: { ms: number; amount: number }[] = [];
  refused = 0;
  total = 0;

  constructor(private readonly most: number) {}

  take(amount: number, ms: number): void {
    while (this.at.length > 0 && this.at[0]!.ms <= ms - 60_000) this.at.shift();
    const taken = this.at.reduce((sum, one) => sum + one.amount, 0);
    if (taken + amount > this.most) this.refused += 1;
    else {
      this.at.push({ ms, amount });
      this.total += amount;
    }
  }
}

describe("limits of three keys", () => {
  for (const [limit, size] of [
    ["rpm", 1],
    ["tpm", 10],
  ] as const) {
    test(`${limit}: demand above their sum uses 99% of it for ten minutes, and no host's count is exceeded`, () => {
      const most: Record<string, number> = { a: 200 * size, b: 300 * size, c: 500 * size };
      const { clock, take } = slotsOf(
        Object.entries(most).map(([name, count]) => key(name, { [limit]: count })),
      );
      const counts = new Map(Object.entries(most).map(([name, count]) => [name, new HostsCount(count)]));
      for (let ms = 0; ms < 600_000; ms += 50) {
        const lease = take({ tokens: size });
        if (lease !== null) counts.get(lease.key.name)!.take(size, ms);
        lease?.release();
        clock.advance(50);
      }
      for (const [name, count] of counts) {
        expect(count.refused).toBe(0);
        expect(count.total).toBeGreaterThanOrEqual(0.99 * most[name]! * 10);
      }
    });
  }

  test("max_concurrent: as many as all of them have, in whichever order they end", () => {
    const { take } = slotsOf([key("a", { maxConcurrent: 1 }), key("b", { maxConcurrent: 2 })]);
    const held = [take(), take(), take()];
    expect(held.map((lease) => lease!.key.name).sort()).toEqual(["a", "b", "b"]);
    expect(take()).toBeNull();
    const [first] = held;
    first!.release();
    first!.release();
    expect(take()!.key.name).toBe(first!.key.name);
    expect(take()).toBeNull();
  });

  test("a request larger than any tpm goes to a key without load, for its host to decide", () => {
    const { take } = slotsOf([key("a", { tpm: 10 })]);
    expect(take({ tokens: 50 })).not.toBeNull();
    expect(take({ tokens: 1 })).toBeNull();
  });

  test("what the host reports replaces the estimate of tokens", () => {
    const { take } = slotsOf([key("a", { tpm: 100 })]);
    take({ tokens: 90 })!.used(20);
    expect(take({ tokens: 80 })).not.toBeNull();
    expect(take({ tokens: 1 })).toBeNull();
  });

  test("workers divide them", () => {
    const { take } = slotsOf([key("a", { maxConcurrent: 10 })], 4);
    expect([take(), take()]).not.toContain(null);
    expect(take()).toBeNull();
  });
});

describe("conversations", () => {
  const KEYS = [key("a"), key("b"), key("c", { weight: 2 })];

  test("stay with their key, the same one in every process, by weight", () => {
    const [one, other] = [slotsOf(KEYS), slotsOf(KEYS)];
    const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
    for (let conversation = 0; conversation < 4_000; conversation++) {
      const name = one.nameFor(conversation)!;
      expect(one.nameFor(conversation)).toBe(name);
      expect(other.nameFor(conversation)).toBe(name);
      counts[name]! += 1;
    }
    expect(counts.a).toBeWithin(900, 1_100);
    expect(counts.b).toBeWithin(900, 1_100);
    expect(counts.c).toBeWithin(1_900, 2_100);
  });

  test("a key that is taken away moves only its own", () => {
    const [all, fewer] = [slotsOf(KEYS), slotsOf(KEYS.slice(1))];
    for (let conversation = 0; conversation < 200; conversation++) {
      const before = all.nameFor(conversation);
      if (before !== "a") expect(fewer.nameFor(conversation)).toBe(before);
    }
  });

  test("one whose key had no room stays where it was served", () => {
    const { take, nameFor } = slotsOf([key("a", { maxConcurrent: 1 }), key("b", { maxConcurrent: 1 })]);
    const first = take({ conversation: 7 })!;
    const moved = take({ conversation: 7 })!;
    expect(moved.key.name).not.toBe(first.key.name);
    first.release();
    moved.release();
    expect(nameFor(7)).toBe(moved.key.name);
  });
});

describe("a key that fails", () => {
  test("is retired once refused, and used again once its text changes", () => {
    const keys = [key("a"), key("b")];
    const { take, retired, slots } = slotsOf(keys);
    const lease = [take(), take(), take(), take(), take()].find((one) => one!.key.name === "a")!;
    lease!.refused("status 401");
    lease!.refused("status 401");
    expect(retired).toEqual(["a"]);
    expect(Array.from({ length: 20 }, () => take()!.key.name)).not.toContain("a");
    expect(slots.loads()[0]).toMatchObject({
      name: "a",
      state: "retired",
      refused: { detail: "status 401" },
    });
    keys[0]!.secret.text = "sk-new";
    expect(Array.from({ length: 20 }, () => take()!.key.name)).toContain("a");
    expect(slots.loads()[0]).toMatchObject({ state: "usable", refused: null });
  });

  test("a request with its former text does not retire the new one", () => {
    const keys = [key("a")];
    const { take, retired } = slotsOf(keys);
    const lease = take()!;
    keys[0]!.secret.text = "sk-new";
    lease.refused("status 401");
    expect(retired).toEqual([]);
  });

  test("rests alone for as long as the host asks, for the model that it named", () => {
    const { take, slots, clock } = slotsOf([key("a"), key("b")]);
    const lease = [take(), take(), take(), take(), take()].find((one) => one!.key.name === "a")!;
    lease!.limited("m", 30_000);
    expect(lease!.hasOther).toBe(true);
    expect(slots.loads().map(({ state }) => state)).toEqual(["resting", "usable"]);
    expect(Array.from({ length: 20 }, () => take()!.key.name)).not.toContain("a");
    expect(Array.from({ length: 20 }, () => take({ model: "n" })!.key.name)).toContain("a");
    clock.advance(30_000);
    expect(Array.from({ length: 20 }, () => take()!.key.name)).toContain("a");
  });

  test("rests a second if the host names no time, and twice as long each time until it serves", () => {
    const { take, clock } = slotsOf([key("a")]);
    const rests = Array.from({ length: 3 }, () => {
      const lease = take()!;
      lease.limited("m", null);
      const restMs = lease.restMs!;
      clock.advance(restMs);
      return restMs;
    });
    expect(rests).toEqual([1_000, 2_000, 4_000]);
    take()!.served();
    const lease = take()!;
    lease.limited("m", null);
    expect(lease.restMs).toBe(1_000);
  });

  test("when all rest, the host rests until the first of them has", () => {
    const { take, clock } = slotsOf([key("a"), key("b")]);
    for (const ms of [30_000, 10_000]) take()!.limited("m", ms);
    const lease = take()!;
    expect(lease.hasOther).toBe(false);
    expect(lease.restMs).toBe(10_000);
    clock.advance(10_000);
    expect(lease.restMs).toBe(0);
  });

  test("when all are refused, they are tried at the pace of the host, and one that is accepted serves again", () => {
    const { take, slots, clock } = slotsOf([key("a")]);
    take()!.refused("status 401");
    clock.advance(1);
    take()!.served();
    expect(slots.loads()).toMatchObject([{ state: "usable" }]);
  });
});
