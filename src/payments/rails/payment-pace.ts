/** How fast payments are followed that are not final. */
export interface PaymentPace {
  /** Between two looks. */
  readonly watchMs: number;
  /** A process that works on a payment has it for so long. */
  readonly leaseMs: number;
  /** An order for a transfer is sent again after so long. */
  readonly resendMs: number;
}

export const PAYMENT_PACE: PaymentPace = { watchMs: 5_000, leaseMs: 30_000, resendMs: 10_000 };
