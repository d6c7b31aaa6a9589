import type { NanoUsd } from "../../../units/usd.ts";

export interface StripeConfig {
  readonly secretKey: string;
  /** Several while one takes the place of another. */
  readonly webhookSecrets: readonly string[];
  /** Added to what is credited, so that the operator is left with that. */
  readonly fee: { readonly percent: number; readonly fixed: NanoUsd };
  /** Null: Stripe's own. */
  readonly apiBase: string | null;
}
