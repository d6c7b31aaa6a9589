import { type Static, Type } from "@sinclair/typebox";
import { SURFACE_NAMES } from "../catalog/catalog.ts";
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import type { About } from "./about.ts";
import {
  amountUsd,
  answerOf,
  count,
  heldAt,
  listOf,
  namedAnswer,
  nanoText,
  oneOf,
  orNone,
  pageOf,
  pageQuery,
  several,
  texts,
  time,
} from "./answers.ts";
import { liveKeysMembers, revokeKeysField } from "./claims.ts";
import { OwnedCreditAnswer } from "./credits.ts";
import { choice, fieldsOf, text, usd } from "./fields.ts";
import {
  AdminKeyFields,
  FindFields,
  KeyAnswer,
  KeysAnswer,
  keyQuery,
  MintedAnswer,
  priceListField,
  RevokedAnswer,
  SetUpAnswer,
} from "./keys.ts";
import { lowCreditField, lowCreditUsd } from "./me.ts";
import { OwnedReceiptAnswer, RotatedKeyAnswer, receiptPage, receiptQuery } from "./receipts.ts";

export const CreditFields = fieldsOf({
  balance_id: Type.Optional(text(64, "the id of a balance")),
  key_id: Type.Optional(text(64, "the id of a key")),
  amount_usd: usd,
  idempotency_key: text(200, "a text"),
  note: Type.Optional(text(500, "a text")),
});
export type CreditFields = Static<typeof CreditFields>;

const DebitFields = fieldsOf({
  ...CreditFields.properties,
  amount_usd: Type.Union([usd, Type.Literal("all")], {
    description: `${usd.description}, or "all" for all that is available`,
  }),
});

const why = {
  by: Type.Optional(text(100, "who decided this, a text")),
  note: Type.Optional(text(500, "a text")),
};

const SuspendFields = fieldsOf({
  reason: choice(SUSPENSION_REASONS),
  ...why,
});

export const UnsuspendFields = fieldsOf({
  ...why,
  reason: Type.Optional(
    choice(SUSPENSION_REASONS, `one of ${SUSPENSION_REASONS.join(", ")}, where only that is lifted`),
  ),
});
export type UnsuspendFields = Static<typeof UnsuspendFields>;

const DetachFields = fieldsOf({ balance_id: text(64, "a balance's id"), ...revokeKeysField });

const DetachedAnswer = answerOf({
  account_id: Type.String(),
  balance_id: Type.String(),
  detached: Type.Literal(true),
  ...liveKeysMembers,
});
export type DetachedAnswer = Static<typeof DetachedAnswer>;

const suspended = orNone(oneOf(SUSPENSION_REASONS));
const SuspensionAnswer = answerOf({ id: Type.String(), suspended, balance_ids: texts });
export type SuspensionAnswer = Static<typeof SuspensionAnswer>;

/** A suspension that was decided, or its lifting: then without a reason. */
const Decision = answerOf({
  at: time,
  reason: suspended,
  lifted: Type.Optional({ ...suspended, description: "the only reason that was lifted, of several" }),
  by: Type.String({ description: "the name that the operator gave, or admin" }),
  note: orNone(Type.String()),
});
export type Decision = Static<typeof Decision>;

const AccountAnswer = namedAnswer("Account", {
  id: Type.String(),
  object: Type.Literal("account"),
  email: orNone(Type.String()),
  wallet: orNone(Type.String()),
  suspended,
  created_at: time,
  first_signed_in_at: orNone(time),
  deleted_at: orNone(time),
  balance_ids: texts,
  claimed_balance_ids: texts,
});
export type AccountAnswer = Static<typeof AccountAnswer>;

const balanceMembers = {
  id: Type.String(),
  object: Type.Literal("balance"),
  account_id: orNone(Type.String()),
  email: orNone(Type.String({ description: "of the account" })),
  wallet: orNone(Type.String({ description: "of the account" })),
  suspended,
  closed: Type.Boolean({ description: "its owner has ended it: no key of it works" }),
  price_list: orNone(
    Type.String({ description: "the price list that its keys are charged by; null: the models' own prices" }),
  ),
  low_credit_usd: lowCreditUsd,
  created_at: time,
  credited_usd: Type.Number({ minimum: 0, description: "in all, less what was taken back" }),
  balance_usd: amountUsd,
  available_usd: amountUsd,
  held_usd: amountUsd,
  held_at: heldAt,
};

