import { type Static, Type } from "@sinclair/typebox";
import { MAX_EMAIL } from "../customers/accounts/email.ts";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./answers.ts";
import { fieldsOf, text } from "./fields.ts";

export const email = text(MAX_EMAIL, "an email address");
const signature = Type.Unsafe<`0x${string}`>(
  Type.String({
    pattern: "^0x[0-9a-fA-F]{2,32768}$",
    description: "0x followed by the signature's hex digits",
  }),
);
export const signedMembers = {
  message: text(4_096, "the message from POST /v1/auth/wallet, a text"),
  signature,
};

const EmailFields = fieldsOf({ email });
const LinkFields = fieldsOf({ token: text(200, "the link's token") });
const WalletFields = fieldsOf({
  address: text(42, "the wallet's address"),
  chain_id: Type.Integer({
    minimum: 1,
    maximum: 4_294_967_295,
    description: "the chain's id, such as 1 for Ethereum mainnet",
  }),
});
const SignatureFields = fieldsOf(signedMembers);
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
const LinkAnswer = t.answerOf({
  email: t.string("masked: k***@example.com"),
  claimed_balance_id: t.orNone(t.string("the balance that using the link takes into the account")),
  expires_at: t.time,
});
export type LinkAnswer = Static<typeof LinkAnswer>;

const WalletMessage = t.answerOf({ message: Type.String() });
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
        202: t.answerOf({ expires_in: t.integer("how many seconds the link works") }),
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
