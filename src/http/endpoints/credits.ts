import { CREDITS, type CreditAnswer } from "../../api/credits.ts";
import type { Credit } from "../../ledger/credit.ts";
import { isoTime } from "../../units/clock.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import { operation } from "../operation.ts";
import { page } from "../reply.ts";

/** What was credited to the balance and taken back: each of it for its owner, and the sum for a key. */
export const creditEndpoints = () => [
  operation("GET /v1/credits", CREDITS, async ({ who, query: { limit } }, { ledger }) => {
    const { id } = who.balance;
    if (who.kind === "owner") return page(await ledger.credits(id, limit + 1), limit, creditView);
    const { credited, total } = await ledger.balance(id);
    const used = (credited - total) as NanoUsd;
    return { data: { total_credits: usdFromNano(credited), total_usage: usdFromNano(used) } };
  }),
];

export const creditView = ({ amount, note, at }: Credit): CreditAnswer => ({
  amount_usd: usdFromNano(amount),
  note,
  credited_at: isoTime(at),
});
