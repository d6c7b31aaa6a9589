import { type Static, Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import * as t from "./schema.ts";

const members = { amount_usd: t.amountUsd, note: t.orNone(Type.String()), credited_at: t.time };

export const CreditAnswer = t.namedAnswer("Credit", members);
export type CreditAnswer = Static<typeof CreditAnswer>;
export const OwnedCreditAnswer = t.object({ ...members, idempotency_key: Type.String() });

const CreditTotals = t.namedAnswer("OpenRouterCredits", {
  data: t.object({ total_credits: t.amountUsd, total_usage: t.amountUsd }),
});

const DEFAULT_CREDITS = 100;
const MAX_CREDITS = 1_000;

export const CREDITS = {
  summary: "Lists the balance's credits, newest first",
  details:
    "An amount below zero was taken back. An API key is shown two sums instead, as OpenRouter does: what was credited in all, less what was taken back, and what of it is spent.",
  who: ["owner", "key"],
  query: { limit: t.pageQuery(DEFAULT_CREDITS, MAX_CREDITS).limit },
  answers: { 200: Type.Union([t.pageOf(CreditAnswer), CreditTotals]) },
} as const satisfies About;
