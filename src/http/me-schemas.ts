import { Type } from "@sinclair/typebox";
import { SUSPENSION_REASONS } from "../keys/suspension.ts";
import type { About } from "./about.ts";
import { amountUsd, answerOf, count, oneOf, orNone, time } from "./answers.ts";
import { UsedKeyAnswer } from "./key-schemas.ts";

const suspended = oneOf(SUSPENSION_REASONS);

export const ME = {
  summary: "Shows the balance, and the key that asks with its use",
  details: "Answered while suspended too.",
  who: ["key", "owner"],
  answers: {
    200: answerOf(
      {
        balance_id: Type.String(),
        balance_usd: amountUsd,
        available_usd: amountUsd,
        held_usd: amountUsd,
        suspended: orNone(suspended),
        key: orNone(UsedKeyAnswer),
        open_tier: answerOf({ limit: count, used: count, resets_at: time }),
        account: orNone(answerOf({ id: Type.String(), suspended: Type.Optional(suspended) })),
      },
      "Me",
    ),
  },
} as const satisfies About;
