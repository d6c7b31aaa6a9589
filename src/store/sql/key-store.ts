import type { Balance, Budget, Key } from "../../customers/keys/key.ts";
import {
  type BalanceCursor,
  type BalanceWithBudgets,
  type BudgetDrop,
  type BudgetPut,
  BY_GATEWAY,
  type ChangedKey,
  type InUseHere,
  type KeyDecision,
  type KeyStore,
  type NewKeyDecision,
  RECENT_MS,
  type RecentKeys,
  type RemovedUnused,
  type Suspended,
  type SuspensionRecord,
} from "../../customers/keys/key-store.ts";
import {
  NO_OTHERS,
  type OtherRuns,
  type RunChange,
  type RunDecision,
  type RunRevision,
  type StoredRun,
} from "../../customers/keys/run.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { SuspensionReason } from "../../units/errors/suspension.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { changeOfBalance, changeOfBudget, changeOfKey, changeOfRun } from "../changes.ts";
import {
  BALANCE,
  type BalanceRow,
  balanceFromRow,
  changeable,
  KEY,
  type KeyRow,
  keyFromRow,
  rowOf,
} from "./key-rows.ts";
import {
  assigned,
  behind,
  inserted,
  type NotedResult,
  part,
  type SqlDatabase,
  type SqlPart,
  type Steps,
  sql,
  verbatim,
} from "./statement.ts";
import { removeUnusedKeys } from "./unused-keys.ts";

/**
 * Keys, balances and budgets. A change has its balance to itself, so `decide` sees what it changes, and two changes of
 * one balance follow each other.
 */
export class SqlKeyStore implements KeyStore {
  constructor(
    protected readonly db: SqlDatabase,
    protected readonly clock: Pick<Clock, "now">,
  ) {}

  removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedUnused> {
    return removeUnusedKeys(this.db, this.clock.now(), before, from, here);
  }

  async keyByHash(hash: SecretHash): Promise<Key | null> {
    return firstKey(await this.db.query<KeyRow>`SELECT ${KEY} FROM keys WHERE hash = ${hash}`);
  }

  async keyById(id: KeyId): Promise<Key | null> {
    return firstKey(await this.db.query<KeyRow>`SELECT ${KEY} FROM keys WHERE id = ${id}`);
  }

  async balanceByRecovery(hash: SecretHash): Promise<Balance | null> {
    const [row] = await this.db.query<BalanceRow>`
      SELECT ${BALANCE} FROM ${BALANCES} WHERE b.recovery_hash = ${hash}`;
    return row === undefined ? null : balanceFromRow(row);
  }

  async balances(limit: number, before: BalanceId | null): Promise<{ balance: Balance; liveKeys: number }[]> {
    const rows = await this.db.query<BalanceRow & { liveKeys: number }>`
      SELECT ${BALANCE}, (SELECT count(*) FROM keys WHERE balance_id = b.id AND ${live(this.clock.now())}) AS "liveKeys"
      FROM ${BALANCES} WHERE (b.created_at, b.id) < (${behind("balances", before)})
      ORDER BY b.created_at DESC, b.id DESC LIMIT ${limit}`;
    return rows.map(({ liveKeys, ...row }) => ({ balance: balanceFromRow(row), liveKeys }));
  }

  async activeSuccessor(id: KeyId): Promise<Key | null> {
    return firstKey(
      await this.db.query<KeyRow>`
        SELECT ${KEY} FROM keys WHERE state = 'active'
          AND (balance_id, lineage) IN (SELECT balance_id, lineage FROM keys WHERE id = ${id} AND state = 'rotated')`,
    );
  }

  async balanceWithBudgets(id: BalanceId): Promise<BalanceWithBudgets | null> {
    return this.db.read(() => readWithBudgets(id));
  }

