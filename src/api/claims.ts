import { type Static, Type } from "@sinclair/typebox";
import { UNDO_DAYS } from "../accounts/belonging.ts";
import type { About } from "./about.ts";
import { email, identityMembers, signedMembers } from "./accounts.ts";
import { amountUsd, answerOf, listOf, namedAnswer, time } from "./answers.ts";
import { fieldsOf } from "./fields.ts";

const ClaimFields = fieldsOf({
  email: Type.Optional(email),
  wallet: Type.Optional(
    Type.Object(signedMembers, {
      additionalProperties: false,
      description:
        "an object of `message`, from POST /v1/auth/wallet, and `signature`, 0x followed by hex digits",
    }),
  ),
});

const ClaimAnswer = answerOf({
  account_id: Type.String(),
  balance_id: Type.String(),
  ...identityMembers,
  confirmed: Type.Boolean({ description: "false until the owner of the address confirms" }),
});
export type ClaimAnswer = Static<typeof ClaimAnswer>;

const WaitingClaim = namedAnswer("WaitingClaim", {
  balance_id: Type.String(),
  claimed_at: time,
  expires_at: time,
  balance_usd: amountUsd,
  balance_created_at: time,
});
export type WaitingClaim = Static<typeof WaitingClaim>;

const UndoneAnswer = answerOf({ balance_id: Type.String(), withdrawn: Type.Literal(true) });
export type UndoneAnswer = Static<typeof UndoneAnswer>;

export const CLAIMS = {
  claim: {
    summary: "Claims an accountless balance for an email address or a wallet",
    details: `Takes the key made at set-up, or one that it was rotated to. Send either \`email\` or \`wallet\`. The key works unchanged. A claim by wallet takes effect at once. A claim by email takes effect when the owner of the address uses the link mailed for it, or confirms it in a session. The recovery secret undoes a claim for ${UNDO_DAYS} days.`,
    who: ["key"],
    act: "claim its balance",
    body: ClaimFields,
    answers: { 200: ClaimAnswer },
  },
  undo: {
    summary: "Withdraws a claim, or undoes one that took effect",
    details: `Takes the recovery secret only, as it was before the claim. For ${UNDO_DAYS} days after a claim took effect, it takes the balance back from the account, whose sessions then do nothing with it. Keys that those sessions made end. All others stay as they are: rotate or revoke those that somebody else may have.`,
    who: ["owner"],
    answers: { 200: UndoneAnswer },
  },
  list: {
    summary: "Lists the balances that were claimed for the account and wait for its word",
    details: "Anybody can claim a balance of theirs for any address: confirm only what you set up yourself.",
    who: ["session"],
    act: "review claims",
    answers: { 200: listOf(WaitingClaim) },
  },
  confirm: {
    summary: "Takes a claimed balance into the account",
    who: ["session"],
    act: "confirm claims",
    answers: { 200: ClaimAnswer },
  },
  decline: {
    summary: "Declines a claim",
    who: ["session"],
    act: "decline claims",
    answers: { 200: ClaimAnswer },
  },
} as const satisfies Record<string, About>;
