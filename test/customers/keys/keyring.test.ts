import { describe, expect, test } from "bun:test";
import type { Budget, Key } from "../../../src/customers/keys/key.ts";
import type { BalanceWithBudgets } from "../../../src/customers/keys/key-store.ts";
import { Keyring } from "../../../src/customers/keys/keyring.ts";
import { newApiKey, newRecoverySecret, shownPrefix } from "../../../src/customers/keys/secret.ts";
import type { EpochMs } from "../../../src/units/clock.ts";
import { StoreContended } from "../../../src/units/errors/bookkeeping.ts";
import { systemRandom } from "../../../src/units/random.ts";
import type { SecretHash } from "../../../src/units/secret-hash.ts";
import { hashSecret } from "../../../src/units/secret-hash.ts";
import type { NanoUsd } from "../../../src/units/usd.ts";
import { balanceOf } from "../../fakes/balance.ts";
import { gate } from "../../fakes/gate.ts";
import { keyOf } from "../../fakes/key.ts";

const NOW = 1_000_000 as EpochMs;
const balance = balanceOf({ id: "bal_1", createdAt: NOW });

const keyFor = (secret: string, changes: Partial<Key> = {}): Key =>
  keyOf({
    id: "key_1",
    hash: hashSecret(secret),
    prefix: shownPrefix(secret),
    balanceId: "bal_1",
    createdAt: NOW,
    ...changes,
  });

/** A store in memory that counts what it is asked. */
class Shelf {
  readonly keys = new Map<SecretHash, Key>();
  balanceNow: BalanceWithBudgets | null = { balance, budgets: [] };
  reads = 0;
  balancesRead = 0;
  /** Runs while a key is being read. */
  meanwhile: () => void | Promise<void> = () => {};

  async keyByHash(hash: SecretHash): Promise<Key | null> {
    this.reads += 1;
    const key = this.keys.get(hash) ?? null;
    await this.meanwhile();
    return key;
  }

  async balanceWithBudgets(): Promise<BalanceWithBudgets | null> {
    this.balancesRead += 1;
    return structuredClone(this.balanceNow);
  }
}

function shelfWith(changes: Partial<Key> = {}) {
  const shelf = new Shelf();
  const secret = newApiKey(systemRandom);
  const key = keyFor(secret, changes);
  shelf.keys.set(key.hash, key);
  return { shelf, secret, key, ring: new Keyring(shelf) };
}

