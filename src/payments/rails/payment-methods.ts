import type { PaymentAmounts } from "../amounts.ts";
import type { PaymentStore } from "../payment-store.ts";
import type { CardRail } from "./stripe/card-rail.ts";
import type { X402Rail } from "./x402/x402.ts";

/** What endpoints need of payments. */
export interface PaymentMethods {
  readonly amounts: PaymentAmounts;
  readonly store: PaymentStore;
  /** Null where it is not configured. */
  readonly x402: X402Rail | null;
  readonly card: Pick<CardRail, "fee" | "order" | "event" | "refund" | "resolve"> | null;
}
