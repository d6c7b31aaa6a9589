import { type Static, Type } from "@sinclair/typebox";
import { SURFACE_NAMES } from "../catalog/catalog.ts";
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import { type About, endpointsWith } from "./about.ts";
import { liveKeysMembers, revokeKeysField } from "./claims.ts";
import { OwnedCreditAnswer } from "./credits.ts";
import {
  AdminKeyFields,
  type DefaultLimits,
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
import { OwnedReceiptAnswer, RotatedKeyAnswer, receiptQuery } from "./receipts.ts";
import * as t from "./schema.ts";

export const CreditFields = t.object({
  balance_id: Type.Optional(t.text(64, "the id of a balance")),
  key_id: Type.Optional(t.text(64, "the id of a key")),
  amount_usd: t.usd,
  idempotency_key: t.text(200, "a text"),
  note: Type.Optional(t.text(500, "a text")),
});
export type CreditFields = Static<typeof CreditFields>;

const DebitFields = t.object({
  ...CreditFields.properties,
  amount_usd: Type.Union([t.usd, Type.Literal("all")], {
    description: `${t.usd.description}, or "all" for all that is available`,
  }),
});

const why = {
  by: Type.Optional(t.text(100, "who decided this, a text")),
  note: Type.Optional(t.text(500, "a text")),
};

const SuspendFields = t.object({
  reason: t.choice(SUSPENSION_REASONS),
  ...why,
});

export const UnsuspendFields = t.object({
  ...why,
  reason: Type.Optional(
    t.choice(SUSPENSION_REASONS, `one of ${SUSPENSION_REASONS.join(", ")}, where only that is lifted`),
  ),
});
export type UnsuspendFields = Static<typeof UnsuspendFields>;

const DetachFields = t.object({ balance_id: t.text(64, "a balance's id"), ...revokeKeysField });

const DetachedAnswer = t.object({
  account_id: Type.String(),
  balance_id: Type.String(),
  detached: Type.Literal(true),
  ...liveKeysMembers,
});
export type DetachedAnswer = Static<typeof DetachedAnswer>;

const suspended = t.orNone(t.oneOf(SUSPENSION_REASONS));
const SuspensionAnswer = t.object({ id: Type.String(), suspended, balance_ids: t.texts });
export type SuspensionAnswer = Static<typeof SuspensionAnswer>;

/** A suspension that was decided, or its lifting: then without a reason. */
const Decision = t.object({
  at: t.time,
  reason: suspended,
  lifted: Type.Optional({ ...suspended, description: "the only reason that was lifted, of several" }),
  by: t.string("the name that the operator gave, or admin"),
  note: t.orNone(Type.String()),
});
export type Decision = Static<typeof Decision>;

const AccountAnswer = t.namedAnswer("Account", {
  id: Type.String(),
  object: Type.Literal("account"),
  email: t.orNone(Type.String()),
  wallet: t.orNone(Type.String()),
  suspended,
  created_at: t.time,
  first_signed_in_at: t.orNone(t.time),
  deleted_at: t.orNone(t.time),
  balance_ids: t.texts,
  claimed_balance_ids: t.texts,
});
export type AccountAnswer = Static<typeof AccountAnswer>;

const balanceMembers = {
  id: Type.String(),
  object: Type.Literal("balance"),
  account_id: t.orNone(Type.String()),
  email: t.orNone(t.string("of the account")),
  wallet: t.orNone(t.string("of the account")),
  suspended,
  closed: t.boolean("its owner has ended it: no key of it works"),
  price_list: t.orNone(t.string("the price list that its keys are charged by; null: the models' own prices")),
  low_credit_usd: lowCreditUsd,
  created_at: t.time,
  credited_usd: t.number("in all, less what was taken back", { minimum: 0 }),
  balance_usd: t.amountUsd,
  available_usd: t.amountUsd,
  held_usd: t.amountUsd,
  held_at: t.heldAt,
};

const BalanceAnswer = t.namedAnswer("Balance", balanceMembers);
export type BalanceAnswer = Static<typeof BalanceAnswer>;
const ListedBalance = t.namedAnswer("ListedBalance", { ...balanceMembers, live_keys: t.count });
export type ListedBalance = Static<typeof ListedBalance>;

const average = t.orNone(t.number("the median of the last customers; null before the first stream"));

const RouteAnswer = t.object({
  model: Type.String(),
  host_model: Type.String(),
  priced: Type.Boolean(),
  free: Type.Boolean(),
  verified_free: Type.Boolean(),
  usable: t.boolean("at least one worker does not let it rest after failures"),
  resting_workers: t.integer("workers that let it rest"),
  unproven_workers: t.integer("workers that let it rest and have not had an answer from it since"),
  served: t.integer("attempts that it answered, since the start"),
  failed: t.integer("attempts in which it failed, since the start, including streams that broke off"),
  last_failure: t.orNone(
    t.object({
      at: t.time,
      since: { ...t.time, description: "the first failure after the answer before it" },
      detail: Type.String(),
    }),
  ),
  first_token_ms: average,
  tokens_per_second: average,
});
export type RouteAnswer = Static<typeof RouteAnswer>;

const HostKeyAnswer = t.object({
  name: t.string("the variable or file that holds it"),
  state: t.oneOf(
    ["usable", "resting", "retired"],
    "as the worker with the worst state has it: resting: it has reached a limit at the host; retired: the host refuses it until the variable or file holds another",
  ),
  in_flight: t.integer("requests being served with it now"),
  refused: t.orNone(t.object({ at: t.time, detail: Type.String() })),
});

const HostAnswer = t.namedAnswer("Host", {
  id: Type.String(),
  object: Type.Literal("host"),
  base_url: Type.String(),
  speaks: t.several(t.oneOf(SURFACE_NAMES)),
  auth: t.oneOf(["bearer", "x-api-key"]),
  has_api_key: Type.Boolean(),
  state: t.oneOf(
    ["available", "unused", "degraded", "unproven", "resting", "paused"],
    "unused: not asked since the start; unproven: has rested after failures, and served nobody since",
  ),
  failing_since: t.orNone({ ...t.time, description: "null where nothing fails now" }),
  max_concurrent: t.orNone(t.integer("the operator's limit; null when none is set")),
  limit: t.orNone(t.integer("how many requests it is given at once now; null before its first request")),
  cut_workers: t.integer(
    "workers that lowered its limit because it was overloaded: 429, 503, or no answer in time",
  ),
  in_flight: t.integer("requests being served by it now"),
  waiting: t.integer("requests waiting for it"),
  keys: t.several(HostKeyAnswer, { description: "empty for a host with one key or none" }),
  routes: t.several(RouteAnswer),
});
export type HostAnswer = Static<typeof HostAnswer>;

export const BALANCE_STATES = ["suspended", "accountless", "closed"] as const;

const entryMembers = {
  balance_id: Type.String(),
  amount_usd: t.amountUsd,
  idempotency_key: Type.String(),
  note: t.orNone(Type.String()),
};

const CreditedAnswer = t.object({ ...entryMembers, credited_at: t.time });
export type CreditedAnswer = Static<typeof CreditedAnswer>;
const DebitedAnswer = t.object({ ...entryMembers, debited_at: t.time });
export type DebitedAnswer = Static<typeof DebitedAnswer>;

const AuditAnswer = t.object({
  ok: t.boolean("true when no sum is off"),
  drift_nano: t.nanoText,
  credits_nano: t.nanoText,
  charges_nano: t.nanoText,
  held_nano: t.nanoText,
  available_nano: t.nanoText,
  held_at: t.heldAt,
  write_offs_nano: t.nanoText,
  losses_nano: t.nanoText,
  drifts: t.several(t.object({ account: Type.String(), drift_nano: t.nanoText })),
});
export type AuditAnswer = Static<typeof AuditAnswer>;

const ReloadAnswer = t.object({ reloaded: Type.Literal(true), needs_restart: t.texts });
export type ReloadAnswer = Static<typeof ReloadAnswer>;

const ConfigAnswer = Type.Unsafe<
  Readonly<Record<string, unknown>> & {
    readonly models: readonly { readonly id: string }[];
    readonly defaults: Readonly<Record<"accountless" | "account", DefaultLimits>>;
  }
>(
  Type.Object(
    { models: t.several(Type.Object({ id: Type.String() })) },
    { description: "the members of the configuration file" },
  ),
);
export type ConfigAnswer = Static<typeof ConfigAnswer>;

export const ADMIN = endpointsWith(
  { who: ["admin"] },
  {
    credit: {
      summary: "Credits a balance, once for each idempotency key",
      details:
        "Name the balance, or a key of it. Repeating a request returns the first one's response and credits nothing.",
      body: CreditFields,
      answers: { 200: CreditedAnswer },
    },
    debit: {
      summary: "Takes credit back from a balance, once for each idempotency key",
      details:
        'Name the balance, or a key of it. Only what is available can be taken: what is spent, or held by open requests, cannot. If that is less than `amount_usd`, nothing is taken, and the error names it; "all" takes just that much. Repeating a request returns the first one\'s response and takes nothing. With several nodes, what they were granted and do not use is called back first, which takes up to 10 s if one of them does not answer.',
      body: DebitFields,
      answers: { 200: DebitedAnswer },
    },
    suspend: {
      summary: "Suspends all balances of an account, or one balance",
      details: "From the next request on, every generation is refused with account_suspended.",
      body: SuspendFields,
      answers: { 200: SuspensionAnswer },
    },
    unsuspend: {
      summary: "Lifts a suspension",
      details:
        "The suspension of an account and those of its balances are lifted separately, and of several reasons one, or all. `suspended` says what still stands.",
      body: UnsuspendFields,
      answers: { 200: SuspensionAnswer },
    },
    findAccount: {
      summary: "Finds the account of an email address or a wallet",
      query: {
        email: t.string("an email address; instead of `wallet`"),
        wallet: t.string("as the account shows it; instead of `email`"),
      },
      answers: { 200: t.listOf(AccountAnswer) },
    },
    account: { summary: "Shows an account", answers: { 200: AccountAnswer } },
    detach: {
      summary: "Takes a claimed balance out of an account, at any time",
      details:
        "It belongs to nobody then, and the recovery secret that it was claimed with opens it again. All that derives from the claim ends, as with DELETE /v1/me/claim.",
      body: DetachFields,
      answers: { 200: DetachedAnswer },
    },
    suspensions: {
      summary: "Lists the suspensions of an account or balance and their lifting, newest first",
      query: { limit: t.pageQuery().limit },
      answers: { 200: t.pageOf(Decision) },
    },
    audit: {
      summary: "Recomputes every balance from its entries",
      details: "credits_nano is what was credited, less what was taken back.",
      answers: { 200: AuditAnswer },
    },
    reload: {
      role: "admin",
      summary: "Reads the configuration file again",
      details:
        "A file with a mistake is refused as a whole, and the old configuration stays in force. `needs_restart` names the fields that were changed and are read only at start.",
      answers: { 200: ReloadAnswer },
    },
    metrics: {
      summary: "Shows metrics in Prometheus' text format",
      details: "The setting `metrics` serves them without a token, on an address of their own.",
      answers: { 200: ["text/plain"] },
    },
    balances: {
      summary: "Lists balances, newest first",
      details:
        "A filter may match little: a page can be short, even empty, and still say where the next one begins.",
      query: {
        ...t.pageQuery(),
        below_usd: t.number("only balances that were credited and have less than this available", {
          minimum: 0,
        }),
        state: t.oneOf(BALANCE_STATES, "only such balances"),
      },
      answers: { 200: t.pageBefore(ListedBalance) },
    },
    balance: { summary: "Shows a balance", answers: { 200: BalanceAnswer } },
    changeBalance: {
      summary: "Changes the price list of a balance, and below which credit its owner is notified",
      details:
        "Requests that are admitted from then on are charged by the price list, unless their key has a list of its own; those that are open stay at the prices that they were admitted at.",
      body: t.object({
        price_list: Type.Optional(priceListField),
        low_credit_usd: Type.Optional(lowCreditField),
      }),
      answers: { 200: BalanceAnswer },
    },
    credits: {
      summary: "Lists the credits of a balance, newest first",
      details: "The same list that GET /v1/credits gives the owner: an amount below zero was taken back.",
      query: { limit: t.pageQuery().limit },
      answers: { 200: t.pageOf(OwnedCreditAnswer) },
    },
    keys: {
      summary: "Lists the keys of a balance, newest first",
      query: { ...t.pageQuery(), ...keyQuery },
      answers: { 200: KeysAnswer },
    },
    createKey: {
      summary: "Creates a balance without an account, and its first key",
      details:
        "What POST /v1/keys does for anybody, where `setup` allows it. `price_list` becomes the balance's: keys that its owner makes have it, too.",
      body: AdminKeyFields,
      answers: { 201: SetUpAnswer },
    },
    createKeyOn: {
      summary: "Creates another key on a balance",
      details: "For an owner who is not there to do it. The operator sees the secret this once.",
      body: AdminKeyFields,
      answers: { 201: MintedAnswer },
    },
    findKey: {
      // It only reads; a secret is sent in a body, so that no log on the way has it.
      role: "read",
      summary: "Finds the key that a secret is, whether or not it still works",
      body: FindFields,
      answers: { 200: KeyAnswer },
    },
    key: { summary: "Shows a key with its use", answers: { 200: KeyAnswer } },
    changeKey: {
      summary: "Changes a key's limits, name or expiry",
      details: "A raised limit applies from the key's next request on.",
      body: AdminKeyFields,
      answers: { 200: KeyAnswer },
    },
    revoke: {
      summary: "Revokes a key, which ends with its very next request",
      answers: { 200: RevokedAnswer },
    },
    receipt: {
      summary: "Shows the receipt of any request",
      answers: { 200: OwnedReceiptAnswer },
    },
    receipts: {
      summary: "Lists the receipts of a balance, newest first",
      details: "The same list that GET /v1/receipts gives the owner.",
      query: { ...t.pageQuery(), ...receiptQuery },
      answers: { 200: t.pageBefore(OwnedReceiptAnswer) },
    },
    everybodysReceipts: {
      summary: "Lists everybody's receipts, newest first",
      query: {
        ...t.pageQuery(),
        ...receiptQuery,
        balance_id: t.string("only receipts of this balance"),
      },
      answers: { 200: t.pageBefore(OwnedReceiptAnswer) },
    },
    rotateSigningKey: {
      role: "admin",
      summary: "Has receipts signed with a new key from now on",
      details:
        "The earlier key's private part is erased. Its public part stays in /.well-known/jwks.json, so that what it signed can be verified.",
      needs: "receipts.sign",
      answers: { 201: RotatedKeyAnswer },
    },
    hosts: {
      summary: "Lists hosts with their health and routes, across all workers of this machine",
      answers: { 200: t.listOf(HostAnswer) },
    },
    config: {
      summary: "Shows the configuration in force, with its secrets masked",
      answers: { 200: ConfigAnswer },
    },
  },
) satisfies Record<string, About>;