  async keysOf(balances: readonly BalanceId[], limit: number, before: KeyId | null): Promise<Key[]> {
    const rows = await this.db.query<KeyRow>`
      SELECT ${KEY} FROM keys WHERE balance_id IN ${this.db.among(balances)} AND (created_at, id) < (${behind("keys", before)})
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
    return rows.map(keyFromRow);
  }

  async liveKeysOf(balance: BalanceId, limit: number): Promise<Key[]> {
    const rows = await this.db.query<KeyRow>`
      SELECT ${KEY} FROM keys WHERE balance_id = ${balance} AND ${live(this.clock.now())}
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
    return rows.map(keyFromRow);
  }

  async addBalance(balance: Balance, key: Key): Promise<void> {
    const { id, accountId, suspended, createdAt, setUpKey, recovery } = balance;
    await this.db.change(function* () {
      yield* sql`INSERT INTO balances (id, account_id, suspended, recovery_hash, created_at, setup_key)
        VALUES (${id}, ${accountId}, ${suspended}, ${recovery}, ${createdAt}, ${setUpKey})`;
      yield* insertKey(key);
      return { result: null, changes: [] };
    });
  }

  async addKey(balance: BalanceId, decide: NewKeyDecision): Promise<Key | Refusal> {
    const { db } = this;
    const now = this.clock.now();
    return db.change<Key | Refusal>(function* () {
      const withBudgets = yield* lockWithBudgets(db, balance);
      const liveKeys = yield* countKeys(balance, live(now));
      const decided = decide(withBudgets, liveKeys, yield* recentKeys(balance, now));
      // Nobody can have remembered a key that was not there: no node need be told.
      if (!refused(decided)) yield* insertKey(decided);
      return { result: decided, changes: [] };
    });
  }

  async changeKey(id: KeyId, decide: KeyDecision): Promise<ChangedKey | Refusal> {
    const { db } = this;
    const now = this.clock.now();
    return db.change<ChangedKey | Refusal>(function* () {
      const [at] = yield* sql<{ balance_id: BalanceId }>`SELECT balance_id FROM keys WHERE id = ${id}`;
      assert(at !== undefined, `change of ${id}, which does not exist`);
      const withBudgets = yield* lockWithBudgets(db, at.balance_id);
      const [row] = yield* sql<KeyRow>`SELECT ${KEY} FROM keys WHERE id = ${id}`;
      const key = keyFromRow(row!);
      const { balanceId, rotationId } = key;
      const siblings = yield* countKeys(balanceId, part`lineage = ${rotationId} AND ${live(now)}`);
      const decided = decide(key, withBudgets, siblings, yield* recentKeys(balanceId, now));
      if (refused(decided)) return { result: decided, changes: [] };
      yield* sql`UPDATE keys SET ${assigned(changeable(decided.key))} WHERE id = ${decided.key.id}`;
      const ended = decided.endsSiblings ? yield* endSiblings(key) : [];
      if (decided.successor !== undefined) yield* insertKey(decided.successor);
      return { result: { ...decided, ended }, changes: [decided.key, ...ended].map(changeOfKey) };
    });
  }

  async putBudget(
    balance: BalanceId,
    name: string,
    most: number,
    decide: BudgetPut,
  ): Promise<Budget | Refusal> {
    const { db } = this;
    return db.change<Budget | Refusal>(function* () {
      const state = yield* lockBudget(db, balance, name);
      const decided = decide({
        ...state,
        isFull: state.known === null && (yield* isFull("budgets", balance, most)),
      });
      if (refused(decided)) return { result: decided, changes: [] };
      const { id, cap, window } = decided;
      yield* sql`INSERT INTO budgets (id, balance_id, name, cap, period)
        VALUES (${id}, ${balance}, ${decided.name}, ${cap}, ${window})
        ON CONFLICT (id) DO UPDATE SET cap = excluded.cap, period = excluded.period`;
      return { result: decided, changes: [changeOfBudget(balance, id)] };
    });
  }

