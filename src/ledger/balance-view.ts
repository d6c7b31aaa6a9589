import type { NanoUsd } from "../units/usd.ts";

export interface BalanceTotals {
  /** All that it ever was, less what was taken back. */
  readonly credited: NanoUsd;
  /** Credits less charges. */
  readonly total: NanoUsd;
}

/** While a claim is open, more may be spent than was credited; that does not show. */
export const balanceTotals = (credited: NanoUsd, spent: NanoUsd): BalanceTotals => ({
  credited,
  total: Math.max(0, credited - spent) as NanoUsd,
});

export interface BalanceView extends BalanceTotals {
  readonly held: NanoUsd;
  readonly available: NanoUsd;
}

/** While a claim is open, more may be held than what is left; what is available does not show below zero. */
export const balanceView = (totals: BalanceTotals, held: NanoUsd): BalanceView => ({
  ...totals,
  held,
  available: Math.max(0, totals.total - held) as NanoUsd,
});
