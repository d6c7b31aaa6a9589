import { type Static, type TObject, Type } from "@sinclair/typebox";
import { ERROR_CODES } from "../units/errors/codes.ts";
import type { About } from "./about.ts";
import {
  amountUsd,
  answerOf,
  count,
  type List,
  namedAnswer,
  oneOf,
  orNone,
  pageQuery,
  several,
  time,
} from "./answers.ts";
import { ChargedRates } from "./catalog.ts";

const ms = Type.Number({ minimum: 0, description: "milliseconds" });

/**
 * Receipts that are written down; the receipt of a request that was refused is kept in memory, and listed
 * nowhere.
 */
export const LISTED_STATES = ["settled", "written_off", "failed", "cancelled", "recovered"] as const;

/** Contract §5; `ledger/receipt` writes it. */
const kept = (how: string) =>
  Type.Optional(
    Type.Integer({ minimum: 1, description: `the part of \`cache_write\` that is cached for ${how}` }),
  );

const tokenMembers = {
  input: count,
  audio_input: Type.Optional(Type.Integer({ minimum: 1, description: "the part of `input` that is audio" })),
  cache_read: count,
  cache_write: count,
  cache_write_5m: kept("five minutes"),
  cache_write_30m: kept("half an hour"),
  cache_write_1h: kept("an hour"),
  cache_write_12h: kept("twelve hours"),
  output: count,
  audio_output: Type.Optional(
    Type.Integer({ minimum: 1, description: "the part of `output` that is audio" }),
  ),
  reasoning: count,
};

const receiptMembers = {
  id: Type.String(),
  created_at: time,
  state: oneOf(["refused", ...LISTED_STATES]),
  surface: Type.String(),
  key_id: Type.String(),
  run: Type.Optional(Type.String({ description: "the run that the request was one of" })),
  tags: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "what the request was sent to be counted under, with the header `x-gateway-tags`",
    }),
  ),
  price_list: Type.Optional(
    Type.String({ description: "the price list that was charged by; absent: the models' own prices" }),
  ),
  model_requested: orNone(
    Type.String({ description: "null where the request named none, or was refused before it was read" }),
  ),
  model: orNone(Type.String()),
  host: orNone(Type.String()),
  attempts: several(
    answerOf({
      host: Type.String(),
      model: Type.Optional(Type.String()),
      outcome: Type.String(),
      ms,
      detail: Type.Optional(orNone(Type.String())),
    }),
  ),
  stream: Type.Boolean(),
  tokens: answerOf({
    ...tokenMembers,
    source: oneOf(
      ["host", "counted"],
      "`host`: as the host reported; `counted`: it reported nothing credible, or nobody waited for it, and the gateway counted what was sent and delivered",
    ),
  }),
  price: orNone(ChargedRates),
  charges: Type.Optional(
    several(
      answerOf({
        model: Type.String(),
        tokens: answerOf(tokenMembers),
        price: ChargedRates,
        cost_usd: amountUsd,
      }),
      {
        description:
          "where the host went on with another of its models by itself: what each used, at its own price. `tokens` and the cost are their sums; `price` is that of the model that ended the answer",
      },
    ),
  ),
  cost_usd: amountUsd,
  held_usd: amountUsd,
  write_off: Type.Boolean(),
  write_off_usd: amountUsd,
  first_token_ms: orNone(ms),
  total_ms: orNone(ms),
  error_code: orNone(oneOf(ERROR_CODES)),
};

export const RotatedKeyAnswer = answerOf({ kid: Type.String({ description: "signs from now on" }) });
export type RotatedKeyAnswer = Static<typeof RotatedKeyAnswer>;

const ReceiptAnswer = namedAnswer("Receipt", receiptMembers);
export type ReceiptAnswer = Static<typeof ReceiptAnswer>;
export type ReceiptState = ReceiptAnswer["state"];
export type AttemptAnswer = ReceiptAnswer["attempts"][number];
/** For the operator, who looks over all balances. */
export const OwnedReceiptAnswer = namedAnswer("OwnedReceipt", {
  ...receiptMembers,
  balance_id: Type.String(),
});
export type OwnedReceiptAnswer = Static<typeof OwnedReceiptAnswer>;

export const receiptQuery = {
  key_id: Type.String({ description: "only receipts of this key" }),
  model: Type.String({ description: "only receipts of requests that this model served" }),
  state: oneOf(LISTED_STATES, "only receipts in this state"),
  host: Type.String({ description: "only receipts of requests that this host served" }),
  error: oneOf(ERROR_CODES, "only receipts of requests that ended with this error"),
  min_cost_usd: Type.Number({ minimum: 0, description: "only receipts of at least this cost" }),
  since: Type.String({
    description: "only receipts of requests that began at this time (ISO 8601) or later",
  }),
  until: Type.String({ description: "only receipts of requests that began before this time" }),
};

export const receiptPage = <T extends TObject>(receipt: T) =>
  answerOf({
    object: Type.Literal("list"),
    data: several(receipt),
    has_more: Type.Boolean(),
    next_before: orNone(Type.String({ description: "the `before` of the next page; null on the last one" })),
  });

/** A page may be empty and not the last. */
export type ReceiptPage = List<ReceiptAnswer> & { readonly next_before: string | null };

const PublicKey = namedAnswer("Jwk", {
  kty: Type.String(),
  crv: Type.String(),
  x: Type.String(),
  kid: Type.String({ description: "its thumbprint (RFC 7638)" }),
  use: Type.String(),
  alg: Type.String(),
});

const DEFAULT_RECEIPTS = 20;
const MAX_RECEIPTS = 100;

export const RECEIPTS = {
  list: {
    summary: "Lists receipts, newest first",
    details:
      "A key lists its own receipts, or by `key_id` those of a key that it replaced; an owner those of the whole balance. Requests that were refused before anything was held are not listed; their receipts can be read by id until the gateway restarts, the newest 10,000 of them. If the operator has receipts deleted after some days, the error for a missing one says after how many.",
    who: ["key", "owner"],
    anyOrigin: true,
    query: {
      ...pageQuery(DEFAULT_RECEIPTS, MAX_RECEIPTS),
      ...receiptQuery,
    },
    answers: { 200: receiptPage(ReceiptAnswer) },
  },
  show: {
    summary: "Shows the receipt of one request",
    details:
      "A key also reads those of the keys that it was rotated from. Where the operator has receipts signed, `Accept: application/jose` is answered with a compact JWS (Ed25519) of exactly this receipt, with `iss` and `balance_id`; its key is in /.well-known/jwks.json.",
    who: ["key", "owner"],
    anyOrigin: true,
    answers: { 200: ReceiptAnswer },
    alsoAs: ["application/jose"],
  },
  keys: {
    summary: "Lists the public keys that receipts are or were signed with (JWKS)",
    needs: "receipts.sign",
    who: [],
    anyOrigin: true,
    answers: { 200: namedAnswer("JwkSet", { keys: several(PublicKey) }) },
  },
} as const satisfies Record<string, About>;