  async dropBudget(balance: BalanceId, name: string, decide: BudgetDrop): Promise<Budget | Refusal> {
    const { db } = this;
    const now = this.clock.now();
    return db.change<Budget | Refusal>(function* () {
      const state = yield* lockBudget(db, balance, name);
      const uses = yield* sql<{ budgets: string }>`SELECT budgets FROM keys WHERE balance_id = ${balance}
        AND budgets <> '[]' AND ${live(now)}`;
      const drawnFrom = uses.filter(({ budgets }) => JSON.parse(budgets).includes(name)).length;
      const decided = decide({ ...state, drawnFrom });
      if (refused(decided)) return { result: decided, changes: [] };
      yield* sql`DELETE FROM budgets WHERE id = ${decided.id}`;
      return { result: decided, changes: [changeOfBudget(balance, decided.id)] };
    });
  }

  async run(balance: BalanceId, name: string): Promise<StoredRun | null> {
    const [run = null] = await this.db.query<StoredRun>`
      SELECT ${RUN} FROM runs WHERE balance_id = ${balance} AND name = ${name}`;
    return run;
  }

  async changeRun(
    balance: BalanceId,
    name: string,
    most: number,
    decide: RunDecision,
  ): Promise<RunChange | Refusal> {
    const seen = await this.run(balance, name);
    // One that is used as it is, as nearly always, takes no lock.
    const unchanged = seen === null ? null : decide(seen, NO_OTHERS);
    if (unchanged !== null && (refused(unchanged) || !unchanged.isWritten)) return unchanged;
    const { db } = this;
    return db.change<RunChange | Refusal>(function* () {
      // The run's own row, and not its balance's: a fleet starts hundreds at once. Of two that start the same run, one
      // finds it there when it is decided again; and in that moment there may be a few runs more than the most.
      const known = yield* lockRun(db, balance, name);
      const decided = decide(known, known === null ? yield* otherRuns(balance, most) : NO_OTHERS);
      if (refused(decided) || !decided.isWritten) return { result: decided, changes: [] };
      if (decided.ends !== null)
        yield* sql`DELETE FROM runs WHERE balance_id = ${balance} AND name = ${decided.ends}`;
      const row = { balance_id: balance, name, ...rowOfRun(decided.run) };
      if (known === null) yield* sql`INSERT INTO runs ${inserted(row)}`;
      else yield* updateRun(balance, decided.run);
      return { result: decided, changes: decided.hasNewLimits ? [changeOfRun(balance, decided.run)] : [] };
    });
  }

  async reviseRun(balance: BalanceId, name: string, decide: RunRevision): Promise<StoredRun | Refusal> {
    const { db } = this;
    return db.change<StoredRun | Refusal>(function* () {
      const owned = yield* lockBalance(db, balance);
      const decided = decide(yield* lockRun(db, balance, name), owned);
      if (refused(decided)) return { result: decided, changes: [] };
      yield* updateRun(balance, decided);
      return { result: decided, changes: [changeOfRun(balance, decided)] };
    });
  }

  async suspend(suspension: SuspensionRecord): Promise<Suspended | null> {
    return this.db.change(() => suspend(this.db, suspension));
  }

  async secretsSaved(balance: BalanceId, at: EpochMs): Promise<EpochMs> {
    return this.db.change(function* () {
      const [row] = yield* sql<{ savedAt: EpochMs }>`UPDATE balances
        SET secrets_saved_at = coalesce(secrets_saved_at, ${at}) WHERE id = ${balance} RETURNING secrets_saved_at AS "savedAt"`;
      return { result: row!.savedAt, changes: [changeOfBalance(balance)] };
    });
  }

  async suspensions(subject: string, limit: number): Promise<SuspensionRecord[]> {
    return this.db.query<SuspensionRecord>`
      SELECT subject, reason, lifted, at, by_whom AS by, note FROM suspensions
      WHERE subject = ${subject} ORDER BY seq DESC LIMIT ${limit}`;
  }
}