describe("the keyring", () => {
  test("asks the store once, and then answers without waiting", async () => {
    const { shelf, secret, key, ring } = shelfWith();
    expect((await ring.identify(secret, NOW))!.key).toEqual(key);
    const again = ring.identify(secret, NOW);
    expect(again).not.toBeInstanceOf(Promise);
    expect(shelf.reads).toBe(1);
  });

  test("asks once for many requests at the same moment", async () => {
    const { shelf, secret, ring } = shelfWith();
    const all = await Promise.all(Array.from({ length: 100 }, () => ring.identify(secret, NOW)));
    expect(all.every((holder) => holder !== null)).toBe(true);
    expect(shelf.reads).toBe(1);
  });

  test("a key works until the millisecond before its expiry", async () => {
    const { secret, ring } = shelfWith({ state: "rotated", expiresAt: (NOW + 10) as EpochMs });
    expect(await ring.identify(secret, (NOW + 9) as EpochMs)).not.toBeNull();
    expect(await ring.identify(secret, (NOW + 10) as EpochMs)).toBeNull();
  });

  test("a revoked key is nobody", async () => {
    const { secret, ring } = shelfWith({ state: "revoked" });
    expect(await ring.identify(secret, NOW)).toBeNull();
  });

  test("a change is seen by the next request once it is forgotten", async () => {
    const { shelf, secret, key, ring } = shelfWith();
    await ring.identify(secret, NOW);
    shelf.keys.set(key.hash, { ...key, state: "revoked" });
    ring.forget([key], []);
    expect(await ring.identify(secret, NOW)).toBeNull();
  });

  test("a revocation that happens while the key is being read is not read over", async () => {
    const { shelf, secret, key, ring } = shelfWith();
    const reading = gate();
    shelf.meanwhile = () => reading.passed;
    const early = ring.identify(secret, NOW);
    shelf.keys.set(key.hash, { ...key, state: "revoked" });
    ring.forget([key], []);
    shelf.meanwhile = () => {};
    reading.open();
    expect(await early).toBeNull();
    expect(await ring.identify(secret, NOW)).toBeNull();
  });

  test("changes of other keys do not keep one from being read", async () => {
    const { shelf, secret, key, ring } = shelfWith();
    const other = keyFor(newApiKey(systemRandom), { id: "key_2", balanceId: "bal_2" });
    shelf.meanwhile = () => {
      ring.forget([other], []);
      ring.forgetBalance(other.balanceId);
    };
    expect((await ring.identify(secret, NOW))!.key).toEqual(key);
    expect(shelf.reads).toBe(1);
  });

  test("a suspension that happens while the balance is being read is not read over", async () => {
    const { shelf, secret, ring } = shelfWith();
    const before = shelf.balanceNow;
    shelf.balanceWithBudgets = async () => {
      delete (shelf as Partial<Shelf>).balanceWithBudgets;
      shelf.balanceNow = { balance: { ...balance, suspended: "sanctions" }, budgets: [] };
      ring.forgetBalance("bal_1");
      return before;
    };
    expect((await ring.identify(secret, NOW))!.balance.suspended).toBe("sanctions");
  });

  test("a key that changes without end is contended, and not read for ever", async () => {
    const { shelf, secret, key, ring } = shelfWith();
    shelf.meanwhile = () => ring.forget([key], []);
    await expect(ring.identify(secret, NOW)).rejects.toBeInstanceOf(StoreContended);
  });

  test("the first use of a balance's other keys changes nothing for those that are in use", async () => {
    const budget: Budget = {
      id: "bud_1",
      balanceId: "bal_1",
      name: "team",
      cap: 5 as NanoUsd,
      window: "day",
    };
    const { shelf, secret, key, ring } = shelfWith({ budgets: ["team"] });
    shelf.balanceNow = { balance, budgets: [budget] };
    const first = await ring.identify(secret, NOW);
    for (let n = 0; n < 10; n++) {
      const other = newApiKey(systemRandom);
      shelf.keys.set(hashSecret(other), keyFor(other, { id: `key_${n + 2}`, budgets: ["team"] }));
      expect(await ring.identify(other, NOW)).not.toBeNull();
    }
    expect(ring.current(key, NOW)).toBe(first!);
    expect(shelf.balancesRead).toBe(1);
  });

  test("a key whose budget is not in memory yet is read with all of them", async () => {
    const budget: Budget = {
      id: "bud_1",
      balanceId: "bal_1",
      name: "team",
      cap: 5 as NanoUsd,
      window: "day",
    };
    const { shelf, secret, ring } = shelfWith();
    await ring.identify(secret, NOW);
    const other = newApiKey(systemRandom);
    shelf.keys.set(hashSecret(other), keyFor(other, { id: "key_2", budgets: ["team"] }));
    shelf.balanceNow = { balance, budgets: [budget] };
    expect((await ring.identify(other, NOW))!.budgets).toEqual([budget]);
  });

  test("a suspension, and a budget's new cap, reach every key of the balance", async () => {
    const budget: Budget = {
      id: "bud_1",
      balanceId: "bal_1",
      name: "team",
      cap: 5 as NanoUsd,
      window: "day",
    };
    const { shelf, secret, ring } = shelfWith({ budgets: ["team"] });
    shelf.balanceNow = { balance, budgets: [budget] };
    expect((await ring.identify(secret, NOW))!.budgets).toEqual([budget]);
    const raised = { ...budget, cap: 7 as NanoUsd };
    shelf.balanceNow = { balance: { ...balance, suspended: "sanctions" }, budgets: [raised] };
    ring.forgetBalance("bal_1");
    const holder = (await ring.identify(secret, NOW))!;
    expect(holder.balance.suspended).toBe("sanctions");
    expect(holder.budgets).toEqual([raised]);
    expect(ring.identify(secret, NOW)).toBe(holder);
  });

  test("a key whose budget is gone is never served without its cap", async () => {
    const { secret, ring } = shelfWith({ budgets: ["gone"] });
    await expect(ring.identify(secret, NOW)).rejects.toThrow("does not exist");
  });

  const ended: [what: string, changes: Partial<Key>][] = [
    ["revoked", { state: "revoked" }],
    ["expired", { expiresAt: NOW }],
  ];
  for (const [what, changes] of ended) {
    test(`a key that is ${what}, and whose budget was deleted since, is nobody`, async () => {
      const { shelf, secret, ring } = shelfWith({ budgets: ["gone"], ...changes });
      expect(await ring.identify(secret, NOW)).toBeNull();
      expect(ring.identify(secret, NOW)).toBeNull();
      expect(shelf.reads).toBe(1);
    });
  }
});

