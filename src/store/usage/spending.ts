import type { SpendingOrder } from "../../api/usage.ts";
import { FAILED_STATES } from "../../ledger/record.ts";
import type { EpochMs } from "../../units/clock.ts";
import { type SqlPart, sql, verbatim } from "../database/database.ts";
import { endOf, type ReceiptSource } from "./receipt-source.ts";
import { addAll, emptySum, type StretchSum, type Sum, type UsageSplit, type Writable } from "./usage-sums.ts";

/**
 * What everybody used in a period, next to the same time a period earlier: in all, over time, and by balance,
 * key, model and host. The lists are cut, and what is cut off is summed. Made in the thread of usage.ts.
 */
export interface Spending {
  readonly total: Compared;
  /** In order of time. */
  readonly stretches: readonly StretchSum[];
  readonly balances: SpendingRanking;
  readonly keys: SpendingRanking;
  readonly models: SpendingRanking;
  /** Requests that no host answered are in none of these. */
  readonly hosts: SpendingRanking;
  /** Owners of the balances that are listed, by id. */
  readonly owners: ReadonlyMap<string, BalanceOwner>;
  /** Labels of the keys that are listed, by id. */
  readonly keyLabels: ReadonlyMap<string, KeyLabel>;
  /** False where receipts of the period before are not all there: `beforeNano` is 0 then. */
  readonly compared: boolean;
  /** Receipts from before then were not read; null when all were. */
  readonly countedSince: EpochMs | null;
}

export interface Compared extends Sum {
  /** Charged at the same time a period earlier. */
  readonly beforeNano: number;
  /** Requests whose host's cost is known, what they were charged, and that cost. */
  readonly costed: number;
  readonly costedNano: number;
  readonly hostCostNano: number;
}

export interface SpendingRanking {
  readonly rows: readonly (Compared & { readonly name: string })[];
  readonly rest: Compared & { readonly rows: number };
}

interface BalanceOwner {
  /** Null while accountless. */
  readonly accountId: string | null;
  readonly email: string | null;
  readonly wallet: string | null;
}

interface KeyLabel {
  readonly keyName: string | null;
  readonly prefix: string;
  readonly balanceId: string;
}

export interface SpendingScope {
  readonly since: EpochMs;
  /** Null: up to now. */
  readonly until: EpochMs | null;
  readonly now: EpochMs;
  readonly stretchMs: number;
  /** How far back the time lies that this one is compared with; null for no comparison. */
  readonly beforeMs: number | null;
  readonly order: SpendingOrder;
  /** Rows of each list. */
  readonly most: number;
  /** What a stretch is split by; by model unless named. */
  readonly by?: UsageSplit;
}

/** Receipts that have all of these in common, added up. */
export interface SpendingGroup {
  /** Start of its stretch of time; null for the period before. */
  readonly start: number | null;
  readonly balanceId: string;
  readonly keyId: string;
  readonly model: string;
  readonly host: string | null;
  readonly requests: number;
  readonly failed: number;
  readonly charged: number;
  readonly input: number;
  readonly output: number;
  readonly costed: number;
  readonly costedCharged: number;
  readonly hostCost: number;
}

export function rankSpending(
  groups: Iterable<SpendingGroup>,
  { order, most, by = "model" }: Pick<SpendingScope, "order" | "most" | "by">,
): Ranked {
  const total = emptyCompared();
  const stretches = new Map<number, Map<string, Writable<Sum>>>();
  const sums = () => new Map<string, Writable<Compared>>();
  const [balances, keys, models, hosts] = [sums(), sums(), sums(), sums()];
  for (const group of groups) {
    const { start, model, host, balanceId, keyId } = group;
    add(total, group);
    add(balances.getOrInsertComputed(balanceId, emptyCompared), group);
    add(keys.getOrInsertComputed(keyId, emptyCompared), group);
    add(models.getOrInsertComputed(model, emptyCompared), group);
    if (host !== null) add(hosts.getOrInsertComputed(host, emptyCompared), group);
    if (start === null) continue;
    const stretch = stretches.getOrInsertComputed(start, () => new Map());
    const name = { model, key: keyId, host: host ?? "", all: "" }[by];
    addNow(stretch.getOrInsertComputed(name, emptySum), group);
  }
  const ranked = (found: ReadonlyMap<string, Compared>) => ranking(found, order, most);
  return {
    total,
    stretches: [...stretches]
      .sort(([a], [b]) => a - b)
      .flatMap(([start, names]) => [...names].map(([name, sum]) => ({ start, name, ...sum }))),
    balances: ranked(balances),
    keys: ranked(keys),
    models: ranked(models),
    hosts: ranked(hosts),
  };
}

export type Ranked = Pick<Spending, "total" | "stretches" | "balances" | "keys" | "models" | "hosts">;

const emptyCompared = (): Writable<Compared> => ({
  ...emptySum(),
  beforeNano: 0,
  costed: 0,
  costedNano: 0,
  hostCostNano: 0,
});

function add(sum: Writable<Compared>, group: SpendingGroup): void {
  if (group.start === null) {
    sum.beforeNano += group.charged;
    return;
  }
  addNow(sum, group);
  sum.costed += group.costed;
  sum.costedNano += group.costedCharged;
  sum.hostCostNano += group.hostCost;
}

