import { type Static, Type } from "@sinclair/typebox";
import { MAX_EMAIL } from "../customers/accounts/email.ts";
import { UNDO_DAYS } from "../customers/accounts/ownership.ts";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

export const email = t.text(MAX_EMAIL, "an email address");
const signature = Type.Unsafe<`0x${string}`>(
  Type.String({
    pattern: "^0x[0-9a-fA-F]{2,32768}$",
    description: "0x followed by the signature's hex digits",
  }),
);
export const signedMembers = {
  message: t.text(4_096, "the message from POST /v1/auth/wallet, a text"),
  signature,
};

const EmailFields = t.object({ email });
const LinkFields = t.object({ token: t.text(200, "the link's token") });
const WalletFields = t.object({
  address: t.text(42, "the wallet's address"),
  chain_id: Type.Integer({
    minimum: 1,
    maximum: 4_294_967_295,
    description: "the chain's id, such as 1 for Ethereum mainnet",
  }),
});
const SignatureFields = t.object(signedMembers);
/** By what an account is known. */
export const identityMembers = {
  email: Type.Optional(Type.String()),
  wallet: Type.Optional(t.string("an address, or eip155:<chain>:<address> for a contract")),
};

const SessionAnswer = t.namedAnswer("Session", {
  session: t.string("or-sess-…, an owner's credential, shown this once"),
  expires_at: t.time,
  account_id: Type.String(),
});
export type SessionAnswer = Static<typeof SessionAnswer>;

/** Whom a mailed link signs in. */
const LinkAnswer = t.object({
  email: t.string("masked: k***@example.com"),
  claimed_balance_id: t.orNone(t.string("the balance that using the link takes into the account")),
  expires_at: t.time,
});
export type LinkAnswer = Static<typeof LinkAnswer>;

const WalletMessage = t.object({ message: Type.String() });
export type WalletMessage = Static<typeof WalletMessage>;

const COOKIE = "The gateway's own pages get the session as a cookie as well.";

export const ACCOUNTS = endpointsWith(
  { who: [] },
  {
    mail: {
      summary: "Mails a sign-in link",
      details:
        "The answer is the same whether or not the address has an account. While five links to a mailbox are still valid, no further one is sent.",
      body: EmailFields,
      answers: {
        202: t.object({ expires_in: t.integer("how many seconds the link works") }),
      },
    },
    preview: {
      summary: "Shows whom a mailed link signs in, and uses nothing up",
      details: "For pages that ask before they sign somebody in.",
      body: LinkFields,
      answers: { 200: LinkAnswer },
    },
    verifyLink: {
      summary: "Signs in with a mailed link, which works once",
      details: `The token follows #signin= in the link. A first sign-in makes a balance of the account's own. A link that was mailed for a claim takes the claimed balance into the account besides; any other does nothing more. ${COOKIE}`,
      body: LinkFields,
      answers: { 200: SessionAnswer },
    },
    message: {
      summary: "Creates the message that a wallet signs to sign in or to claim a balance",
      details: "The message follows EIP-4361. It works once, within ten minutes, and only unchanged.",
      body: WalletFields,
      answers: { 200: WalletMessage },
    },
    verifySignature: {
      summary: "Signs in with a signed message",
      details: COOKIE,
      body: SignatureFields,
      answers: { 200: SessionAnswer },
    },
  },
) satisfies Record<string, About>;

const OpenSession = t.namedAnswer("SignedInSession", {
  id: Type.String(),
  signed_in_at: t.time,
  expires_at: t.time,
  current: t.boolean("the one that asks"),
});
export type OpenSession = Static<typeof OpenSession>;

export const SESSIONS = endpointsWith(
  { who: ["session"] },
  {
    logout: {
      summary: "Signs out: ends the session that sends this",
      act: "sign out",
      answers: { 204: null },
    },
    list: {
      summary: "Lists the account's sessions, newest first",
      details: "Never a secret or a hash. Expired ones are not listed.",
      act: "list sessions",
      answers: { 200: t.listOf(OpenSession) },
    },
    end: {
      summary: "Ends a session of the account",
      details: "From the next request on, on every node.",
      act: "end sessions",
      answers: { 200: t.object({ id: Type.String(), ended: Type.Literal(true) }) },
    },
    endAll: {
      summary: "Ends all sessions of the account, the one that sends this too",
      act: "end sessions",
      answers: { 200: t.object({ ended: t.count }) },
    },
  },
) satisfies Record<string, About>;

const DeletionFields = t.object({
  confirm: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "the account's id for a session, or the balance's id for its recovery secret",
  }),
});

const RecoveryAnswer = t.object({
  balance_id: Type.String(),
  recovery_secret: Type.String(),
  recovery_url: Type.String(),
});
export type RecoveryAnswer = Static<typeof RecoveryAnswer>;

const DeletionAnswer = t.object({
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
