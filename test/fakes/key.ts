import type { Key } from "../../src/customers/keys/key.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";

/** A live key without limits. Its rotation id is its own, unless said otherwise. */
export function keyOf(more: Partial<Key> = {}): Key {
  const id = more.id ?? ("key_test" as KeyId);
  return {
    id,
    hash: "" as Key["hash"],
    prefix: "or-live-test",
    name: null,
    balanceId: "bal_test" as BalanceId,
    rotationId: id,
    priceList: null,
    root: 0,
    state: "active",
    createdAt: 0 as EpochMs,
    expiresAt: null,
    rpmLimit: null,
    tpmLimit: null,
    dailyLimit: null,
    monthlyLimit: null,
    allowedModels: null,
    budgets: [],
    ...more,
  };
}
