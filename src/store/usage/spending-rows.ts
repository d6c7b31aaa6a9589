import type { Database } from "bun:sqlite";
import { FAILED_STATES } from "../../ledger/record.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { Postgres } from "../database/postgres.ts";
import {
  type BalanceOwner,
  type KeyLabel,
  rankSpending,
  type Spending,
  type SpendingGroup,
  type SpendingRanking,
  type SpendingScope,
} from "./spending.ts";

/**
 * Reads what everybody used, added up by the database: a month has too many receipts to carry each of them
 * out of it.
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
         count(*) AS requests, sum(state IN (${FAILED})) AS failed,
         sum(charged) AS charged,
         sum((body ->> '$.tokens.input') + (body ->> '$.tokens.cache_read') + (body ->> '$.tokens.cache_write'))
           AS input,
         sum(body ->> '$.tokens.output') AS output
       FROM ends
       WHERE seq > ?3 AND ((at >= ?1 AND at < ?6) OR (at >= ?4 AND at < ?5))
       GROUP BY 1, 2, 3, 4, 5 ORDER BY 1`,
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
        sum((body -> 'tokens' ->> 'output')::bigint)::bigint AS output
      FROM (
        SELECT CASE WHEN at >= ${since} THEN at - at % ${stretchMs} END AS start, balance_id AS "balanceId",
          key_id AS "keyId", state, charged, body::json AS body
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
