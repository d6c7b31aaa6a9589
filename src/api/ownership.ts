import { type Static, Type } from "@sinclair/typebox";
import { UNDO_DAYS } from "../customers/accounts/ownership.ts";
import type { About } from "./about.ts";
import * as t from "./answers.ts";
import { fieldsOf } from "./fields.ts";

const DeletionFields = fieldsOf({
  confirm: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "the account's id for a session, or the balance's id for its recovery secret",
  }),
});

const RecoveryAnswer = t.answerOf({
  balance_id: Type.String(),
  recovery_secret: Type.String(),
  recovery_url: Type.String(),
});
export type RecoveryAnswer = Static<typeof RecoveryAnswer>;

const DeletionAnswer = t.answerOf({
  id: Type.String(),
  deleted: Type.Literal(true),
  closed_balance_ids: t.texts,
  detached_balance_ids: t.texts,
});
export type DeletionAnswer = Static<typeof DeletionAnswer>;

export const OWNERSHIP = {
  recovery: {
    summary: "Replaces the recovery secret of the balance",
    details: `The new one is shown this once, and the old one ends at once. Where an account replaces the secret of a balance that it claimed, the one from before still undoes the claim for ${UNDO_DAYS} days after it took effect, and nothing else.`,
    who: ["owner"],
    act: "replace the recovery secret",
    answers: { 200: RecoveryAnswer },
  },
  deletion: {
    summary: "Deletes the account, or with the recovery secret the balance without one",
    details: `\`confirm\` is the account's id for a session, and the balance's for its recovery secret. Addresses and sessions are erased, recovery secrets and keys end, credit that is left cannot be used any more. The books keep amounts and ids. Balances whose claim took effect less than ${UNDO_DAYS} days ago leave the account as they are.`,
    who: ["owner"],
    act: "delete an account",
    body: DeletionFields,
    answers: { 200: DeletionAnswer },
  },
} as const satisfies Record<string, About>;
