import { type Static, Type } from "@sinclair/typebox";
import { UNDO_DAYS } from "../customers/accounts/ownership.ts";
import type { About } from "./about.ts";
import { email, identityMembers, signedMembers } from "./accounts.ts";
import { KeyAnswer } from "./keys.ts";
import * as t from "./schema.ts";

const ClaimFields = t.object({
  email: Type.Optional(email),
  wallet: Type.Optional(
    Type.Object(signedMembers, {
      additionalProperties: false,
      description:
        "an object of `message`, from POST /v1/auth/wallet, and `signature`, 0x followed by hex digits",
    }),
  ),
  recovery_secret: Type.Optional(
    Type.String({
      maxLength: 100,
      description: "the recovery secret of the balance, next to any key of it",
    }),
  ),
});

const ClaimAnswer = t.object({
  account_id: Type.String(),
  balance_id: Type.String(),
  ...identityMembers,
  confirmed: t.boolean("false until the owner of the address confirms"),
});
export type ClaimAnswer = Static<typeof ClaimAnswer>;

const WaitingClaim = t.namedAnswer("WaitingClaim", {
  balance_id: Type.String(),
  claimed_at: t.time,
  expires_at: t.time,
  balance_usd: t.amountUsd,
  balance_created_at: t.time,
});
export type WaitingClaim = Static<typeof WaitingClaim>;

/** What ends with a claim next to all that derives from it. */
export const revokeKeysField = {
  revoke_keys: Type.Optional(t.boolean("true to end the other keys of the balance as well, or false")),
};
export const UndoFields = t.object(revokeKeysField);

/** After a claim ended: the keys that still work. */
export const liveKeysMembers = {
  live_keys: t.several(KeyAnswer, { description: "the newest keys of the balance that still work" }),
  has_more: t.boolean("true where more keys work than are listed"),
};

const UndoneAnswer = t.object({
  balance_id: Type.String(),
  withdrawn: Type.Literal(true),
  ...liveKeysMembers,
});
export type UndoneAnswer = Static<typeof UndoneAnswer>;

export const CLAIMS = {
  claim: {
    summary: "Claims an accountless balance for an email address or a wallet",
    details: `Takes the key made at set-up, or one that it was rotated to. Send either \`email\` or \`wallet\`. The key works unchanged. A claim by wallet takes effect at once. A claim by email takes effect when the owner of the address uses the link mailed for it, or confirms it in a session. The recovery secret undoes a claim for ${UNDO_DAYS} days. Once a claim of the balance was taken back, another one also takes \`recovery_secret\`, and any key of the balance.`,
    who: ["key"],
    act: "claim its balance",
    body: ClaimFields,
    answers: { 200: ClaimAnswer },
  },
  undo: {
    summary: "Withdraws a claim, or undoes one that took effect",
    details: `Takes the recovery secret only, as it was before the claim. For ${UNDO_DAYS} days after a claim took effect, it takes the balance back from the account: at once, its sessions can do nothing with the balance, and all that derives from the claim ends, namely keys and recovery secrets that the account made, and whatever was made or rotated with these. \`live_keys\` lists the keys that still work; \`revoke_keys\` ends them, too. From then on, nobody claims the balance without the recovery secret.`,
    who: ["owner"],
    body: UndoFields,
    answers: { 200: UndoneAnswer },
  },
  list: {
    summary: "Lists the balances that were claimed for the account and wait for its word",
    details: "Anybody can claim a balance of theirs for any address: confirm only what you set up yourself.",
    who: ["session"],
    act: "review claims",
    answers: { 200: t.listOf(WaitingClaim) },
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
