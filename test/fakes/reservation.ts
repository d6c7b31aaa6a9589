import type { ReservationEnd, ReservationRequest } from "../../src/ledger/reservation.ts";
import type { NanoUsd } from "../../src/units/usd.ts";

/** A nano-dollar for each token of an answer. */
const PRICE = { input: 0, output: 1_000_000, cacheRead: 0, cacheWrite: 0 } as ReservationRequest["price"];

/** A stream that holds `amount`, which is also its worst case; no rate and no budget limits it. */
export function reservationRequest({
  amount,
  ...more
}: Pick<ReservationRequest, "at" | "key"> & { readonly amount: number } & Partial<
    Omit<ReservationRequest, "amount">
  >): ReservationRequest {
  const held = amount as NanoUsd;
  return {
    receipt: `rcpt_${crypto.randomUUID()}`,
    budgets: [],
    allowances: [],
    rpmLimit: null,
    freeRpmLimit: null,
    tpmLimit: null,
    amount: held,
    worst: held,
    rateTokens: 0,
    most: { amount: held, tokens: more.rateTokens ?? 0 },
    promptTokens: 0,
    price: PRICE,
    about: { surface: "messages", model: "a/b", stream: true },
    ...more,
  };
}

/** The whole answer arrived and cost so much. */
export const reservationEnd = (cost: number, more: Partial<ReservationEnd> = {}): ReservationEnd => ({
  state: "settled",
  cost: cost as NanoUsd,
  rateTokens: 0,
  allowanceUsed: false,
  ...more,
});
