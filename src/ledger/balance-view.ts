import type { NanoUsd } from "../units/usd.ts";

export interface BalanceTotals {
  /** All credits, less what was taken back. */
  readonly credited: NanoUsd;
  /** Credits less charges. */
  readonly total: NanoUsd;
}

/** While a claim is open, more may be spent than was credited; 0 is shown then. */
export const balanceTotals = (credited: NanoUsd, spent: NanoUsd): BalanceTotals => ({
  credited,
  total: Math.max(0, credited - spent) as NanoUsd,
});

export interface BalanceView extends BalanceTotals {
  readonly held: NanoUsd;
  readonly available: NanoUsd;
}

/** While a claim is open, more may be held than is left; 0 is shown as available then. */
export const balanceView = (totals: BalanceTotals, held: NanoUsd): BalanceView => ({
  ...totals,
  held,
  available: Math.max(0, totals.total - held) as NanoUsd,
});
