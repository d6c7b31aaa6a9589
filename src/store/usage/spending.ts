import type { Database } from "bun:sqlite";
import type { SpendingOrder } from "../../api/usage.ts";
import { FAILED_STATES } from "../../ledger/record.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { Postgres } from "../database/postgres.ts";
import type { StretchSum, Sum, UsageSplit } from "./usage-sums.ts";

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
  const stretches = new Map<string, Writable<StretchSum>>();
  const [balances, keys, models, hosts] = [
    new SpendingSums(),
    new SpendingSums(),
    new SpendingSums(),
    new SpendingSums(),
  ];
  for (const group of groups) {
    const { start, model, host } = group;
    add(total, group);
    add(balances.of(group.balanceId), group);
    add(keys.of(group.keyId), group);
    add(models.of(model), group);
    if (host !== null) add(hosts.of(host), group);
    if (start !== null) {
      const name = { model, key: group.keyId, host: host ?? "", all: "" }[by];
      addStretch(stretches, start, name, group);
    }
  }
  const ranked = (sums: SpendingSums) => sums.ranked(order, most);
  return {
    total,
    stretches: [...stretches.values()].sort((a, b) => a.start - b.start),
    balances: ranked(balances),
    keys: ranked(keys),
    models: ranked(models),
    hosts: ranked(hosts),
  };
}

export type Ranked = Pick<Spending, "total" | "stretches" | "balances" | "keys" | "models" | "hosts">;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const emptySum = (): Writable<Sum> => ({
  requests: 0,
  failed: 0,
  chargedNano: 0,
  inputTokens: 0,
  outputTokens: 0,
});

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

function addStretch(
  stretches: Map<string, Writable<StretchSum>>,
  start: number,
  name: string,
  group: SpendingGroup,
): void {
  const id = `${start} ${name}`;
  let sum = stretches.get(id);
  if (sum === undefined) {
    stretches.set(id, (sum = { start, name, ...emptySum() }));
  }
  addNow(sum, group);
}

class SpendingSums {
  private readonly sums = new Map<string, Writable<Compared>>();

  of(name: string): Writable<Compared> {
    let sum = this.sums.get(name);
    if (sum === undefined) this.sums.set(name, (sum = emptyCompared()));
    return sum;
  }

  ranked(order: SpendingOrder, most: number): SpendingRanking {
    const measure = MEASURES[order];
    const rows = [...this.sums]
      .map(([name, sum]) => ({ name, ...sum }))
      .sort((a, b) => measure(b) - measure(a) || b.chargedNano - a.chargedNano || (a.name < b.name ? -1 : 1));
    const rest = emptyCompared();
    for (const row of rows.slice(most)) addAll(rest, row);
    return { rows: rows.slice(0, most), rest: { rows: Math.max(0, rows.length - most), ...rest } };
  }
}

const MEASURES: Record<SpendingOrder, (sum: Compared) => number> = {
  cost: ({ chargedNano }) => chargedNano,
  growth: ({ chargedNano, beforeNano }) => chargedNano - beforeNano,
  requests: ({ requests }) => requests,
  tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  loss: ({ hostCostNano, costedNano }) => hostCostNano - costedNano,
};

function addAll(sum: Writable<Compared>, other: Compared): void {
  for (const member of Object.keys(sum) as (keyof Compared)[]) sum[member] += other[member];
}

/**
 * What everybody used. Each receipt is read and added up here: SQLite would sort them all to group them, which took twice as
 * long where each key uses each model.
 */
export function spendingFromSqlite(db: Database, scope: SpendingScope): Spending {
  const newest = db.query<{ seq: number }, []>("SELECT coalesce(max(seq), 0) AS seq FROM ends").get()!.seq;
  const lastSkipped = newest - MAX_RECEIPTS;
  const skipped = db.query<{ at: EpochMs }, [number]>("SELECT at FROM ends WHERE seq = ?").get(lastSkipped);
  const reach = reachOf(scope, skipped?.at ?? null);
  const groups = db
    .query<SpendingGroup, [number, number, number, number, number, number]>(
      `SELECT CASE WHEN at >= ?1 THEN at - at % ?2 END AS start, balance_id AS balanceId, key_id AS keyId,
         coalesce(body ->> 'model', body ->> 'model_requested') AS model, body ->> 'host' AS host,
         1 AS requests, state IN (${FAILED}) AS failed, charged,
         (body ->> '$.tokens.input') + (body ->> '$.tokens.cache_read') + (body ->> '$.tokens.cache_write') AS input,
         body ->> '$.tokens.output' AS output, host_cost IS NOT NULL AS costed,
         CASE WHEN host_cost IS NULL THEN 0 ELSE charged END AS costedCharged, coalesce(host_cost, 0) AS hostCost
       FROM ends
       WHERE seq > ?3 AND ((at >= ?1 AND at < ?6) OR (at >= ?4 AND at < ?5))`,
    )
    .iterate(scope.since, scope.stretchMs, lastSkipped, reach.before.from, reach.before.until, endOf(scope));
  const ranked = rankSpending(groups, scope);
  const owners = db
    .query<BalanceOwner & Named, [string]>(`${OWNERS} IN (SELECT value FROM json_each(?))`)
    .all(namesOf(ranked.balances));
  const keyLabels = db
    .query<KeyLabel & Named, [string]>(`${KEY_LABELS} IN (SELECT value FROM json_each(?))`)
    .all(namesOf(ranked.keys));
  return { ...ranked, owners: byId(owners), keyLabels: byId(keyLabels), ...reach.scope };
}

