import { DAY_MS, HOUR_MS } from "../units/clock.ts";
import { type Refusal, refuse, retryAfter } from "../units/errors/refusal.ts";
import { formatUsd } from "../units/usd.ts";
import type { AmountCap, CountCap, GasCap } from "./payment-store.ts";

/** Nothing was paid, because a cap is in the way. */
export function capReached(cap: AmountCap | CountCap): Refusal {
  switch (cap.of) {
    case "key":
      return refuse(
        "budget_exhausted",
        `Requests of one key may pay at most ${formatUsd(cap.limit)} within an hour (\`payments.inline.max_usd_per_hour\`). Nothing was paid. Credit can still be paid for with POST /v1/credits.`,
        retryAfter(HOUR_MS / 1_000),
      );
    case "balance":
      return refuse(
        "budget_exhausted",
        `At most ${formatUsd(cap.limit)} may be paid into a balance within a day (\`payments.amounts.max_usd_per_day\`). Nothing was paid.`,
        retryAfter(DAY_MS / 1_000),
      );
    case "page":
      return refuse(
        "rate_limited",
        `This balance has ${cap.most} card payments that wait to be paid. Pay one of those (GET /v1/payments), or wait until one runs out, an hour after it was ordered.`,
        retryAfter(HOUR_MS / 1_000),
      );
    default:
      return refuse(
        "rate_limited",
        `This wallet has ${cap.most === 1 ? "a payment" : `${cap.most} payments`} under way, which may be for the same money. Nothing was paid. Retry in ${ON_ITS_WAY_S} s.`,
        { retryAfterS: ON_ITS_WAY_S },
      );
  }
}

/** Why no gas is risked for the payment. */
export function gasRefusal({ of }: GasCap): string {
  switch (of) {
    case "payer gas":
      return "A transfer of this wallet failed on the chain within the last day, which cost gas. Pay from another wallet, or retry after that day.";
    case "network gas":
      return "Contract wallets cannot pay now: failed transfers have used the gas that they may waste in an hour (`wasted_gas_per_hour`), or payments under way could. Pay from a plain account, or retry later.";
  }
}

export const usedKey = (): Refusal =>
  refuse("invalid_request", "This `Idempotency-Key` was used for another payment. Use a new one.", {
    param: "Idempotency-Key",
  });

/** Before it is worth asking again about a payment under way. */
export const ON_ITS_WAY_S = 5;
