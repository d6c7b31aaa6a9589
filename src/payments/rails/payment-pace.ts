/** How fast payments are followed that are not final. */
export interface PaymentPace {
  /** Between two looks. */
  readonly watchMs: number;
  /** Whoever works on a payment has it for so long. */
  readonly leaseMs: number;
  /** Whoever was asked for a transfer is asked again after so long. */
  readonly resendMs: number;
}

export const PAYMENT_PACE: PaymentPace = { watchMs: 5_000, leaseMs: 30_000, resendMs: 10_000 };