describe("unknown keys", () => {
  test("reach the store once each, and push no good key out", async () => {
    const { shelf, secret, key } = shelfWith();
    const ring = new Keyring(shelf, { keys: 2, unknown: 10 });
    await ring.identify(secret, NOW);
    const strangers = Array.from({ length: 1_000 }, () => newApiKey(systemRandom));
    for (const stranger of strangers) expect(await ring.identify(stranger, NOW)).toBeNull();
    expect(ring.identify(secret, NOW)).not.toBeInstanceOf(Promise);
    expect(shelf.reads).toBe(1_001);
    expect(ring.identify(strangers.at(-1)!, NOW)).toBeNull();
    expect(ring.peek(hashSecret(strangers.at(-1)!))).toBeNull();
    expect(ring.peek(hashSecret(strangers[0]!))).toBeUndefined();
    expect(ring.peek(key.hash)).toBeDefined();
  });

  test("a key that is removed with its balance while it is read is nobody", async () => {
    const { shelf, secret, key, ring } = shelfWith();
    shelf.meanwhile = () => {
      shelf.keys.delete(key.hash);
      shelf.balanceNow = null;
    };
    expect(await ring.identify(secret, NOW)).toBeNull();
  });

  test("many are forgotten at once, of which others hear once", async () => {
    const { shelf, secret, key } = shelfWith();
    const notified: ((one: Pick<Key, "hash" | "balanceId">) => boolean)[] = [];
    const ring = new Keyring(
      shelf,
      undefined,
      () => true,
      (concerns) => notified.push(concerns),
    );
    await ring.identify(secret, NOW);
    const others = Array.from({ length: 100 }, (_, n) => keyFor(`key ${n}`, { balanceId: `bal_other${n}` }));
    ring.forget(
      [key, ...others],
      others.map(({ balanceId }) => balanceId),
    );
    expect(notified).toHaveLength(1);
    expect([key, ...others].every(notified[0]!)).toBe(true);
    expect(notified[0]!(keyFor("another", { balanceId: "bal_2" }))).toBe(false);
    expect(ring.peek(key.hash)).toBeUndefined();
  });

  const malformed = [
    "",
    "or-live-",
    `or-live-${"1".repeat(31)}`,
    `or-live-${"1".repeat(33)}`,
    `or-live-${"0".repeat(32)}`,
    `OR-LIVE-${"1".repeat(32)}`,
    `or-live-${"1".repeat(32)}\n`,
    newRecoverySecret(systemRandom),
    "x".repeat(100_000),
  ];
  test.each(malformed)("%p is not even looked up", (secret) => {
    const { shelf, ring } = shelfWith();
    expect(ring.identify(secret, NOW)).toBeNull();
    expect(shelf.reads).toBe(0);
  });
});

test("secrets have their documented forms, and a key shows 12 characters", () => {
  expect(newApiKey(systemRandom)).toMatch(/^or-live-[1-9A-HJ-NP-Za-km-z]{32}$/);
  expect(newRecoverySecret(systemRandom)).toMatch(/^or-rec-[1-9A-HJ-NP-Za-km-z]{44}$/);
  expect(shownPrefix("or-live-abcdefgh")).toBe("or-live-abcd");
  expect(hashSecret("abc") as string).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});
