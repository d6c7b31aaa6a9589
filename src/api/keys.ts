import { type Static, Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import * as t from "./schema.ts";
import { PERIODS } from "./usage.ts";

const MAX_NAME = 100;
const MAX_MODELS = 500;
const MAX_MODEL_ID = 200;
const MAX_KEY_BUDGETS = 16;

const modelIds = t.several(Type.String({ minLength: 1, maxLength: MAX_MODEL_ID }), {
  minItems: 1,
  maxItems: MAX_MODELS,
  description: `a list of 1 to ${MAX_MODELS} model ids`,
});

export const MAX_BUDGET_NAME = 64;
const budgetName = Type.String({ minLength: 1, maxLength: MAX_BUDGET_NAME });

const MAX_POLICY_NAMES = 64;
const policyNames = t.several(Type.String({ minLength: 1, maxLength: 64 }), {
  minItems: 1,
  maxItems: MAX_POLICY_NAMES,
  description: `a list of 1 to ${MAX_POLICY_NAMES} names`,
});
const perMillion = Type.Optional(
  Type.Number({ minimum: 0, maximum: 1_000_000, description: "an amount in USD per million tokens" }),
);

const policyMembers = {
  region: Type.Optional(policyNames),
  zdr: Type.Optional(t.boolean("true or false")),
  hosts: Type.Optional(
    Type.Object(
      { only: Type.Optional(policyNames), ignore: Type.Optional(policyNames) },
      { additionalProperties: false, description: "a map with `only`, `ignore` or both" },
    ),
  ),
  max_price: Type.Optional(
    Type.Object(
      { prompt: perMillion, completion: perMillion },
      { additionalProperties: false, description: "a map with `prompt`, `completion` or both" },
    ),
  ),
  tags_from: Type.Optional(t.choice(["metadata"])),
  user_tag: Type.Optional(t.choice(["hashed", "plain"])),
};
const policy = Type.Object(policyMembers, {
  additionalProperties: false,
  description: "a map with any of `region`, `zdr`, `hosts`, `max_price`, `tags_from` and `user_tag`",
});

export const KeyFields = t.object({
  name: Type.Optional(t.orNull(t.text(MAX_NAME, "a text"), "none")),
  rpm_limit: Type.Optional(t.orNull(t.wholeNumber, "no limit")),
  tpm_limit: Type.Optional(t.orNull(t.wholeNumber, "no limit")),
  daily_limit_usd: Type.Optional(t.orNull(t.usd, "no limit")),
  monthly_limit_usd: Type.Optional(t.orNull(t.usd, "no limit")),
  allowed_models: Type.Optional(t.orNull(modelIds, "all")),
  budget: Type.Optional(
    Type.Union([budgetName, t.several(budgetName, { maxItems: MAX_KEY_BUDGETS }), Type.Null()], {
      description: `the name of a budget, a list of at most ${MAX_KEY_BUDGETS}, or null for none`,
    }),
  ),
  policy: Type.Optional(t.orNull(policy, "all hosts")),
  expires_at: Type.Optional(t.orNull(t.string("a time in ISO 8601 with a time zone"), "never")),
});
export type KeyFields = Static<typeof KeyFields>;

export const priceListField = t.orNull(
  t.text(64, "the name of a price list of the configuration, a text"),
  "none",
);

/** What only operators decide about a key, too. */
export const AdminKeyFields = t.object({
  ...KeyFields.properties,
  price_list: Type.Optional(priceListField),
});
export type AdminKeyFields = Static<typeof AdminKeyFields>;

/** A whole key has no place in a path, which proxies log. */
export const FindFields = t.object({ key: t.text(128, "an API key, a text") });

const keyMembers = {
  id: Type.String(),
  object: Type.Literal("key"),
  prefix: t.string("the first 12 characters of the key"),
  name: t.orNone(Type.String()),
  balance_id: Type.String(),
  state: t.oneOf(["active", "rotated", "expired", "revoked"]),
  created_at: t.time,
  expires_at: t.orNone(t.time),
  rpm_limit: t.orNone(t.count),
  tpm_limit: t.orNone(t.count),
  daily_limit_usd: t.orNone(t.amountUsd),
  monthly_limit_usd: t.orNone(t.amountUsd),
  allowed_models: t.orNone(t.texts),
  budget: Type.Union([Type.String(), t.texts, Type.Null()]),
  policy: t.orNone(policy),
  price_list: t.orNone(
    t.string("the price list that the key is charged by; null: that of its balance, if any"),
  ),
};

/** The limits of a new key whose creator named none. */
export const DefaultLimits = t.object({
  rpm_limit: keyMembers.rpm_limit,
  tpm_limit: keyMembers.tpm_limit,
  daily_limit_usd: keyMembers.daily_limit_usd,
  monthly_limit_usd: keyMembers.monthly_limit_usd,
});
export type DefaultLimits = Static<typeof DefaultLimits>;

const usedMembers = {
  ...keyMembers,
  used_day_usd: t.amountUsd,
  used_month_usd: t.amountUsd,
  held_usd: t.amountUsd,
  held_at: t.heldAt,
  used_period_usd: Type.Optional(
    t.orNone({
      ...t.amountUsd,
      description: "charged in the `period` that a list was asked for; null while too many lists are",
    }),
  ),
  last_used_at: Type.Optional(
    t.orNone({ ...t.time, description: "with `period`: when the newest request of the last 30 days began" }),
  ),
};
const secret = { key: t.string("the plaintext, shown only this once") };

export const KeyAnswer = t.namedAnswer("Key", usedMembers);
export type KeyAnswer = Static<typeof KeyAnswer>;
export const MintedAnswer = t.namedAnswer("NewKey", { ...keyMembers, ...secret });
export type MintedAnswer = Static<typeof MintedAnswer>;
export const SetUpAnswer = t.namedAnswer("NewBalance", {
  ...keyMembers,
  ...secret,
  balance_price_list: t.orNone(t.string("the price list of the balance, and so of all its keys without one")),
  recovery_secret: t.string("the owner's credential, shown only this once"),
  recovery_url: Type.String(),
});
export type SetUpAnswer = Static<typeof SetUpAnswer>;
const RotatedAnswer = t.namedAnswer("RotatedKey", {
  ...keyMembers,
  ...secret,
  old_key: t.object({ id: Type.String(), expires_at: t.time }),
});
export type RotatedAnswer = Static<typeof RotatedAnswer>;
export const RevokedAnswer = t.object({ id: Type.String(), state: t.oneOf(["revoked"]) });
export type RevokedAnswer = Static<typeof RevokedAnswer>;

const DEFAULT_KEYS = 100;
const MAX_KEYS = 1_000;
const MAX_IDS = 100;

export const KEY_ORDERS = ["spend", "used"] as const;

/** What lists of keys are cut down to, and ordered by. */
export const keyQuery = {
  search: Type.String({
    maxLength: 100,
    description: "what keys have in their name, their beginning or their id, at most 100 characters",
  }),
  state: t.oneOf(["active", "ended"], "active: that work now; ended: revoked, or expired"),
  ids: Type.String({
    pattern: `^[\\w-]{1,64}(,[\\w-]{1,64}){0,${MAX_IDS - 1}}$`,
    description: `ids of keys with commas between them, at most ${MAX_IDS}`,
  }),
  period: t.oneOf(PERIODS, "what `used_period_usd` of each key covers; without a `period`, it is left out"),
  sort: t.oneOf(
    KEY_ORDERS,
    "the most first: spend in the `period` (30 days unless named), or latest use; keys that were not used in 30 days are left out",
  ),
};

export const KeysAnswer = t.object({
  object: Type.Literal("list"),
  data: t.several(KeyAnswer),
  has_more: Type.Boolean(),
  next_before: Type.Optional(
    t.orNone(t.string("with `sort`: the `before` of the next page; null on the last one")),
  ),
});

export const KEYS = {
  create: {
    summary: "Creates a key",
    details:
      "Without a credential, creates a balance without an account, its first key and its recovery secret; both secrets are shown once. With an owner's credential, creates another key on the owner's balance.",
    who: ["none", "owner"],
    body: KeyFields,
    answers: { 201: Type.Union([SetUpAnswer, MintedAnswer]) },
  },
  list: {
    summary: "Lists the keys of a balance, newest first",
    details: "An API key sees only itself.",
    who: ["owner", "key"],
    query: { ...t.pageQuery(DEFAULT_KEYS, MAX_KEYS), ...keyQuery },
    answers: { 200: KeysAnswer },
  },
  show: { summary: "Shows a key", who: ["owner", "key"], answers: { 200: KeyAnswer } },
  find: {
    summary: "Finds the key that a secret is, whether or not it still works",
    who: ["owner"],
    act: "look up keys",
    body: FindFields,
    answers: { 200: KeyAnswer },
  },
  change: {
    summary: "Changes a key's limits, name or expiry",
    details: "An API key can only tighten itself.",
    who: ["owner", "key"],
    body: KeyFields,
    answers: { 200: KeyAnswer },
  },
  rotate: {
    summary: "Replaces a key with a new one that has the same limits and counters",
    details:
      "The old key keeps working for the grace window (24 hours by default). With the recovery secret, it ends at once, together with every key that it replaced; if the named key was already rotated, its latest replacement is the one that is replaced.",
    who: ["key", "owner"],
    answers: { 200: RotatedAnswer },
  },
  revoke: {
    summary: "Revokes a key, which ends with its very next request",
    who: ["owner", "key"],
    answers: { 200: RevokedAnswer },
  },
} as const satisfies Record<string, About>;
