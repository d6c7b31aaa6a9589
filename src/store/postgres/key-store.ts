import {
  type BalanceCursor,
  type InUseHere,
  MOST_ENDS_LOOKED_AT,
  type RemovedUnused,
  SWEPT_AT_ONCE,
} from "../../customers/keys/key-store.ts";
import { type CounterId, servingCounters } from "../../ledger/counter.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import { changeOfKey } from "../changes.ts";
import { KEY, type KeyRow } from "../sql/key-rows.ts";
import { SqlKeyStore, unusedBalance } from "../sql/key-store.ts";
import { part, type SqlDatabase, type SqlPart, type Steps, sql } from "../sql/statement.ts";
import type { Postgres } from "./postgres.ts";
import { PostgresStatements } from "./statements.ts";

/** Keys in PostgreSQL, of which some that are unused are removed with few statements. */
export class PostgresKeyStore extends SqlKeyStore {
  constructor(
    postgres: Postgres,
    clock: Pick<Clock, "now">,
    acknowledged: (version: number) => Promise<void>,
  ) {
    super(new PostgresStatements(postgres, acknowledged), clock);
  }

  async removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedUnused> {
    const { db, clock } = this;
    const rows = await db.query<SweptRow>`SELECT id, created_at, ${unusedBalance(before)} AS unused,
        ${HAS_FEW_ENDS} AND EXISTS (SELECT 1 FROM keys k WHERE balance_id = b.id AND ${unusedKey(before)}) AS has_unused
      FROM balances b WHERE created_at < ${before}
        AND (created_at, id) > (${from.createdAt}, ${from.id}) ORDER BY created_at, id LIMIT ${SWEPT_AT_ONCE}`;
    const last = rows.at(-1);
    const next =
      rows.length < SWEPT_AT_ONCE || last === undefined ? null : { createdAt: last.created_at, id: last.id };
    const found = rows.filter((row) => row.unused || row.has_unused).map(({ id }) => id);
    if (found.length === 0) return { balances: [], keys: [], next };
    return db.change<RemovedUnused>(function* () {
      // Whoever credits one of them holds its row until the credit can be seen by the statements after this one.
      const locked = yield* sql<OwnedBalance>`
        SELECT id, account_id FROM balances WHERE id IN ${db.among(found)} ORDER BY id FOR UPDATE`;
      const served = yield* servedElsewhere(db, locked, clock.now());
      const idle = locked.map(({ id }) => id).filter((id) => !here.isInUse(id) && !served.has(id));
      const unused = yield* sql<{ id: BalanceId }>`
        SELECT id FROM balances b WHERE id IN ${db.among(idle)} AND ${unusedBalance(before)}`;
      const balances = unused.map(({ id }) => id);
      const gone = db.among(balances);
      const kept = db.among(idle.filter((id) => !balances.includes(id)));
      const keys = yield* sql<KeyRow>`DELETE FROM keys k WHERE balance_id IN ${gone}
          OR (balance_id IN ${kept} AND ${unusedKey(before)}
            AND (SELECT ${HAS_FEW_ENDS} FROM balances b WHERE id = k.balance_id))
        RETURNING ${KEY}`;
      yield* sql`DELETE FROM budgets WHERE balance_id IN ${gone}`;
      yield* sql`DELETE FROM runs WHERE balance_id IN ${gone}`;
      yield* sql`DELETE FROM balances WHERE id IN ${gone}`;
      here.forget(keys, balances);
      return {
        result: { balances, keys, next },
        changes: keys.map(changeOfKey),
      };
    });
  }
}

/** Those that some node may be serving. */
function* servedElsewhere(
  db: SqlDatabase,
  balances: readonly OwnedBalance[],
  now: EpochMs,
): Steps<Set<BalanceId>> {
  const chains = yield* sql<{ balance_id: BalanceId; lineage: KeyId }>`
    SELECT DISTINCT balance_id, lineage FROM keys WHERE balance_id IN ${db.among(balances.map(({ id }) => id))}`;
  const counters = new Map<CounterId, BalanceId>();
  for (const { id, account_id } of balances) {
    const own = chains.filter(({ balance_id }) => balance_id === id).map(({ lineage }) => lineage);
    for (const counter of servingCounters(id, account_id, own, now)) counters.set(counter, id);
  }
  const rows = yield* sql<{ counter: CounterId }>`
    SELECT DISTINCT counter FROM grants WHERE counter IN ${db.among([...counters.keys()])} AND granted > shipped`;
  return new Set(rows.map(({ counter }) => counters.get(counter)!));
}

interface OwnedBalance {
  readonly id: BalanceId;
  readonly account_id: AccountId | null;
}

/** Whether key `k` has ended without a request. */
const unusedKey = (before: EpochMs): SqlPart => part`(
  k.created_at < ${before} AND (k.state = 'revoked' OR k.expires_at < ${before})
  AND NOT EXISTS (SELECT 1 FROM ends WHERE balance_id = k.balance_id AND key_id = k.id))`;

/** Whether the ends of balance `b` are few enough to look for each key among them. */
const HAS_FEW_ENDS = part`(
  (SELECT count(*) FROM (SELECT 1 FROM ends WHERE balance_id = b.id LIMIT ${MOST_ENDS_LOOKED_AT + 1}) AS few)
    <= ${MOST_ENDS_LOOKED_AT})`;

interface SweptRow {
  readonly unused: boolean;
  readonly has_unused: boolean;
  readonly id: BalanceId;
  readonly created_at: EpochMs;
}