function* lockWithBudgets(db: SqlDatabase, id: BalanceId): Steps<BalanceWithBudgets> {
  const balance = yield* lockBalance(db, id);
  return { balance, budgets: yield* budgetsOf(id) };
}

function* readWithBudgets(id: BalanceId): Steps<BalanceWithBudgets | null> {
  const balance = yield* readBalance(id);
  return balance === null ? null : { balance, budgets: yield* budgetsOf(id) };
}

function* lockBudget(
  db: SqlDatabase,
  id: BalanceId,
  name: string,
): Steps<{ readonly balance: Balance; readonly known: Budget | null }> {
  const balance = yield* lockBalance(db, id);
  const [known = null] = yield* budgetsOf(id, part`AND name = ${name}`);
  return { balance, known };
}

function* lockBalance({ forUpdate }: SqlDatabase, id: BalanceId): Steps<Balance> {
  yield* sql`SELECT id FROM balances WHERE id = ${id} ${forUpdate}`;
  const balance = yield* readBalance(id);
  assert(balance !== null, `change on ${id}, which does not exist`);
  return balance;
}

function* lockRun({ forUpdate }: SqlDatabase, balance: BalanceId, name: string): Steps<StoredRun | null> {
  const [run = null] = yield* sql<StoredRun>`
    SELECT ${RUN} FROM runs WHERE balance_id = ${balance} AND name = ${name} ${forUpdate}`;
  return run;
}

function* updateRun(balance: BalanceId, run: StoredRun): Steps<void> {
  yield* sql`UPDATE runs SET ${assigned(rowOfRun(run))} WHERE balance_id = ${balance} AND name = ${run.name}`;
}

const rowOfRun = ({ startedAt, startedBy, usedAt, cap, calls, revision }: StoredRun) => ({
  started_at: startedAt,
  started_by: startedBy,
  used_at: usedAt,
  cap,
  calls,
  revision,
});

function* readBalance(id: BalanceId): Steps<Balance | null> {
  const [row] = yield* sql<BalanceRow>`SELECT ${BALANCE} FROM ${BALANCES} WHERE b.id = ${id}`;
  return row === undefined ? null : balanceFromRow(row);
}

const budgetsOf = (balance: BalanceId, and: SqlPart = part``): Steps<Budget[]> =>
  sql<Budget>`SELECT id, balance_id AS "balanceId", name, cap, period AS "window"
    FROM budgets WHERE balance_id = ${balance} ${and} ORDER BY name`;

/**
 * Whether the balance has so many rows, rather than how many: a keeper compares what a transaction has read, and a row
 * more is no conflict.
 */
function* isFull(table: "budgets" | "runs", balance: BalanceId, most: number): Steps<boolean> {
  const [row] = yield* sql<{ full: number }>`SELECT CASE WHEN count(*) >= ${most} THEN 1 ELSE 0 END AS "full"
    FROM ${verbatim(table)} WHERE balance_id = ${balance}`;
  return row!.full === 1;
}

function* otherRuns(balance: BalanceId, most: number): Steps<OtherRuns> {
  if (!(yield* isFull("runs", balance, most))) return { most, quietest: null };
  const [quietest] = yield* sql<NonNullable<OtherRuns["quietest"]>>`SELECT name, used_at AS "usedAt" FROM runs
    WHERE balance_id = ${balance} ORDER BY used_at, name LIMIT 1`;
  return { most, quietest: quietest! };
}

function* recentKeys(balance: BalanceId, now: EpochMs): Steps<RecentKeys> {
  const recent = part`created_at > ${now - RECENT_MS}`;
  return {
    ofSetUp: yield* countKeys(balance, part`root = 0 AND ${recent}`),
    ofClaims: yield* countKeys(balance, part`root > 0 AND ${recent}`),
  };
}

