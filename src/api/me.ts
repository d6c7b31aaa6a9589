import { type Static, Type } from "@sinclair/typebox";
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import type { About } from "./about.ts";
import { identityMembers } from "./accounts.ts";
import {
  amountUsd,
  answerOf,
  count,
  heldAt,
  namedAnswer,
  oneOf,
  orNone,
  several,
  texts,
  time,
} from "./answers.ts";
import { DefaultLimits, KeyAnswer } from "./keys.ts";

const suspended = oneOf(SUSPENSION_REASONS);

const OwnAccount = answerOf({
  id: Type.String(),
  ...identityMembers,
  suspended: Type.Optional(suspended),
  confirmed: Type.Optional(
    Type.Boolean({
      description: "left out for a session; false until the owner of the address confirms the claim",
    }),
  ),
  undo_until: Type.Optional({
    ...time,
    description:
      "until then, the recovery secret takes the balance back from the account: DELETE /v1/me/claim",
  }),
  // The rest is shown to a session only.
  balances: Type.Optional(texts),
  claims: Type.Optional(several(answerOf({ balance_id: Type.String(), claimed_at: time }))),
});
export type OwnAccount = Static<typeof OwnAccount>;

const MeAnswer = namedAnswer("Me", {
  balance_id: Type.String(),
  balance_usd: amountUsd,
  available_usd: amountUsd,
  held_usd: amountUsd,
  held_at: heldAt,
  suspended: orNone(suspended),
  suspended_at: orNone(time),
  key: orNone(KeyAnswer),
  open_tier: answerOf({ limit: count, used: count, resets_at: time }),
  contact: orNone(Type.String({ description: "where the operator is reached, for credit and questions" })),
  key_defaults: DefaultLimits,
  account: orNone(OwnAccount),
  reclaimed: Type.Boolean({
    description:
      "a claim of the balance was taken back: the next one takes the recovery secret together with a key",
  }),
});
export type MeAnswer = Static<typeof MeAnswer>;

export const ME = {
  summary: "Shows the balance, and the key that sends this with its use",
  details: "Works while the account is suspended, too.",
  who: ["key", "owner"],
  anyOrigin: true,
  answers: { 200: MeAnswer },
} as const satisfies About;
