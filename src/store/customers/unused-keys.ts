import {
  type BalanceCursor,
  type InUseHere,
  type KeyStore,
  MAX_ENDS_READ,
  type RemovedUnused,
  SWEPT_AT_ONCE,
} from "../../customers/keys/key-store.ts";
import { type CounterId, servingCounters } from "../../ledger/counter.ts";
import { DAY_MS, type EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import { changes, type Database, finds, type SqlPart, sql, verbatim } from "../database/database.ts";
import { changeOfKey } from "../nodes/changes.ts";
import type { RetentionOptions, RetentionPace } from "../retention.ts";
import { ROTATION_ID } from "../schema/columns.ts";

/** Removes some balances and keys that nobody used, with few statements that each read a bounded number of rows. */
export async function removeUnusedKeys(
  db: Database,
  now: EpochMs,
  before: EpochMs,
  from: BalanceCursor,
  here: InUseHere,
): Promise<RemovedUnused> {
  const { swept, busy, next } = await boundedSweep(db, await sweep(db, before, from));
  const withUnusedKeys =
    busy.length === 0
      ? []
      : await db.read<{ id: BalanceId }>`SELECT DISTINCT balance_id AS id FROM keys
          WHERE id IN (${unusedKeys(db, busy, before)})`;
  const found = [
    ...swept.filter(({ unused }) => unused).map(({ id }) => id),
    ...withUnusedKeys.map(({ id }) => id),
  ];
  if (found.length === 0) return { balances: [], keys: [], next };
  return db.change<RemovedUnused>("unused keys", async () => {
    const rows = await db.read<OwnedBalance>`
      SELECT id, account_id, version FROM balances WHERE id IN ${db.among(found)} ORDER BY id`;
    const counters = await countersOf(db, rows, now);
    const granted = await db.rows<{ counter: CounterId }>(grantedOf(db, [...counters.keys()]));
    const served = new Set(granted.map(({ counter }) => counters.get(counter)!));
    const idle = rows.map(({ id }) => id).filter((id) => !here.isInUse(id) && !served.has(id));
    const unused = await db.read<{ id: BalanceId }>`
      SELECT id FROM balances b WHERE id IN ${db.among(idle)} AND ${unusedBalance(before)}`;
    const balances = unused.map(({ id }) => id);
    const gone = db.among(balances);
    const endedKeys = unusedKeys(
      db,
      idle.filter((id) => !balances.includes(id)),
      before,
    );
    const keys = await db.read<RemovedKey>`
      SELECT hash, balance_id AS "balanceId", ${verbatim(ROTATION_ID)} AS "rotationId" FROM keys
      WHERE balance_id IN ${gone} OR id IN (${endedKeys})`;
    if (keys.length + balances.length === 0) return { result: { balances, keys, next } };
    const versions = rows.map(({ id, version }) => ({ id, version }));
    return {
      result: { balances, keys, next },
      statements: [
        // A transaction that credits one of them holds its row until the credit can be seen by the statements after this one.
        sql`SELECT id FROM balances WHERE id IN ${db.among(idle)} ORDER BY id ${db.forUpdate}`,
        finds(
          idle.length,
          sql`SELECT b.id FROM balances b JOIN ${db.table(versions, VERSION_COLUMNS)} AS seen
            ON seen.id = b.id AND seen.version = b.version WHERE b.id IN ${db.among(idle)}`,
        ),
        finds(
          0,
          grantedOf(
            db,
            [...counters].flatMap(([counter, id]) => (idle.includes(id) ? counter : [])),
          ),
        ),
        finds(
          balances.length,
          sql`SELECT id FROM balances b WHERE id IN ${gone} AND ${unusedBalance(before)}`,
        ),
        changes(keys.length, sql`DELETE FROM keys WHERE balance_id IN ${gone} OR id IN (${endedKeys})`),
        [sql`budgets`, sql`runs`, sql`change_log`].map(
          (table) => sql`DELETE FROM ${table} WHERE balance_id IN ${gone}`,
        ),
        sql`DELETE FROM balances WHERE id IN ${gone}`,
      ],
      changes: keys.map(changeOfKey),
      confirm() {
        if (idle.some((id) => here.isInUse(id))) return false;
        here.forget(keys, balances);
        return true;
      },
    };
  });
}

const VERSION_COLUMNS = { id: "TEXT", version: "BIGINT" } as const;

type RemovedKey = RemovedUnused["keys"][number];

interface SweptBalance {
  readonly id: BalanceId;
  readonly created_at: EpochMs;
  readonly unused: boolean | 0 | 1;
  readonly keys: number;
  readonly has_ended: boolean | 0 | 1;
}

const sweep = (db: Database, before: EpochMs, from: BalanceCursor): Promise<SweptBalance[]> =>
  db.read<SweptBalance>`SELECT id, created_at, ${unusedBalance(before)} AS unused,
      (SELECT count(*) FROM keys WHERE balance_id = b.id) AS keys,
      EXISTS (SELECT 1 FROM keys WHERE balance_id = b.id AND ${hasEnded(before)}) AS has_ended
    FROM balances b WHERE created_at < ${before}
      AND (created_at, id) > (${from.createdAt}, ${from.id}) ORDER BY created_at, id LIMIT ${SWEPT_AT_ONCE}`;

/** The first of them, as many as have so few ends and keys: on SQLite, everybody waits meanwhile. */
async function boundedSweep(db: Database, rows: readonly SweptBalance[]): Promise<BoundedSweep> {
  const busy: BalanceId[] = [];
  let counts: ReadonlyMap<BalanceId, number> = new Map();
  let counted = 0;
  for (const [index, { id, created_at, unused, keys, has_ended }] of rows.entries()) {
    if (unused) counted += keys;
    else if (has_ended) {
      if (!counts.has(id)) counts = await endCounts(db, rows.slice(index));
      const ends = counts.get(id) ?? 0;
      if (ends <= MAX_ENDS_READ) {
        counted += ends;
        busy.push(id);
      }
    }
    if (counted >= MAX_ENDS_READ || index === SWEPT_AT_ONCE - 1)
      return { swept: rows.slice(0, index + 1), busy, next: { createdAt: created_at, id } };
  }
  return { swept: rows, busy, next: null };
}

interface BoundedSweep {
  readonly swept: readonly SweptBalance[];
  /** Balances that are kept, with few enough ends to look for each key that has ended. */
  readonly busy: readonly BalanceId[];
  readonly next: BalanceCursor | null;
}

/** For the first balances that may lose keys: how many ends each has, up to one more than are read. */
async function endCounts(
  db: Database,
  rows: readonly SweptBalance[],
): Promise<ReadonlyMap<BalanceId, number>> {
  const ids = rows.flatMap(({ id, unused, has_ended }) => (has_ended && !unused ? [id] : []));
  const counts = await db.read<{ id: BalanceId; ends: number }>`SELECT id, (SELECT count(*) FROM
      (SELECT 1 FROM ends WHERE balance_id = b.id LIMIT ${MAX_ENDS_READ + 1}) AS few) AS ends
    FROM balances b WHERE id IN ${db.among(ids.slice(0, COUNTED_AT_ONCE))}`;
  return new Map(counts.map(({ id, ends }) => [id, ends]));
}

const COUNTED_AT_ONCE = 4;

/** The ids of these balances' keys that have ended without a request. Keys that were used stay for good. */
const unusedKeys = (db: Database, balances: readonly BalanceId[], before: EpochMs): SqlPart => sql`
  SELECT id FROM keys WHERE balance_id IN ${db.among(balances)} AND ${hasEnded(before)}
  EXCEPT SELECT key_id FROM ends WHERE balance_id IN ${db.among(balances)}`;

const hasEnded = (before: EpochMs): SqlPart =>
  sql`created_at < ${before} AND (state = 'revoked' OR expires_at < ${before})`;

/** What requests of these balances are counted on. */
async function countersOf(
  db: Database,
  balances: readonly OwnedBalance[],
  now: EpochMs,
): Promise<ReadonlyMap<CounterId, BalanceId>> {
  const chains = await db.read<{ balance_id: BalanceId; rotationId: KeyId }>`
    SELECT DISTINCT balance_id, ${verbatim(ROTATION_ID)} AS "rotationId" FROM keys WHERE balance_id IN ${db.among(balances.map(({ id }) => id))}`;
  const counters = new Map<CounterId, BalanceId>();
  for (const { id, account_id } of balances) {
    const own = chains.filter(({ balance_id }) => balance_id === id).map(({ rotationId }) => rotationId);
    for (const counter of servingCounters(id, account_id, own, now)) counters.set(counter, id);
  }
  return counters;
}

/** The counters by which some node may be serving: ends of requests may be on their way. */
const grantedOf = (db: Database, counters: readonly CounterId[]): SqlPart =>
  sql`SELECT DISTINCT counter FROM grants WHERE counter IN ${db.among(counters)} AND granted > shipped`;

interface OwnedBalance {
  readonly id: BalanceId;
  readonly account_id: AccountId | null;
  readonly version: number;
}

/** Whether balance `b` was never used: without an account, a claim, credit or a request. */
const unusedBalance = (before: EpochMs): SqlPart => sql`(
  account_id IS NULL AND suspended IS NULL AND undo_hash IS NULL AND claimed_at IS NULL AND closed_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM keys WHERE balance_id = b.id AND created_at >= ${before})
  AND NOT EXISTS (SELECT 1 FROM credits WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM folded WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM claims WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM low_credit WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM payments WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM suspensions WHERE subject = b.id)
  AND NOT EXISTS (SELECT 1 FROM ends WHERE balance_id = b.id))`;

/**
 * Removes the balances and keys that nobody ever used, a few at a time: making them costs nothing, so without this anybody could
 * fill the disk. What has money, a receipt, an account or a claim is never removed.
 */
export function unusedSlices(
  store: Pick<KeyStore, "removeUnused">,
  here: InUseHere,
): RetentionOptions["deleteSlice"] {
  let from = START;
  return async (before) => {
    const { balances, keys, next } = await store.removeUnused(before, from, here);
    from = next ?? START;
    return { rows: { balances: balances.length, keys: keys.length }, isLast: next === null };
  };
}

const START: BalanceCursor = { createdAt: 0 as EpochMs, id: "" };

export const UNUSED_PACE: RetentionPace = { firstMs: 300_000, everyMs: DAY_MS, retryMs: 60_000 };
