import type { Database } from "bun:sqlite";
import type { Key } from "../../customers/keys/key.ts";
import {
  type BalanceCursor,
  type InUseHere,
  MOST_ENDS_LOOKED_AT,
  type RemovedUnused,
  SWEPT_AT_ONCE,
} from "../../customers/keys/key-store.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { SqlKeyStore, unusedBalance } from "../sql/key-store.ts";
import { type Steps, sql, verbatim } from "../sql/statement.ts";
import { SqliteStatements } from "./statements.ts";

/** Keys in SQLite, of which the unused are removed one after another, for as long as others may wait. */
export class SqliteKeyStore extends SqlKeyStore {
  constructor(db: Database, clock: Pick<Clock, "now">, durable?: () => Promise<void>) {
    super(new SqliteStatements(db, durable), clock);
  }

  async removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedWithKeys> {
    const rows = await this.db.read(() => swept(before, from));
    const all: RemovedWithKeys = {
      balances: [],
      keys: [],
      next: rows.length < SWEPT_AT_ONCE ? null : placeOf(rows.at(-1)!),
    };
    if (rows.length === 0) return all;
    return this.db.change(function* () {
      const balances: BalanceId[] = [];
      const keys: RemovedKey[] = [];
      let { next } = all;
      let looked = 0;
      for (const row of rows) {
        const { id, lone } = row;
        // The end of a request may not be here yet.
        if (here.isInUse(id)) continue;
        if (lone === 1) {
          keys.push(...(yield* removeBalance(id)));
          balances.push(id);
        } else looked += yield* removeEndedKeys(id, before, keys);
        // Everybody waits meanwhile.
        if (looked + keys.length < MOST_ENDS_LOOKED_AT) continue;
        next = placeOf(row);
        break;
      }
      here.forget(keys, balances);
      return { result: { balances, keys, next }, changes: [] };
    });
  }
}

export type RemovedWithKeys = RemovedUnused & { readonly keys: readonly RemovedKey[] };

type RemovedKey = Pick<Key, "hash" | "balanceId" | "rotationId">;

interface Swept {
  readonly id: BalanceId;
  readonly created_at: EpochMs;
  /** Has nothing but keys and budgets: 1 or 0. */
  readonly lone: number;
}

const swept = (before: EpochMs, { createdAt, id }: BalanceCursor): Steps<Swept[]> => sql<Swept>`
  SELECT id, created_at, ${unusedBalance(before)} AS lone
  FROM balances b WHERE created_at < ${before} AND (created_at, id) > (${createdAt}, ${id})
  ORDER BY created_at, id LIMIT ${SWEPT_AT_ONCE}`;

function* removeBalance(id: BalanceId): Steps<RemovedKey[]> {
  const keys = yield* sql<RemovedKey>`DELETE FROM keys WHERE balance_id = ${id} RETURNING ${REMOVED}`;
  yield* sql`DELETE FROM budgets WHERE balance_id = ${id}`;
  yield* sql`DELETE FROM runs WHERE balance_id = ${id}`;
  yield* sql`DELETE FROM balances WHERE id = ${id}`;
  return keys;
}

/** Of a balance, those without a request. Returns how many ends it had to look at for that. */
function* removeEndedKeys(balance: BalanceId, before: EpochMs, removed: RemovedKey[]): Steps<number> {
  const ended = yield* sql`SELECT 1 FROM keys WHERE balance_id = ${balance} AND created_at < ${before}
    AND (state = 'revoked' OR expires_at < ${before}) LIMIT 1`;
  if (ended.length === 0) return 0;
  const [row] = yield* sql<{ ends: number }>`SELECT count(*) AS ends FROM
    (SELECT 1 FROM ends WHERE balance_id = ${balance} LIMIT ${MOST_ENDS_LOOKED_AT + 1})`;
  const { ends } = row!;
  if (ends > MOST_ENDS_LOOKED_AT) return 0;
  // Those that were used stay for good: were they among so many, others would never be reached.
  removed.push(
    ...(yield* sql<RemovedKey>`DELETE FROM keys WHERE id IN (
        SELECT id FROM keys WHERE balance_id = ${balance} AND created_at < ${before}
          AND (state = 'revoked' OR expires_at < ${before})
          AND id NOT IN (SELECT key_id FROM ends WHERE balance_id = ${balance})
        ORDER BY created_at, id LIMIT ${SWEPT_AT_ONCE})
      RETURNING ${REMOVED}`),
  );
  return ends;
}

const placeOf = ({ created_at, id }: Swept): BalanceCursor => ({ createdAt: created_at, id });

const REMOVED = verbatim("hash, balance_id AS balanceId, lineage AS rotationId");
