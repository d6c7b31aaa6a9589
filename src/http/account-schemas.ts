import { Type } from "@sinclair/typebox";
import { MAX_EMAIL } from "../accounts/email.ts";
import type { About } from "./about.ts";
import { answerOf, time } from "./answers.ts";
import { text } from "./fields.ts";

const email = text(MAX_EMAIL, "a mail address");
const signature = Type.String({
  pattern: "^0x[0-9a-fA-F]{2,32768}$",
  description: "0x and the signature's hex digits",
});
const signedMembers = {
  message: text(4_096, "the message that POST /v1/auth/wallet gave, a text"),
  signature,
};

export const EmailFields = Type.Object({ email }, { additionalProperties: false });
export const LinkFields = Type.Object(
  { token: text(200, "the token of the link") },
  { additionalProperties: false },
);
export const WalletFields = Type.Object(
  {
    address: text(42, "the wallet's address"),
    chain_id: Type.Integer({
      minimum: 1,
      maximum: 4_294_967_295,
      description: "the chain's number, 1 for Ethereum's main one",
    }),
  },
  { additionalProperties: false },
);
export const SignatureFields = Type.Object(signedMembers, { additionalProperties: false });
export const ClaimFields = Type.Object(
  {
    email: Type.Optional(email),
    wallet: Type.Optional(
      Type.Object(signedMembers, {
        additionalProperties: false,
        description:
          "an object of `message`, as POST /v1/auth/wallet gave it, and `signature`, 0x and hex digits",
      }),
    ),
  },
  { additionalProperties: false },
);

/** By what an account is known. */
export const identityMembers = {
  email: Type.Optional(Type.String()),
  wallet: Type.Optional(Type.String({ description: "an address; of a contract, eip155:<chain>:<address>" })),
};

const SessionAnswer = answerOf(
  {
    session: Type.String({ description: "or-sess-…, an owner's credential, shown this once" }),
    expires_at: time,
    account_id: Type.String(),
  },
  "Session",
);
const ClaimAnswer = answerOf({
  account_id: Type.String(),
  balance_id: Type.String(),
  ...identityMembers,
  confirmed: Type.Boolean({ description: "false while it waits for the owner of the address" }),
});

const COOKIE = "To the gateway's own pages the session is also given as a cookie.";

export const ACCOUNTS = {
  mail: {
    summary: "Mails a link that signs in",
    details:
      "The answer is the same whether or not the address has an account. While five links are on their way to a mailbox, no further one is sent.",
    who: [],
    body: EmailFields,
    answers: {
      202: answerOf({ expires_in: Type.Integer({ description: "seconds that a link works for" }) }),
    },
  },
  verifyLink: {
    summary: "Uses a mailed link up and signs in",
    details: `The token stands behind #signin= in the link. ${COOKIE}`,
    who: [],
    body: LinkFields,
    answers: { 200: SessionAnswer },
  },
  message: {
    summary: "Writes the message that a wallet signs to sign in or to claim",
    details: "EIP-4361. It works once, for ten minutes, and only as it was written.",
    who: [],
    body: WalletFields,
    answers: { 200: answerOf({ message: Type.String() }) },
  },
  verifySignature: {
    summary: "Signs in with a signed message",
    details: COOKIE,
    who: [],
    body: SignatureFields,
    answers: { 200: SessionAnswer },
  },
  logout: { summary: "Ends the session that asks", who: ["session"], answers: { 204: null } },
  claim: {
    summary: "Claims an accountless balance for an email address or a wallet",
    details:
      "Send either `email` or `wallet`. The key works unchanged. A wallet's claim takes effect at once; one by email when the owner of the address opens the link that it mails, or confirms it.",
    who: ["key"],
    body: ClaimFields,
    answers: { 200: ClaimAnswer },
  },
  withdraw: {
    summary: "Withdraws the claim of an address that has not confirmed it yet",
    details:
      "For the recovery secret alone, whose holder may have mistyped the address or found a key in wrong hands.",
    who: ["owner"],
    answers: { 200: answerOf({ balance_id: Type.String(), withdrawn: Type.Literal(true) }) },
  },
  confirm: {
    summary: "Takes a claimed balance into the account",
    who: ["session"],
    answers: { 200: ClaimAnswer },
  },
  decline: { summary: "Turns a claim down", who: ["session"], answers: { 200: ClaimAnswer } },
} as const satisfies Record<string, About>;