function* countKeys(balance: BalanceId, where: SqlPart): Steps<number> {
  const [row] = yield* sql<{ count: number }>`
    SELECT count(*) AS count FROM keys WHERE balance_id = ${balance} AND ${where}`;
  return row!.count;
}

function* insertKey(key: Key): Steps<void> {
  yield* sql`INSERT INTO keys ${inserted(rowOf(key))}`;
}

function* endSiblings({ id, balanceId, rotationId }: Key): Steps<Key[]> {
  const rows = yield* sql<KeyRow>`UPDATE keys SET state = 'revoked'
    WHERE balance_id = ${balanceId} AND lineage = ${rotationId} AND id <> ${id} AND state <> 'revoked' RETURNING ${KEY}`;
  return rows.map(keyFromRow);
}

function* suspend(
  { forUpdate }: SqlDatabase,
  { subject, reason, lifted, at, by, note }: SuspensionRecord,
): Steps<NotedResult<Suspended | null>> {
  // Two decisions about the same subject wait for each other.
  const accounts = yield* sql`SELECT id FROM accounts WHERE id = ${subject} ${forUpdate}`;
  const balances = yield* sql`SELECT id FROM balances WHERE id = ${subject} ${forUpdate}`;
  if (accounts.length + balances.length === 0) return { result: null, changes: [] };
  const stands = by === BY_GATEWAY ? byOperator(subject) : part`false`;
  if (reason === null)
    yield* sql`DELETE FROM suspension_reasons
      WHERE subject = ${subject} AND (CAST(${lifted} AS TEXT) IS NULL OR reason = ${lifted}) AND NOT ${stands}`;
  else
    yield* sql`INSERT INTO suspension_reasons (subject, reason) VALUES (${subject}, ${reason})
      ON CONFLICT DO NOTHING`;
  // Of several, the gravest is told.
  const [gravest] = yield* sql<{ reason: SuspensionReason }>`
    SELECT reason FROM suspension_reasons WHERE subject = ${subject}
    ORDER BY CASE reason WHEN 'sanctions' THEN 0 WHEN 'chargeback' THEN 1 ELSE 2 END LIMIT 1`;
  const suspended = gravest?.reason ?? null;
  yield* sql`UPDATE accounts SET suspended = ${suspended} WHERE id = ${subject}`;
  yield* sql`UPDATE balances SET suspended = ${suspended} WHERE id = ${subject}`;
  yield* sql`INSERT INTO suspensions (at, subject, reason, lifted, by_whom, note)
    VALUES (${at}, ${subject}, ${reason}, ${lifted}, ${by}, ${note})`;
  const rows = yield* sql<{ id: BalanceId }>`
    SELECT id FROM balances WHERE id = ${subject} OR account_id = ${subject} ORDER BY attached_at, id`;
  const ids = rows.map(({ id }) => id);
  return { result: { balances: ids, suspended }, changes: ids.map(changeOfBalance) };
}

/** Whether an operator's last word on this reason was to suspend for it. */
const byOperator = (subject: string): SqlPart => part`coalesce((
  SELECT s.reason IS NOT NULL FROM suspensions s
  WHERE s.subject = ${subject} AND s.by_whom <> ${BY_GATEWAY}
    AND coalesce(s.reason, s.lifted, suspension_reasons.reason) = suspension_reasons.reason
  ORDER BY s.seq DESC LIMIT 1), false)`;

const BALANCES = part`balances b LEFT JOIN accounts a ON a.id = b.account_id`;

/** Neither revoked nor expired. */
const live = (now: EpochMs) => part`state <> 'revoked' AND (expires_at IS NULL OR expires_at > ${now})`;

const firstKey = ([row]: readonly KeyRow[]): Key | null => (row === undefined ? null : keyFromRow(row));

const RUN = part`name, cap, calls, started_at AS "startedAt", started_by AS "startedBy", used_at AS "usedAt", revision`;