function addNow(sum: Writable<Sum>, { requests, failed, charged, input, output }: SpendingGroup): void {
  sum.requests += requests;
  sum.failed += failed;
  sum.chargedNano += charged;
  sum.inputTokens += input;
  sum.outputTokens += output;
}

function ranking(sums: ReadonlyMap<string, Compared>, order: SpendingOrder, most: number): SpendingRanking {
  const measure = MEASURES[order];
  const rows = [...sums]
    .map(([name, sum]) => ({ name, ...sum }))
    .sort((a, b) => measure(b) - measure(a) || b.chargedNano - a.chargedNano || (a.name < b.name ? -1 : 1));
  const rest = emptyCompared();
  for (const row of rows.slice(most)) addAll(rest, row);
  return { rows: rows.slice(0, most), rest: { rows: Math.max(0, rows.length - most), ...rest } };
}

const MEASURES: Record<SpendingOrder, (sum: Compared) => number> = {
  cost: ({ chargedNano }) => chargedNano,
  growth: ({ chargedNano, beforeNano }) => chargedNano - beforeNano,
  requests: ({ requests }) => requests,
  tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  loss: ({ hostCostNano, costedNano }) => hostCostNano - costedNano,
};

/**
 * What everybody used. SQLite gives each receipt: it would sort them all to group them, which took twice as long where each
 * key uses each model.
 */
export async function spendingOf(source: ReceiptSource, scope: SpendingScope): Promise<Spending> {
  const { db, behind, addsUp, each } = source;
  const [skipped = null] = await db.rows<SkippedReceipt>(behind(MAX_RECEIPTS));
  const reach = reachOf(scope, skipped?.at ?? null);
  const receipts = groupsOf(source, scope, reach.before, skipped);
  const ranked = rankSpending(await each<SpendingGroup>(addsUp ? addedUp(receipts) : receipts), scope);
  const listed = ({ rows }: SpendingRanking) => db.among(rows.map(({ name }) => name));
  const owners = await db.read<BalanceOwner & Named>`
    SELECT b.id, account_id AS "accountId", email, wallet
    FROM balances b LEFT JOIN accounts a ON a.id = b.account_id WHERE b.id IN ${listed(ranked.balances)}`;
  const keyLabels = await db.read<KeyLabel & Named>`
    SELECT id, name AS "keyName", prefix, balance_id AS "balanceId" FROM keys WHERE id IN ${listed(ranked.keys)}`;
  return { ...ranked, owners: byId(owners), keyLabels: byId(keyLabels), ...reach.scope };
}

interface SkippedReceipt {
  readonly at: EpochMs;
  readonly last: number;
}

/** Each receipt as a group of its own. */
function groupsOf(
  { db, order, tokens }: ReceiptSource,
  { since, until, stretchMs }: SpendingScope,
  before: { readonly from: number; readonly until: number },
  skipped: SkippedReceipt | null,
): SqlPart {
  return sql`SELECT CASE WHEN at >= ${since} THEN at - at % ${stretchMs} END AS start, balance_id AS "balanceId",
      key_id AS "keyId", coalesce(${db.member("model")}, ${db.member("model_requested")}) AS model,
      ${db.member("host")} AS host, 1 AS requests, CASE WHEN state IN (${FAILED}) THEN 1 ELSE 0 END AS failed, charged,
      ${tokens("input")} + ${tokens("cache_read")} + ${tokens("cache_write")} AS input, ${tokens("output")} AS output,
      CASE WHEN host_cost IS NULL THEN 0 ELSE 1 END AS costed,
      CASE WHEN host_cost IS NULL THEN 0 ELSE charged END AS "costedCharged", coalesce(host_cost, 0) AS "hostCost"
    FROM ends WHERE ${order} > ${skipped?.last ?? -1} AND ((at >= ${since} AND at < ${endOf(until)})
      OR (at >= ${before.from} AND at < ${before.until}))`;
}

const addedUp = (groups: SqlPart): SqlPart => sql`SELECT start, "balanceId", "keyId", model, host, ${SUMS}
  FROM (${groups}) AS receipts GROUP BY 1, 2, 3, 4, 5`;

const FAILED = verbatim(FAILED_STATES.map((state) => `'${state}'`).join(", "));
const SUMS = verbatim(
  ["requests", "failed", "charged", "input", "output", "costed", "costedCharged", "hostCost"]
    .map((name) => `CAST(sum("${name}") AS BIGINT) AS "${name}"`)
    .join(", "),
);

interface Named {
  readonly id: string;
}

const byId = <T extends Named>(rows: readonly T[]): ReadonlyMap<string, T> =>
  new Map(rows.map((row) => [row.id, row]));

/**
 * A period of which some receipts are not read would seem to have grown over the one before, so it is
 * compared with none.
 */
function reachOf({ since, until, now, beforeMs }: SpendingScope, lastSkipped: EpochMs | null) {
  const from = beforeMs === null ? since : since - beforeMs;
  const compared = beforeMs !== null && (lastSkipped === null || lastSkipped < from);
  return {
    before: compared ? { from, until: (until ?? now) - beforeMs } : { from: 0, until: 0 },
    scope: {
      compared,
      countedSince: lastSkipped === null || lastSkipped < since ? null : lastSkipped,
    },
  };
}

/** The newest. Adding them up takes SQLite nine seconds of the thread, where they are in 330,000 groups. */
const MAX_RECEIPTS = 1_000_000;
