import { type Static, Type } from "@sinclair/typebox";
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import type { About } from "./about.ts";
import { identityMembers } from "./accounts.ts";
import { DefaultLimits, KeyAnswer } from "./keys.ts";
import * as t from "./schema.ts";

const suspended = t.oneOf(SUSPENSION_REASONS);

const OwnAccount = t.object({
  id: Type.String(),
  ...identityMembers,
  suspended: Type.Optional(suspended),
  confirmed: Type.Optional(
    t.boolean("left out for a session; false until the owner of the address confirms the claim"),
  ),
  undo_until: Type.Optional({
    ...t.time,
    description:
      "until then, the recovery secret takes the balance back from the account: DELETE /v1/me/claim",
  }),
  // The rest is shown to a session only.
  balances: Type.Optional(t.texts),
  claims: Type.Optional(t.several(t.object({ balance_id: Type.String(), claimed_at: t.time }))),
});
export type OwnAccount = Static<typeof OwnAccount>;

/** Below so much credit there is an event `credit.low`, and a mail to the account's address. */
export const lowCreditField = t.orNull(t.usd, "the gateway's own `low_credit_usd`");
export const lowCreditUsd = t.orNone(
  t.number(
    "its owner is notified once when the credit falls below this; 0: never; null: the gateway's own `low_credit_usd` holds",
    { minimum: 0 },
  ),
);

const MeAnswer = t.namedAnswer("Me", {
  balance_id: Type.String(),
  balance_usd: t.amountUsd,
  available_usd: t.amountUsd,
  held_usd: t.amountUsd,
  held_at: t.heldAt,
  suspended: t.orNone(suspended),
  suspended_at: t.orNone(t.time),
  key: t.orNone(KeyAnswer),
  open_tier: t.object({
    limit: t.count,
    used: { ...t.count, description: "ended and open ones" },
    held_at: t.heldAt,
    resets_at: t.time,
  }),
  contact: t.orNone(t.string("where the operator is reached, for credit and questions")),
  key_defaults: DefaultLimits,
  low_credit_usd: lowCreditUsd,
  low_credit_default_usd: t.orNone(t.number("what holds where `low_credit_usd` is null; null: no notice")),
  account: t.orNone(OwnAccount),
  reclaimed: t.boolean(
    "a claim of the balance was taken back: the next one takes the recovery secret together with a key",
  ),
});
export type MeAnswer = Static<typeof MeAnswer>;

export const ME = {
  show: {
    summary: "Shows the balance, and the key that sends this with its use",
    details: "Works while the account is suspended, too.",
    who: ["key", "owner"],
    anyOrigin: true,
    answers: { 200: MeAnswer },
  },
  change: {
    summary: "Sets below which credit the owner is notified",
    details:
      "Causes the event `credit.low`, once for each time that the credit falls below the amount, and a mail to an account with an email address. A balance that is already below it causes none until it has risen above it.",
    who: ["owner"],
    act: "change the balance",
    body: t.object({ low_credit_usd: lowCreditField }),
    answers: { 200: MeAnswer },
  },
} as const satisfies Record<string, About>;
