import { type Static, type TObject, type TProperties, Type } from "@sinclair/typebox";
import { TAG_NAME } from "../customers/keys/tags.ts";
import type { About } from "./about.ts";
import { RunAnswer } from "./runs.ts";
import * as t from "./schema.ts";

export const PERIODS = ["hour", "day", "today", "yesterday", "week", "month"] as const;
export type Period = (typeof PERIODS)[number];
const PERIOD_WORDS =
  "hour, day, week and month end now (60 minutes, 24 hours, 7 days, 30 days); today and yesterday are days of UTC";
const periodQuery = t.unlessNamed("week", t.oneOf(PERIODS, PERIOD_WORDS));

const periodMembers = {
  object: Type.Literal("usage"),
  period: t.oneOf(PERIODS),
  since: t.time,
  until: t.orNone({ ...t.time, description: "receipts from then on were not counted; null up to now" }),
  stretch_ms: t.count,
};

const sumMembers = {
  requests: t.count,
  failed: t.count,
  cost_usd: t.amountUsd,
  input_tokens: t.count,
  output_tokens: t.count,
};

export type UsageSum = Static<TObject<typeof sumMembers>>;

const USAGE_SPLITS = ["model", "key", "host"] as const;
const by = t.unlessNamed("model", t.oneOf(USAGE_SPLITS, "what each stretch of time is split by"));

const stretchMembers = {
  start: t.time,
  name: t.string("of the model, key or host that stretches are split by; empty where no host served"),
  ...sumMembers,
};
const StretchAnswer = t.object(stretchMembers);
const percentile = t.orNone(t.number("milliseconds", { minimum: 0 }));
const firstTokens = t.object({ p50: percentile, p95: percentile });

const UsageAnswer = t.namedAnswer("Usage", {
  ...periodMembers,
  stretches: t.several(StretchAnswer),
  routes: t.several(
    t.object({
      model: Type.String(),
      host: Type.String(),
      ...sumMembers,
      first_token_ms: firstTokens,
    }),
  ),
  keys: t.several(t.object({ key_id: Type.String(), last_used_at: t.time, ...sumMembers })),
  truncated: t.boolean("true when not every receipt was counted"),
  groups: Type.Optional(
    t.several(
      t.object({
        value: t.orNone(t.string("null for requests without the tag")),
        ...sumMembers,
      }),
      { description: "of the tag that `group_by` names, the most expensive values first, at most 1,000" },
    ),
  ),
  other_groups: Type.Optional(t.orNone(t.object(sumMembers))),
  run: Type.Optional(RunAnswer),
});
export type UsageAnswer = Static<typeof UsageAnswer>;

export const USAGE = {
  summary: "Sums up receipts, over time and by model and host",
  details: "A key sees its own use, an owner that of the whole balance or of one of its keys.",
  who: ["key", "owner"],
  query: {
    period: periodQuery,
    by,
    key_id: t.string("only receipts of this key"),
    group_by: Type.String({
      pattern: `^tag:${TAG_NAME}$`,
      description: "`tag:` and the name of a tag, such as `tag:customer`, by whose values there are sums too",
    }),
    run: t.string(
      "only receipts of this run; for owners and the key that started it, with its limits and what is used of them, while it goes on",
    ),
  },
  answers: { 200: UsageAnswer },
} as const satisfies About;

/** What lists of everybody's use are ordered by, the most first. */
export const SPENDING_ORDERS = ["cost", "growth", "requests", "tokens", "loss"] as const;
export type SpendingOrder = (typeof SPENDING_ORDERS)[number];

const DEFAULT_RANKED = 20;
const MAX_RANKED = 1_000;

const comparedMembers = {
  ...sumMembers,
  cost_before_usd: t.orNone(
    t.number("at the same time a period earlier; null where those receipts are not all there or read"),
  ),
};

const marginMembers = {
  host_cost_usd: t.orNone(
    t.number(
      "what hosts charged, as they report it or as the `cost` of routes has it; null where none is known",
      { minimum: 0 },
    ),
  ),
  margin_usd: t.orNone(t.number("what the requests with a known host cost were charged, less that cost")),
  requests_with_host_cost: t.count,
};

const ComparedSum = t.object({ ...comparedMembers, ...marginMembers });
export type ComparedSum = Static<typeof ComparedSum>;

const rankingOf = <T extends TProperties>(members: T) =>
  t.object({
    data: t.several(t.object({ ...members, ...comparedMembers, ...marginMembers })),
    rest: t.object({
      rows: t.integer("how many are not listed", { minimum: 0 }),
      ...comparedMembers,
      ...marginMembers,
    }),
  });

const EverybodysUsage = t.namedAnswer("EverybodysUsage", {
  ...periodMembers,
  total: ComparedSum,
  stretches: t.several(StretchAnswer),
  balances: rankingOf({
    balance_id: Type.String(),
    account_id: t.orNone(Type.String()),
    email: t.orNone(Type.String()),
    wallet: t.orNone(Type.String()),
  }),
  keys: rankingOf({
    key_id: Type.String(),
    name: t.orNone(Type.String()),
    prefix: t.orNone(Type.String()),
    balance_id: t.orNone(Type.String()),
  }),
  models: rankingOf({ model: Type.String() }),
  hosts: rankingOf({ host: Type.String() }),
  counted_since: t.orNone(
    Type.String({
      format: "date-time",
      description: "receipts from before then were not counted; null when all were",
    }),
  ),
});
export type EverybodysUsage = Static<typeof EverybodysUsage>;

export const EVERYBODYS_USAGE = {
  who: ["admin"],
  summary: "Sums up everybody's receipts, over time and by balance, key, model and host",
  details:
    "Each list holds the first of its order and the sum of the others. Receipts are counted up to the newest 1,000,000.",
  query: {
    period: periodQuery,
    by,
    order: t.unlessNamed(
      "cost",
      t.oneOf(
        SPENDING_ORDERS,
        "what lists are ordered by, the most first; growth is that of the cost, and loss begins with the lowest margin",
      ),
    ),
    limit: t.unlessNamed(
      DEFAULT_RANKED,
      Type.Integer({ minimum: 1, maximum: MAX_RANKED, description: "rows of each list" }),
    ),
  },
  answers: { 200: EverybodysUsage },
} as const satisfies About;

const OverviewAnswer = t.namedAnswer("Overview", {
  ...periodMembers,
  object: Type.Literal("overview"),
  stretches: t.several(t.object({ start: t.time, ...sumMembers, first_token_ms: firstTokens })),
  truncated: t.boolean("true when not every receipt was counted"),
});

export type OverviewAnswer = Static<typeof OverviewAnswer>;

export const OVERVIEW = {
  who: ["admin"],
  summary: "Sums up everybody's receipts over time: requests, failures, spend and time to the first token",
  details: "Receipts are counted up to the newest 50,000.",
  query: { period: t.unlessNamed("day", t.oneOf(PERIODS, PERIOD_WORDS)) },
  answers: { 200: OverviewAnswer },
} as const satisfies About;
