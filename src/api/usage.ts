import { type Static, type TObject, type TProperties, Type } from "@sinclair/typebox";
import { TAG_NAME } from "../customers/keys/tags.ts";
import type { About } from "./about.ts";
import {
  amountUsd,
  answerOf,
  count,
  namedAnswer,
  oneOf,
  orNone,
  several,
  time,
  unlessNamed,
} from "./answers.ts";
import { RunAnswer } from "./runs.ts";

export const PERIODS = ["hour", "day", "today", "yesterday", "week", "month"] as const;
export type Period = (typeof PERIODS)[number];
const PERIOD_WORDS =
  "hour, day, week and month end now (60 minutes, 24 hours, 7 days, 30 days); today and yesterday are days of UTC";
const periodQuery = unlessNamed("week", oneOf(PERIODS, PERIOD_WORDS));

const periodMembers = {
  object: Type.Literal("usage"),
  period: oneOf(PERIODS),
  since: time,
  until: orNone({ ...time, description: "receipts from then on were not counted; null up to now" }),
  stretch_ms: count,
};

const sumMembers = {
  requests: count,
  failed: count,
  cost_usd: amountUsd,
  input_tokens: count,
  output_tokens: count,
};

export type UsageSum = Static<TObject<typeof sumMembers>>;

const USAGE_SPLITS = ["model", "key", "host"] as const;
const by = unlessNamed("model", oneOf(USAGE_SPLITS, "what each stretch of time is split by"));

const stretchMembers = {
  start: time,
  name: Type.String({
    description: "of the model, key or host that stretches are split by; empty where no host served",
  }),
  ...sumMembers,
};
const StretchAnswer = answerOf(stretchMembers);
const percentile = orNone(Type.Number({ minimum: 0, description: "milliseconds" }));
const firstTokens = answerOf({ p50: percentile, p95: percentile });

const UsageAnswer = namedAnswer("Usage", {
  ...periodMembers,
  stretches: several(StretchAnswer),
  routes: several(
    answerOf({
      model: Type.String(),
      host: Type.String(),
      ...sumMembers,
      first_token_ms: firstTokens,
    }),
  ),
  keys: several(answerOf({ key_id: Type.String(), last_used_at: time, ...sumMembers })),
  truncated: Type.Boolean({ description: "true when not every receipt was counted" }),
  groups: Type.Optional(
    several(
      answerOf({
        value: orNone(Type.String({ description: "null for requests without the tag" })),
        ...sumMembers,
      }),
      { description: "of the tag that `group_by` names, the most expensive values first, at most 1,000" },
    ),
  ),
  other_groups: Type.Optional(orNone(answerOf(sumMembers))),
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
    key_id: Type.String({ description: "only receipts of this key" }),
    group_by: Type.String({
      pattern: `^tag:${TAG_NAME}$`,
      description: "`tag:` and the name of a tag, such as `tag:customer`, by whose values there are sums too",
    }),
    run: Type.String({
      description:
        "only receipts of this run; for owners and the key that started it, with its limits and what is used of them, while it goes on",
    }),
  },
  answers: {
    200: UsageAnswer,
  },
} as const satisfies About;

/** What lists of everybody's use are ordered by, the most first. */
export const SPENDING_ORDERS = ["cost", "growth", "requests", "tokens", "loss"] as const;
export type SpendingOrder = (typeof SPENDING_ORDERS)[number];

const DEFAULT_RANKED = 20;
const MAX_RANKED = 1_000;

const comparedMembers = {
  ...sumMembers,
  cost_before_usd: orNone(
    Type.Number({
      description: "at the same time a period earlier; null where those receipts are not all there or read",
    }),
  ),
};

const marginMembers = {
  host_cost_usd: orNone(
    Type.Number({
      minimum: 0,
      description:
        "what hosts charged, as they report it or as the `cost` of routes has it; null where none is known",
    }),
  ),
  margin_usd: orNone(
    Type.Number({ description: "what the requests with a known host cost were charged, less that cost" }),
  ),
  requests_with_host_cost: count,
};

const ComparedSum = answerOf({ ...comparedMembers, ...marginMembers });
export type ComparedSum = Static<typeof ComparedSum>;

const rankingOf = <T extends TProperties>(members: T) =>
  answerOf({
    data: several(answerOf({ ...members, ...comparedMembers, ...marginMembers })),
    rest: answerOf({
      rows: Type.Integer({ minimum: 0, description: "how many are not listed" }),
      ...comparedMembers,
      ...marginMembers,
    }),
  });

const EverybodysUsage = namedAnswer("EverybodysUsage", {
  ...periodMembers,
  total: ComparedSum,
  stretches: several(StretchAnswer),
  balances: rankingOf({
    balance_id: Type.String(),
    account_id: orNone(Type.String()),
    email: orNone(Type.String()),
    wallet: orNone(Type.String()),
  }),
  keys: rankingOf({
    key_id: Type.String(),
    name: orNone(Type.String()),
    prefix: orNone(Type.String()),
    balance_id: orNone(Type.String()),
  }),
  models: rankingOf({ model: Type.String() }),
  hosts: rankingOf({ host: Type.String() }),
  counted_since: orNone(
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
    order: unlessNamed(
      "cost",
      oneOf(
        SPENDING_ORDERS,
        "what lists are ordered by, the most first; growth is that of the cost, and loss begins with the lowest margin",
      ),
    ),
    limit: unlessNamed(
      DEFAULT_RANKED,
      Type.Integer({ minimum: 1, maximum: MAX_RANKED, description: "rows of each list" }),
    ),
  },
  answers: {
    200: EverybodysUsage,
  },
} as const satisfies About;

const OverviewAnswer = namedAnswer("Overview", {
  ...periodMembers,
  object: Type.Literal("overview"),
  stretches: several(answerOf({ start: time, ...sumMembers, first_token_ms: firstTokens })),
  truncated: Type.Boolean({ description: "true when not every receipt was counted" }),
});

export type OverviewAnswer = Static<typeof OverviewAnswer>;

export const OVERVIEW = {
  who: ["admin"],
  summary: "Sums up everybody's receipts over time: requests, failures, spend and time to the first token",
  details: "Receipts are counted up to the newest 50,000.",
  query: { period: unlessNamed("day", oneOf(PERIODS, PERIOD_WORDS)) },
  answers: { 200: OverviewAnswer },
} as const satisfies About;
