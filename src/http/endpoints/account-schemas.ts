import { Type } from "@sinclair/typebox";
import { MAX_EMAIL } from "../../accounts/email.ts";
import type { About } from "../about.ts";
import { answerOf, time } from "../answers.ts";
import { text } from "../fields.ts";

const email = text(MAX_EMAIL, "an email address");
const signature = Type.Unsafe<`0x${string}`>(
  Type.String({
    pattern: "^0x[0-9a-fA-F]{2,32768}$",
    description: "0x followed by the signature's hex digits",
  }),
);
const signedMembers = {
  message: text(4_096, "the message from POST /v1/auth/wallet, a text"),
  signature,
};

export const EmailFields = Type.Object({ email }, { additionalProperties: false });
export const LinkFields = Type.Object(
  { token: text(200, "the link's token") },
  { additionalProperties: false },
);
export const WalletFields = Type.Object(
  {
    address: text(42, "the wallet's address"),
    chain_id: Type.Integer({
      minimum: 1,
      maximum: 4_294_967_295,
      description: "the chain's id, such as 1 for Ethereum mainnet",
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
          "an object of `message`, from POST /v1/auth/wallet, and `signature`, 0x followed by hex digits",
      }),
    ),
  },
  { additionalProperties: false },
);

/** By what an account is known. */
export const identityMembers = {
  email: Type.Optional(Type.String()),
  wallet: Type.Optional(
    Type.String({ description: "an address, or eip155:<chain>:<address> for a contract" }),
  ),
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
  confirmed: Type.Boolean({ description: "false until the owner of the address confirms" }),
});

const COOKIE = "The gateway's own pages get the session as a cookie as well.";

export const ACCOUNTS = {
  mail: {
    summary: "Mails a sign-in link",
    details:
      "The answer is the same whether or not the address has an account. While five links to a mailbox are still valid, no further one is sent.",
    who: [],
    body: EmailFields,
    answers: {
      202: answerOf({ expires_in: Type.Integer({ description: "how many seconds the link works" }) }),
    },
  },
  verifyLink: {
    summary: "Signs in with a mailed link, which works once",
    details: `The token follows #signin= in the link. ${COOKIE}`,
    who: [],
    body: LinkFields,
    answers: { 200: SessionAnswer },
  },
  message: {
    summary: "Creates the message that a wallet signs to sign in or to claim a balance",
    details: "The message follows EIP-4361. It works once, within ten minutes, and only unchanged.",
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
  logout: {
    summary: "Signs out: ends the session that sends this",
    who: ["session"],
    answers: { 204: null },
  },
  claim: {
    summary: "Claims an accountless balance for an email address or a wallet",
    details:
      "Send either `email` or `wallet`. The key works unchanged. A claim by wallet takes effect at once. A claim by email takes effect when the owner of the address opens the mailed link, or confirms the claim.",
    who: ["key"],
    body: ClaimFields,
    answers: { 200: ClaimAnswer },
  },
  withdraw: {
    summary: "Withdraws a claim that the owner of the address has not confirmed yet",
    details:
      "Takes the recovery secret only, whose holder may have mistyped the address or found a key in the wrong hands.",
    who: ["owner"],
    answers: { 200: answerOf({ balance_id: Type.String(), withdrawn: Type.Literal(true) }) },
  },
  confirm: {
    summary: "Takes a claimed balance into the account",
    who: ["session"],
    answers: { 200: ClaimAnswer },
  },
  decline: { summary: "Declines a claim", who: ["session"], answers: { 200: ClaimAnswer } },
} as const satisfies Record<string, About>;