const BalanceAnswer = namedAnswer("Balance", balanceMembers);
export type BalanceAnswer = Static<typeof BalanceAnswer>;
const ListedBalance = namedAnswer("ListedBalance", { ...balanceMembers, live_keys: count });
export type ListedBalance = Static<typeof ListedBalance>;

const average = orNone(
  Type.Number({ description: "the median of the last customers; null before the first stream" }),
);

const RouteAnswer = answerOf({
  model: Type.String(),
  host_model: Type.String(),
  priced: Type.Boolean(),
  free: Type.Boolean(),
  verified_free: Type.Boolean(),
  usable: Type.Boolean({ description: "at least one worker does not let it rest after failures" }),
  resting_workers: Type.Integer({ description: "workers that let it rest" }),
  unproven_workers: Type.Integer({
    description: "workers that let it rest and have not had an answer from it since",
  }),
  served: Type.Integer({ description: "attempts that it answered, since the start" }),
  failed: Type.Integer({
    description: "attempts in which it failed, since the start, including streams that broke off",
  }),
  last_failure: orNone(
    answerOf({
      at: time,
      since: { ...time, description: "the first failure after the answer before it" },
      detail: Type.String(),
    }),
  ),
  first_token_ms: average,
  tokens_per_second: average,
});
export type RouteAnswer = Static<typeof RouteAnswer>;

const HostKeyAnswer = answerOf({
  name: Type.String({ description: "the variable or file that holds it" }),
  state: oneOf(
    ["usable", "resting", "retired"],
    "as the worker with the worst state has it: resting: it has reached a limit at the host; retired: the host refuses it until the variable or file holds another",
  ),
  in_flight: Type.Integer({ description: "requests being served with it now" }),
  refused: orNone(answerOf({ at: time, detail: Type.String() })),
});

const HostAnswer = namedAnswer("Host", {
  id: Type.String(),
  object: Type.Literal("host"),
  base_url: Type.String(),
  speaks: several(oneOf(SURFACE_NAMES)),
  auth: oneOf(["bearer", "x-api-key"]),
  has_api_key: Type.Boolean(),
  state: oneOf(
    ["available", "unused", "degraded", "unproven", "resting", "paused"],
    "unused: not asked since the start; unproven: has rested after failures, and served nobody since",
  ),
  failing_since: orNone({ ...time, description: "null where nothing fails now" }),
  max_concurrent: orNone(Type.Integer({ description: "the operator's limit; null when none is set" })),
  limit: orNone(
    Type.Integer({
      description: "how many requests it is given at once now; null before its first request",
    }),
  ),
  cut_workers: Type.Integer({
    description: "workers that lowered its limit because it was overloaded: 429, 503, or no answer in time",
  }),
  in_flight: Type.Integer({ description: "requests being served by it now" }),
  waiting: Type.Integer({ description: "requests waiting for it" }),
  keys: several(HostKeyAnswer, { description: "empty for a host with one key or none" }),
  routes: several(RouteAnswer),
});
export type HostAnswer = Static<typeof HostAnswer>;

export const BALANCE_STATES = ["suspended", "accountless", "closed"] as const;

/** Each row asks the ledger for three sums. */
const DEFAULT_ROWS = 50;
const MAX_ROWS = 200;

const admin = { who: ["admin"] } as const;

const entryMembers = {
  balance_id: Type.String(),
  amount_usd: amountUsd,
  idempotency_key: Type.String(),
  note: orNone(Type.String()),
};

const CreditedAnswer = answerOf({ ...entryMembers, credited_at: time });
export type CreditedAnswer = Static<typeof CreditedAnswer>;
const DebitedAnswer = answerOf({ ...entryMembers, debited_at: time });
export type DebitedAnswer = Static<typeof DebitedAnswer>;

const AuditAnswer = answerOf({
  ok: Type.Boolean({ description: "true when no sum is off" }),
  drift_nano: nanoText,
  credits_nano: nanoText,
  charges_nano: nanoText,
  held_nano: nanoText,
  available_nano: nanoText,
  held_at: heldAt,
  write_offs_nano: nanoText,
  losses_nano: nanoText,
  drifts: several(answerOf({ account: Type.String(), drift_nano: nanoText })),
});
export type AuditAnswer = Static<typeof AuditAnswer>;