/** The same, added up by the database: a month has too many receipts to carry each of them out of it. */
export async function spendingFromPostgres(store: Postgres, scope: SpendingScope): Promise<Spending> {
  const [skipped] = await store.query<{ at: EpochMs }>(
    (sql) => sql`SELECT at FROM ends ORDER BY at DESC LIMIT 1 OFFSET ${MAX_RECEIPTS}`,
  );
  const reach = reachOf(scope, skipped?.at ?? null);
  const { since, stretchMs } = scope;
  const { from, until } = reach.before;
  const rows = await store.query<SpendingGroup>(
    (sql) => sql`
      SELECT start, "balanceId", "keyId", coalesce(body ->> 'model', body ->> 'model_requested') AS model,
        body ->> 'host' AS host, count(*) AS requests,
        count(*) FILTER (WHERE state IN ${sql(FAILED_STATES)}) AS failed,
        sum(charged)::bigint AS charged,
        sum((body -> 'tokens' ->> 'input')::bigint + (body -> 'tokens' ->> 'cache_read')::bigint
          + (body -> 'tokens' ->> 'cache_write')::bigint)::bigint AS input,
        sum((body -> 'tokens' ->> 'output')::bigint)::bigint AS output, count(host_cost) AS costed,
        coalesce(sum(charged) FILTER (WHERE host_cost IS NOT NULL), 0)::bigint AS "costedCharged",
        coalesce(sum(host_cost), 0)::bigint AS "hostCost"
      FROM (
        SELECT CASE WHEN at >= ${since} THEN at - at % ${stretchMs} END AS start, balance_id AS "balanceId",
          key_id AS "keyId", state, charged, host_cost, body::json AS body
        FROM ends
        WHERE at > ${skipped?.at ?? -1} AND ((at >= ${since} AND at < ${endOf(scope)}) OR (at >= ${from} AND at < ${until}))
      ) AS receipts
      GROUP BY 1, 2, 3, 4, 5 ORDER BY 1`,
  );
  const ranked = rankSpending(rows, scope);
  const listed = "IN (SELECT json_array_elements_text($1::text::json))";
  const owners = await store.query<BalanceOwner & Named>((sql) =>
    sql.unsafe(`${OWNERS} ${listed}`, [namesOf(ranked.balances)]),
  );
  const keyLabels = await store.query<KeyLabel & Named>((sql) =>
    sql.unsafe(`${KEY_LABELS} ${listed}`, [namesOf(ranked.keys)]),
  );
  return { ...ranked, owners: byId(owners), keyLabels: byId(keyLabels), ...reach.scope };
}

const FAILED = FAILED_STATES.map((state) => `'${state}'`).join(", ");

/** Both databases understand these. */
const OWNERS = `
  SELECT balances.id, account_id AS "accountId", email, wallet
  FROM balances LEFT JOIN accounts ON accounts.id = balances.account_id WHERE balances.id`;
const KEY_LABELS = `
  SELECT id, name AS "keyName", prefix, balance_id AS "balanceId" FROM keys WHERE id`;

interface Named {
  readonly id: string;
}

const namesOf = ({ rows }: SpendingRanking): string => JSON.stringify(rows.map(({ name }) => name));

const byId = <T extends Named>(rows: readonly T[]): ReadonlyMap<string, T> =>
  new Map(rows.map((row) => [row.id, row]));

/** No receipt is from a later time than any clock has. */
const endOf = ({ until }: SpendingScope): number => until ?? Number.MAX_SAFE_INTEGER;

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
