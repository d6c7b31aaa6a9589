import { type Static, Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import { amountUsd, answerOf, namedAnswer, orNone, pageOf, pageQuery, time } from "./answers.ts";

const members = { amount_usd: amountUsd, note: orNone(Type.String()), credited_at: time };

export const CreditAnswer = namedAnswer("Credit", members);
export type CreditAnswer = Static<typeof CreditAnswer>;
export const OwnedCreditAnswer = answerOf({ ...members, idempotency_key: Type.String() });

const CreditTotals = namedAnswer("OpenRouterCredits", {
  data: answerOf({ total_credits: amountUsd, total_usage: amountUsd }),
});

const DEFAULT_CREDITS = 100;
const MAX_CREDITS = 1_000;

export const CREDITS = {
  summary: "Lists the balance's credits, newest first",
  details:
    "An amount below zero was taken back. An API key is shown two sums instead, as OpenRouter does: what was credited in all, less what was taken back, and what of it is spent.",
  who: ["owner", "key"],
  query: { limit: pageQuery(DEFAULT_CREDITS, MAX_CREDITS).limit },
  answers: { 200: Type.Union([pageOf(CreditAnswer), CreditTotals]) },
} as const satisfies About;
