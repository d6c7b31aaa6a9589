import type { Database } from "bun:sqlite";
import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import type { Postgres } from "../database/postgres.ts";

/** What a key was charged in a period, and when its newest request began. */
export interface KeyActivity {
  readonly keyId: KeyId;
  readonly chargedNano: number;
  readonly lastAt: EpochMs;
}

export interface KeyActivityScope {
  readonly balanceId: BalanceId;
  /** The period that charges are added up over. */
  readonly since: EpochMs;
  readonly until: EpochMs | null;
  /** Keys that were not used from then on are left out. */
  readonly usedSince: EpochMs;
}

/** No receipt's body is read, which takes a tenth of the time that sums by model take. */
export function keyActivityFromSqlite(db: Database, scope: KeyActivityScope): readonly KeyActivity[] {
  const { balanceId, since, until, usedSince } = scope;
  return db
    .query<KeyActivity, [string, number, number | null, number, number]>(
      `SELECT key_id AS keyId, sum(CASE WHEN at >= ?2 AND (?3 IS NULL OR at < ?3) THEN charged ELSE 0 END) AS chargedNano,
         max(at) AS lastAt
       FROM (SELECT key_id, at, charged FROM ends WHERE balance_id = ?1 ORDER BY seq DESC LIMIT ?5)
       WHERE at >= ?4 GROUP BY key_id`,
    )
    .all(balanceId, since, until, usedSince, MAX_RECEIPTS);
}

export const keyActivityFromPostgres = (
  store: Postgres,
  { balanceId, since, until, usedSince }: KeyActivityScope,
): Promise<readonly KeyActivity[]> =>
  store.query<KeyActivity>(
    (sql) => sql`
      SELECT key_id AS "keyId", max(at) AS "lastAt",
        coalesce(sum(charged) FILTER (WHERE at >= ${since} AND (${until}::bigint IS NULL OR at < ${until})), 0)::bigint AS "chargedNano"
      FROM (
        SELECT key_id, at, charged FROM ends WHERE balance_id = ${balanceId} AND at >= ${usedSince}
        ORDER BY at DESC LIMIT ${MAX_RECEIPTS}
      ) AS newest
      GROUP BY key_id`,
  );

/** The newest of the balance: six tenths of a second of the thread. */
const MAX_RECEIPTS = 1_000_000;
