import { Type } from "@sinclair/typebox";
import { amountUsd, answerOf, orNone, time } from "./answers.ts";

const members = { amount_usd: amountUsd, note: orNone(Type.String()), credited_at: time };

export const CreditAnswer = answerOf(members, "Credit");
export const OwnedCreditAnswer = answerOf({ ...members, idempotency_key: Type.String() });