const ReloadAnswer = answerOf({ reloaded: Type.Literal(true), needs_restart: texts });
export type ReloadAnswer = Static<typeof ReloadAnswer>;

const ConfigAnswer = Type.Unsafe<
  Readonly<Record<string, unknown>> & { readonly models: readonly { readonly id: string }[] }
>(
  Type.Object(
    { models: several(Type.Object({ id: Type.String() })) },
    { description: "the members of the configuration file" },
  ),
);
export type ConfigAnswer = Static<typeof ConfigAnswer>;

export const ADMIN = {
  credit: {
    ...admin,
    summary: "Credits a balance, once for each idempotency key",
    details:
      "Name the balance, or a key of it. Repeating a request returns the first one's response and credits nothing.",
    body: CreditFields,
    answers: {
      200: CreditedAnswer,
    },
  },
  debit: {
    ...admin,
    summary: "Takes credit back from a balance, once for each idempotency key",
    details:
      'Name the balance, or a key of it. Only what is available can be taken: what is spent, or held by open requests, cannot. If that is less than `amount_usd`, nothing is taken, and the error names it; "all" takes just that much. Repeating a request returns the first one\'s response and takes nothing. With several nodes, what they were granted and do not use is called back first, which takes up to 10 s if one of them does not answer.',
    body: DebitFields,
    answers: {
      200: DebitedAnswer,
    },
  },
  suspend: {
    ...admin,
    summary: "Suspends all balances of an account, or one balance",
    details: "From the next request on, every generation is refused with account_suspended.",
    body: SuspendFields,
    answers: { 200: SuspensionAnswer },
  },
  unsuspend: {
    ...admin,
    summary: "Lifts a suspension",
    details:
      "The suspension of an account and those of its balances are lifted separately, and of several reasons one, or all. `suspended` says what still stands.",
    body: UnsuspendFields,
    answers: { 200: SuspensionAnswer },
  },
  findAccount: {
    ...admin,
    summary: "Finds the account of an email address or a wallet",
    query: {
      email: Type.String({ description: "an email address; instead of `wallet`" }),
      wallet: Type.String({ description: "as the account shows it; instead of `email`" }),
    },
    answers: { 200: listOf(AccountAnswer) },
  },
  account: { ...admin, summary: "Shows an account", answers: { 200: AccountAnswer } },
  detach: {
    ...admin,
    summary: "Takes a claimed balance out of an account, at any time",
    details:
      "It belongs to nobody then, and the recovery secret that it was claimed with opens it again. All that derives from the claim ends, as with DELETE /v1/me/claim.",
    body: DetachFields,
    answers: {
      200: DetachedAnswer,
    },
  },
  suspensions: {
    ...admin,
    summary: "Lists the suspensions of an account or balance and their lifting, newest first",
    query: { limit: pageQuery(DEFAULT_ROWS, MAX_ROWS).limit },
    answers: {
      200: pageOf(Decision),
    },
  },
  audit: {
    ...admin,
    summary: "Recomputes every balance from its entries",
    details: "credits_nano is what was credited, less what was taken back.",
    answers: {
      200: AuditAnswer,
    },
  },
  reload: {
    ...admin,
    role: "admin",
    summary: "Reads the configuration file again",
    details:
      "A file with a mistake is refused as a whole, and the old configuration stays in force. `needs_restart` names the fields that were changed and are read only at start.",
    answers: {
      200: ReloadAnswer,
    },
  },
  metrics: {
    ...admin,
    summary: "Shows metrics in Prometheus' text format",
    details: "The setting `metrics` serves them without a token, on an address of their own.",
    answers: { 200: ["text/plain"] },
  },
  balances: {
    ...admin,
    summary: "Lists balances, newest first",
    details:
      "A filter may match little: a page can be short, even empty, and still say where the next one begins.",
    query: {
      ...pageQuery(DEFAULT_ROWS, MAX_ROWS),
      below_usd: Type.Number({
        minimum: 0,
        description: "only balances that were credited and have less than this available",
      }),
      state: oneOf(BALANCE_STATES, "only such balances"),
    },
    answers: {
      200: answerOf({
        object: Type.Literal("list"),
        data: several(ListedBalance),
        has_more: Type.Boolean(),
        next_before: orNone(Type.String({ description: "the `before` of the next page" })),
      }),
    },
  },
  balance: { ...admin, summary: "Shows a balance", answers: { 200: BalanceAnswer } },
  changeBalance: {
    ...admin,
    summary: "Changes the price list of a balance, and below which credit its owner is notified",
    details:
      "Requests that are admitted from then on are charged by the price list, unless their key has a list of its own; those that are open stay at the prices that they were admitted at.",
    body: fieldsOf({
      price_list: Type.Optional(priceListField),
      low_credit_usd: Type.Optional(lowCreditField),
    }),
    answers: { 200: BalanceAnswer },
  },
  credits: {
    ...admin,
    summary: "Lists the credits of a balance, newest first",
    details: "The same list that GET /v1/credits gives the owner: an amount below zero was taken back.",
    query: { limit: pageQuery(DEFAULT_ROWS, MAX_ROWS).limit },
    answers: { 200: pageOf(OwnedCreditAnswer) },
  },
  keys: {
    ...admin,
    summary: "Lists the keys of a balance, newest first",
    query: { ...pageQuery(DEFAULT_ROWS, MAX_ROWS), ...keyQuery },
    answers: { 200: KeysAnswer },
  },
  createKey: {
    ...admin,
    summary: "Creates a balance without an account, and its first key",
    details:
      "What POST /v1/keys does for anybody, where `setup` allows it. `price_list` becomes the balance's: keys that its owner makes have it, too.",
    body: AdminKeyFields,
    answers: { 201: SetUpAnswer },
  },
  createKeyOn: {
    ...admin,
    summary: "Creates another key on a balance",
    details: "For an owner who is not there to do it. The operator sees the secret this once.",
    body: AdminKeyFields,
    answers: { 201: MintedAnswer },
  },
  findKey: {
    ...admin,
    // It only reads; a secret is sent in a body, so that no log on the way has it.
    role: "read",
    summary: "Finds the key that a secret is, whether or not it still works",
    body: FindFields,
    answers: { 200: KeyAnswer },
  },
  key: { ...admin, summary: "Shows a key with its use", answers: { 200: KeyAnswer } },
  changeKey: {
    ...admin,
    summary: "Changes a key's limits, name or expiry",
    details: "A raised limit applies from the key's next request on.",
    body: AdminKeyFields,
    answers: { 200: KeyAnswer },
  },
  revoke: {
    ...admin,
    summary: "Revokes a key, which ends with its very next request",
    answers: { 200: RevokedAnswer },
  },
  receipt: {
    ...admin,
    summary: "Shows the receipt of any request",
    answers: { 200: OwnedReceiptAnswer },
  },
  receipts: {
    ...admin,
    summary: "Lists the receipts of a balance, newest first",
    details: "The same list that GET /v1/receipts gives the owner.",
    query: { ...pageQuery(DEFAULT_ROWS, MAX_ROWS), ...receiptQuery },
    answers: { 200: receiptPage(OwnedReceiptAnswer) },
  },
  everybodysReceipts: {
    ...admin,
    summary: "Lists everybody's receipts, newest first",
    query: {
      ...pageQuery(DEFAULT_ROWS, MAX_ROWS),
      ...receiptQuery,
      balance_id: Type.String({ description: "only receipts of this balance" }),
    },
    answers: { 200: receiptPage(OwnedReceiptAnswer) },
  },
  rotateSigningKey: {
    ...admin,
    role: "admin",
    summary: "Has receipts signed with a new key from now on",
    details:
      "The earlier key's private part is erased. Its public part stays in /.well-known/jwks.json, so that what it signed can be verified.",
    needs: "receipts.sign",
    answers: { 201: RotatedKeyAnswer },
  },
  hosts: {
    ...admin,
    summary: "Lists hosts with their health and routes, across all workers of this machine",
    answers: { 200: listOf(HostAnswer) },
  },
  config: {
    ...admin,
    summary: "Shows the configuration in force, with its secrets masked",
    answers: { 200: ConfigAnswer },
  },
} as const satisfies Record<string, About>;
