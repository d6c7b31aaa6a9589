import type { Balance } from "../../src/customers/keys/key.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";

/** A balance without an account, which nothing was done to. */
export const balanceOf = (more: Partial<Balance> = {}): Balance => ({
  id: "bal_test" as BalanceId,
  accountId: null,
  suspended: null,
  createdAt: 0 as EpochMs,
  setUpKey: null,
  priceList: null,
  secretsSavedAt: null,
  closed: false,
  lowCredit: null,
  reclaims: 0,
  recovery: null,
  undo: null,
  ...more,
});
