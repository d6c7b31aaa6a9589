import { type Static, Type } from "@sinclair/typebox";
import { ERROR_CODES } from "../units/errors/codes.ts";
import type { About } from "./about.ts";
import { ChargedRates } from "./catalog.ts";
import * as t from "./schema.ts";

const ms = t.number("milliseconds", { minimum: 0 });

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
  input: t.count,
  audio_input: Type.Optional(t.integer("the part of `input` that is audio", { minimum: 1 })),
  cache_read: t.count,
  cache_write: t.count,
  cache_write_5m: kept("five minutes"),
  cache_write_30m: kept("half an hour"),
  cache_write_1h: kept("an hour"),
  cache_write_12h: kept("twelve hours"),
  output: t.count,
  audio_output: Type.Optional(t.integer("the part of `output` that is audio", { minimum: 1 })),
  reasoning: t.count,
};

const receiptMembers = {
  id: Type.String(),
  created_at: t.time,
  state: t.oneOf(["refused", ...LISTED_STATES]),
  surface: Type.String(),
  key_id: Type.String(),
  run: Type.Optional(t.string("the run that the request was one of")),
  tags: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "what the request was sent to be counted under, with the header `x-gateway-tags`",
    }),
  ),
  price_list: Type.Optional(t.string("the price list that was charged by; absent: the models' own prices")),
  model_requested: t.orNone(t.string("null where the request named none, or was refused before it was read")),
  model: t.orNone(Type.String()),
  host: t.orNone(Type.String()),
  attempts: t.several(
    t.object({
      host: Type.String(),
      model: Type.Optional(Type.String()),
      outcome: Type.String(),
      ms,
      detail: Type.Optional(t.orNone(Type.String())),
    }),
  ),
  stream: Type.Boolean(),
  tokens: t.object({
    ...tokenMembers,
    source: t.oneOf(
      ["host", "counted"],
      "`host`: as the host reported; `counted`: it reported nothing credible, or nobody waited for it, and the gateway counted what was sent and delivered",
    ),
  }),
  price: t.orNone(ChargedRates),
  charges: Type.Optional(
    t.several(
      t.object({
        model: Type.String(),
        tokens: t.object(tokenMembers),
        price: ChargedRates,
        cost_usd: t.amountUsd,
      }),
      {
        description:
          "where the host went on with another of its models by itself: what each used, at its own price. `tokens` and the cost are their sums; `price` is that of the model that ended the answer",
      },
    ),
  ),
  cost_usd: t.amountUsd,
  held_usd: t.amountUsd,
  write_off: Type.Boolean(),
  write_off_usd: t.amountUsd,
  first_token_ms: t.orNone(ms),
  total_ms: t.orNone(ms),
  error_code: t.orNone(t.oneOf(ERROR_CODES)),
};

export const RotatedKeyAnswer = t.object({ kid: t.string("signs from now on") });
export type RotatedKeyAnswer = Static<typeof RotatedKeyAnswer>;

const ReceiptAnswer = t.namedAnswer("Receipt", receiptMembers);
export type ReceiptAnswer = Static<typeof ReceiptAnswer>;
export type ReceiptState = ReceiptAnswer["state"];
export type AttemptAnswer = ReceiptAnswer["attempts"][number];
/** For the operator, who looks over all balances. */
export const OwnedReceiptAnswer = t.namedAnswer("OwnedReceipt", {
  ...receiptMembers,
  balance_id: Type.String(),
});
export type OwnedReceiptAnswer = Static<typeof OwnedReceiptAnswer>;

export const receiptQuery = {
  key_id: t.string("only receipts of this key"),
  model: t.string("only receipts of requests that this model served"),
  state: t.oneOf(LISTED_STATES, "only receipts in this state"),
  host: t.string("only receipts of requests that this host served"),
  error: t.oneOf(ERROR_CODES, "only receipts of requests that ended with this error"),
  min_cost_usd: t.number("only receipts of at least this cost", { minimum: 0 }),
  since: t.string("only receipts of requests that began at this time (ISO 8601) or later"),
  until: t.string("only receipts of requests that began before this time"),
};

/** A page may be empty and not the last. */
export type ReceiptPage = t.List<ReceiptAnswer> & { readonly next_before: string | null };

const PublicKey = t.namedAnswer("Jwk", {
  kty: Type.String(),
  crv: Type.String(),
  x: Type.String(),
  kid: t.string("its thumbprint (RFC 7638)"),
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
      ...t.pageQuery(DEFAULT_RECEIPTS, MAX_RECEIPTS),
      ...receiptQuery,
    },
    answers: { 200: t.pageBefore(ReceiptAnswer) },
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
    answers: { 200: t.namedAnswer("JwkSet", { keys: t.several(PublicKey) }) },
  },
} as const satisfies Record<string, About>;
