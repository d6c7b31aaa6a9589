import { CREDITS, type CreditAnswer } from "../../api/credits.ts";
import type { Credit } from "../../ledger/credit.ts";
import { isoTime } from "../../units/clock.ts";
import { usdFromNano } from "../../units/usd.ts";
import type { Endpoint } from "../endpoint.ts";
import { operation } from "../operation.ts";
import { page } from "../reply.ts";

/** `GET /v1/credits`: what was credited to the balance and taken back, newest first. For its owner. */
export const creditEndpoints = (): Endpoint[] => [
  operation("GET /v1/credits", CREDITS, async ({ who, query: { limit } }, { ledger }) =>
    page(await ledger.credits(who.balance.id, limit + 1), limit, creditView),
  ),
];

export const creditView = ({ amount, note, at }: Credit): CreditAnswer => ({
  amount_usd: usdFromNano(amount),
  note,
  credited_at: isoTime(at),
});
