import type { Database } from "bun:sqlite";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { Balance, Budget, Key } from "../../keys/key.ts";
import {
  type BalanceCursor,
  type BalanceWithBudgets,
  type BudgetChange,
  type BudgetDecision,
  type ChangedKey,
  type InUseHere,
  type KeyDecision,
  type KeyStore,
  MOST_ENDS_LOOKED_AT,
  type NewKeyDecision,
  RECENT_MS,
  type RemovedUnused,
  type Suspended,
  type SuspensionRecord,
  SWEPT_AT_ONCE,
} from "../../keys/key-store.ts";
import { NO_OTHERS, othersOf, type RunChange, type RunDecision, type StoredRun } from "../../keys/run.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { BalanceId, BudgetId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { WindowKind } from "../../units/window.ts";
import { type BalanceRow, balanceFromRow, GRAVEST_FIRST, type KeyRow, keyFromRow } from "../key-rows.ts";

/**
 * Keys, balances and budgets in SQLite. Every change is one immediate transaction, so `decide` sees what it
 * changes; what a promise resolves with is on disk.
 */
export class SqliteKeyStore implements KeyStore {
  private readonly statements;

  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, "now">,
    /** Where the connection does not sync at commit: resolves once what was committed is durable. */
    private readonly durable: () => Promise<void> = async () => {},
  ) {
    this.statements = prepare(db);
  }

  async keyByHash(hash: SecretHash): Promise<Key | null> {
    return keyOf(this.statements.keyByHash.get(hash));
  }

  async keyById(id: KeyId): Promise<Key | null> {
    return keyOf(this.statements.keyById.get(id));
  }

  async balanceByRecovery(hash: SecretHash): Promise<Balance | null> {
    const row = this.statements.balanceByRecovery.get(hash);
    return row === null ? null : balanceFromRow(row);
  }

  async balanceWithBudgets(id: BalanceId): Promise<BalanceWithBudgets | null> {
    return this.readWithBudgets(id);
  }

  async keysOf(balances: readonly BalanceId[], limit: number, before: KeyId | null): Promise<Key[]> {
    const from = before === null ? null : this.statements.keyById.get(before);
    const at = from?.created_at ?? Number.MAX_SAFE_INTEGER;
    return balances
      .flatMap((balance) => this.statements.keysOf.all(balance, at, from?.id ?? "", limit))
      .sort(newestFirst)
      .slice(0, limit)
      .map(keyFromRow);
  }

  async activeSuccessor(id: KeyId): Promise<Key | null> {
    return keyOf(this.statements.activeSuccessor.get(id));
  }

  async balances(limit: number, before: BalanceId | null): Promise<{ balance: Balance; liveKeys: number }[]> {
    const from = before === null ? null : this.statements.balanceById.get(before);
    const at = from?.created_at ?? Number.MAX_SAFE_INTEGER;
    return this.statements.balances
      .all(this.clock.now(), at, from?.id ?? "", limit)
      .map((row) => ({ balance: balanceFromRow(row), liveKeys: row.live }));
  }

  async addBalance(balance: Balance, recovery: SecretHash, key: Key): Promise<void> {
    await this.change(() => {
      const { id, accountId, suspended, createdAt, setUpKey } = balance;
      this.statements.addBalance.run(id, accountId, suspended, recovery, createdAt, setUpKey);
      this.insertKey(key);
    });
  }

  async addKey(balance: BalanceId, decide: NewKeyDecision): Promise<Key | Refusal> {
    return this.change(() => {
      const { live } = this.statements.liveKeys.get(balance, this.clock.now())!;
      const decided = decide(this.existingWithBudgets(balance), live, this.recentKeys(balance));
      if (!refused(decided)) this.insertKey(decided);
      return decided;
    });
  }

  async changeKey(id: KeyId, decide: KeyDecision): Promise<ChangedKey | Refusal> {
    return this.change(() => {
      const key = keyOf(this.statements.keyById.get(id));
      assert(key !== null, `change of ${id}, which does not exist`);
      const { live } = this.statements.liveSiblings.get(key.balanceId, key.rotationId, this.clock.now())!;
      const recent = this.recentKeys(key.balanceId);
      const decided = decide(key, this.existingWithBudgets(key.balanceId), live, recent);
      if (refused(decided)) return decided;
      this.updateKey(decided.key);
      const { balanceId, rotationId: lineage } = key;
      const ended = decided.endsSiblings ? this.statements.endLineage.all(balanceId, lineage, id) : [];
      if (decided.successor !== undefined) this.insertKey(decided.successor);
      return { ...decided, ended: ended.map((row) => keyOf(row)!) };
    });
  }

  async changeBudgets(balance: BalanceId, decide: BudgetDecision): Promise<BudgetChange | Refusal> {
    return this.change(() => {
      const uses = this.statements.budgetUses.all(balance, this.clock.now());
      const decided = decide(
        this.existingWithBudgets(balance),
        new Map(uses.map(({ name, keys }) => [name, keys])),
      );
      if (refused(decided)) return decided;
      const { id, balanceId, name, cap, window } = decided.budget;
      if (decided.kind === "drop") this.statements.dropBudget.run(id);
      else this.statements.putBudget.run(id, balanceId, name, cap, window);
      return decided;
    });
  }

  async run(balance: BalanceId, name: string): Promise<StoredRun | null> {
    return this.statements.run.get(balance, name);
  }

  async changeRun(balance: BalanceId, name: string, decide: RunDecision): Promise<RunChange | Refusal> {
    const { run, otherRuns, endRun, putRun } = this.statements;
    return this.change(() => {
      const known = run.get(balance, name);
      const decided = decide(known, known === null ? othersOf(otherRuns.all(balance)) : NO_OTHERS);
      if (refused(decided) || !decided.isWritten) return decided;
      const { cap, calls, startedAt, usedAt } = decided.run;
      if (decided.ends !== null) endRun.run(balance, decided.ends);
      putRun.run(balance, name, startedAt, usedAt, cap, calls);
      return decided;
    });
  }

  async suspend({ subject, reason, lifted, at, by, note }: SuspensionRecord): Promise<Suspended | null> {
    const { addReason, liftReasons, gravest, suspendBalance, suspendAccount, balancesOf, addSuspension } =
      this.statements;
    return this.change(() => {
      if (reason === null) liftReasons.run(subject, lifted);
      else addReason.run(subject, reason);
      const { suspended } = gravest.get(subject)!;
      const accounts = suspendAccount.run(suspended, subject).changes;
      const balances = suspendBalance.run(suspended, subject).changes;
      if (accounts + balances === 0) {
        liftReasons.run(subject, null);
        return null;
      }
      addSuspension.run(at, subject, reason, lifted, by, note);
      return { balances: balancesOf.all(subject, subject).map(({ id }) => id), suspended };
    });
  }

  async secretsSaved(balance: BalanceId, at: EpochMs): Promise<EpochMs> {
    return this.change(() => this.statements.secretsSaved.get(at, balance)!.at);
  }

  async suspensions(subject: string, limit: number): Promise<SuspensionRecord[]> {
    return this.statements.suspensions.all(subject, limit);
  }

  async removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedWithKeys> {
    const { swept, removeKeysOf, removeBudgetsOf, removeRunsOf, removeBalance } = this.statements;
    const rows = swept.all(before, before, from.createdAt, from.id);
    const balances: BalanceId[] = [];
    const keys: RemovedKey[] = [];
    let next = rows.length < SWEPT_AT_ONCE ? null : placeOf(rows.at(-1)!);
    let looked = 0;
    const remove = () => {
      for (const row of rows) {
        const { id, lone } = row;
        // The end of a request may not be here yet.
        if (here.isInUse(id)) continue;
        if (lone === 1) {
          keys.push(...removeKeysOf.all(id));
          removeBudgetsOf.run(id);
          removeRunsOf.run(id);
          removeBalance.run(id);
          balances.push(id);
        } else looked += this.removeEndedKeys(id, before, keys);
        // Everybody waits meanwhile.
        if (looked + keys.length < MOST_ENDS_LOOKED_AT) continue;
        next = placeOf(row);
        break;
      }
      here.forget(keys, balances);
    };
    if (rows.length > 0) await this.change(remove);
    return { balances, keys, next };
  }

  /** Of a balance, those without a request. Returns how many ends it had to look at for that. */
  private removeEndedKeys(balance: BalanceId, before: EpochMs, removed: RemovedKey[]): number {
    const { hasEndedKey, endsOf, removeEndedKeys } = this.statements;
    if (hasEndedKey.get(balance, before, before) === null) return 0;
    const { ends } = endsOf.get(balance)!;
    if (ends > MOST_ENDS_LOOKED_AT) return 0;
    removed.push(...removeEndedKeys.all(balance, before, before, balance, SWEPT_AT_ONCE));
    return ends;
  }

  /** Without suspending, for whoever must not go on with a balance that was just removed. */
  has(id: BalanceId): boolean {
    return this.statements.balanceById.get(id) !== null;
  }

  private recentKeys(balance: BalanceId): number {
    return this.statements.recentKeys.get(balance, this.clock.now() - RECENT_MS)!.recent;
  }

  private async change<Result>(write: () => Result): Promise<Result> {
    const result = this.db.transaction(write).immediate();
    // Nothing was written.
    if (!refused(result)) await this.durable();
    return result;
  }

  private existingWithBudgets(id: BalanceId): BalanceWithBudgets {
    const withBudgets = this.readWithBudgets(id);
    assert(withBudgets !== null, `change on ${id}, which does not exist`);
    return withBudgets;
  }

  private readWithBudgets(id: BalanceId): BalanceWithBudgets | null {
    const row = this.statements.balanceById.get(id);
    if (row === null) return null;
    return { balance: balanceFromRow(row), budgets: this.statements.budgetsOf.all(id).map(budgetOf) };
  }

  private insertKey(key: Key): void {
    this.statements.addKey.run(
      key.id,
      key.hash,
      key.prefix,
      key.balanceId,
      key.rotationId,
      key.madeBy,
      key.createdAt,
      ...changeable(key),
    );
  }

  private updateKey(key: Key): void {
    this.statements.updateKey.run(...changeable(key), key.id);
  }
}

const newestFirst = (a: KeyRow<number>, b: KeyRow<number>): number =>
  b.created_at - a.created_at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);

/** Columns that a key's life changes, in the order of `CHANGEABLE`. */
const changeable = (key: Key): Changeable => [
  key.name,
  key.state,
  key.expiresAt,
  key.rpmLimit,
  key.tpmLimit,
  key.dailyLimit,
  key.monthlyLimit,
  key.allowedModels === null ? null : JSON.stringify(key.allowedModels),
  JSON.stringify(key.budgets),
];

const CHANGEABLE = [
  "name",
  "state",
  "expires_at",
  "rpm_limit",
  "tpm_limit",
  "daily_limit",
  "monthly_limit",
  "allowed_models",
  "budgets",
];

type Changeable = [
  string | null,
  string,
  number | null,
  number | null,
  number | null,
  number | null,
  number | null,
  string | null,
  string,
];

interface SqliteBudgetRow {
  readonly id: BudgetId;
  readonly balance_id: BalanceId;
  readonly name: string;
  readonly cap: NanoUsd;
  readonly window: WindowKind;
}

export type RemovedWithKeys = RemovedUnused & { readonly keys: readonly RemovedKey[] };

type RemovedKey = Pick<Key, "hash" | "balanceId" | "rotationId">;

interface Swept {
  readonly id: BalanceId;
  readonly created_at: EpochMs;
  /** Has nothing but keys and budgets: 1 or 0. */
  readonly lone: number;
}

const placeOf = ({ created_at, id }: Swept): BalanceCursor => ({ createdAt: created_at, id });

const keyOf = (row: KeyRow<number> | null): Key | null => (row === null ? null : keyFromRow(row));

const budgetOf = (row: SqliteBudgetRow): Budget => ({
  id: row.id,
  balanceId: row.balance_id,
  name: row.name,
  cap: row.cap,
  window: row.window,
});

/** An account's suspension is that of all its balances, beside those of their own. */
const BALANCE_COLUMNS =
  "b.id, b.account_id, coalesce(b.suspended, a.suspended) AS suspended, b.created_at, b.setup_key, b.secrets_saved_at, b.closed_at";
const BALANCES = "balances b LEFT JOIN accounts a ON a.id = b.account_id";
const REMOVED = "hash, balance_id AS balanceId, lineage AS rotationId";
/** Neither revoked nor expired at the parameter's time. */
const LIVE = "state <> 'revoked' AND (expires_at IS NULL OR expires_at > ?)";

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of statements.
function prepare(db: Database) {
  return {
    keyByHash: db.query<KeyRow<number>, [string]>("SELECT * FROM keys WHERE hash = ?"),
    keyById: db.query<KeyRow<number>, [string]>("SELECT * FROM keys WHERE id = ?"),
    keysOf: db.query<KeyRow<number>, [string, number, string, number]>(
      `SELECT * FROM keys WHERE balance_id = ? AND (created_at, id) < (?, ?)
       ORDER BY created_at DESC, id DESC LIMIT ?`,
    ),
    liveKeys: db.query<{ live: number }, [string, number]>(
      `SELECT count(*) AS live FROM keys WHERE balance_id = ? AND ${LIVE}`,
    ),
    recentKeys: db.query<{ recent: number }, [string, number]>(
      "SELECT count(*) AS recent FROM keys WHERE balance_id = ? AND created_at > ?",
    ),
    swept: db.query<Swept, [number, number, number, string]>(
      `SELECT id, created_at,
         account_id IS NULL AND suspended IS NULL AND undo_hash IS NULL AND claimed_at IS NULL AND closed_at IS NULL
           AND NOT EXISTS (SELECT 1 FROM keys WHERE balance_id = b.id AND created_at >= ?)
           AND NOT EXISTS (SELECT 1 FROM credits WHERE balance_id = b.id)
           AND NOT EXISTS (SELECT 1 FROM folded WHERE balance_id = b.id)
           AND NOT EXISTS (SELECT 1 FROM claims WHERE balance_id = b.id)
           AND NOT EXISTS (SELECT 1 FROM low_credit WHERE balance_id = b.id)
           AND NOT EXISTS (SELECT 1 FROM payments WHERE balance_id = b.id)
           AND NOT EXISTS (SELECT 1 FROM suspensions WHERE subject = b.id)
           AND NOT EXISTS (SELECT 1 FROM ends WHERE balance_id = b.id) AS lone
       FROM balances b WHERE created_at < ? AND (created_at, id) > (?, ?)
       ORDER BY created_at, id LIMIT ${SWEPT_AT_ONCE}`,
    ),
    hasEndedKey: db.query<object, [string, number, number]>(
      `SELECT 1 FROM keys WHERE balance_id = ? AND created_at < ?
         AND (state = 'revoked' OR expires_at < ?) LIMIT 1`,
    ),
    // Those that were used stay for good: were they among so many, others would never be reached.
    removeEndedKeys: db.query<RemovedKey, [string, number, number, string, number]>(
      `DELETE FROM keys WHERE id IN (
         SELECT id FROM keys WHERE balance_id = ? AND created_at < ? AND (state = 'revoked' OR expires_at < ?)
           AND id NOT IN (SELECT key_id FROM ends WHERE balance_id = ?) ORDER BY created_at, id LIMIT ?)
       RETURNING ${REMOVED}`,
    ),
    endsOf: db.query<{ ends: number }, [string]>(
      `SELECT count(*) AS ends FROM (SELECT 1 FROM ends WHERE balance_id = ? LIMIT ${MOST_ENDS_LOOKED_AT + 1})`,
    ),
    removeKeysOf: db.query<RemovedKey, [string]>(
      `DELETE FROM keys WHERE balance_id = ? RETURNING ${REMOVED}`,
    ),
    removeBudgetsOf: db.query<never, [string]>("DELETE FROM budgets WHERE balance_id = ?"),
    removeBalance: db.query<never, [string]>("DELETE FROM balances WHERE id = ?"),
    liveSiblings: db.query<{ live: number }, [string, string, number]>(
      `SELECT count(*) AS live FROM keys WHERE balance_id = ? AND lineage = ? AND ${LIVE}`,
    ),
    activeSuccessor: db.query<KeyRow<number>, [string]>(
      `SELECT next.* FROM keys old JOIN keys next ON next.balance_id = old.balance_id AND next.lineage = old.lineage
       WHERE old.id = ? AND old.state = 'rotated' AND next.state = 'active'`,
    ),
    endLineage: db.query<KeyRow<number>, [string, string, string]>(
      `UPDATE keys SET state = 'revoked' WHERE balance_id = ? AND lineage = ? AND id <> ? AND state <> 'revoked'
       RETURNING *`,
    ),
    addKey: db.query<never, [string, string, string, string, string, string | null, number, ...Changeable]>(
      `INSERT INTO keys (id, hash, prefix, balance_id, lineage, made_by, created_at, ${CHANGEABLE.join(", ")})
       VALUES (?, ?, ?, ?, ?, ?, ?${", ?".repeat(CHANGEABLE.length)})`,
    ),
    updateKey: db.query<never, [...Changeable, string]>(
      `UPDATE keys SET ${CHANGEABLE.map((column) => `${column} = ?`).join(", ")} WHERE id = ?`,
    ),
    balanceById: db.query<BalanceRow<number>, [string]>(
      `SELECT ${BALANCE_COLUMNS} FROM ${BALANCES} WHERE b.id = ?`,
    ),
    balanceByRecovery: db.query<BalanceRow<number>, [string]>(
      `SELECT ${BALANCE_COLUMNS} FROM ${BALANCES} WHERE b.recovery_hash = ?`,
    ),
    balances: db.query<BalanceRow<number> & { live: number }, [number, number, string, number]>(
      `SELECT ${BALANCE_COLUMNS},
         (SELECT count(*) FROM keys WHERE balance_id = b.id
           AND ${LIVE}) AS live
       FROM ${BALANCES} WHERE (b.created_at, b.id) < (?, ?) ORDER BY b.created_at DESC, b.id DESC LIMIT ?`,
    ),
    addBalance: db.query<never, [string, string | null, string | null, string, number, string | null]>(
      `INSERT INTO balances (id, account_id, suspended, recovery_hash, created_at, setup_key)
       VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    suspendBalance: db.query<never, [string | null, string]>(
      "UPDATE balances SET suspended = ? WHERE id = ?",
    ),
    suspendAccount: db.query<never, [string | null, string]>(
      "UPDATE accounts SET suspended = ? WHERE id = ?",
    ),
    balancesOf: db.query<{ id: BalanceId }, [string, string]>(
      "SELECT id FROM balances WHERE id = ? OR account_id = ? ORDER BY attached_at, id",
    ),
    addReason: db.query<never, [string, string]>(
      "INSERT OR IGNORE INTO suspension_reasons (subject, reason) VALUES (?, ?)",
    ),
    liftReasons: db.query<never, [string, string | null]>(
      "DELETE FROM suspension_reasons WHERE subject = ?1 AND (?2 IS NULL OR reason = ?2)",
    ),
    gravest: db.query<Pick<Suspended, "suspended">, [string]>(
      `SELECT (SELECT reason FROM suspension_reasons WHERE subject = ? ${GRAVEST_FIRST} LIMIT 1) AS suspended`,
    ),
    secretsSaved: db.query<{ at: EpochMs }, [number, string]>(
      `UPDATE balances SET secrets_saved_at = coalesce(secrets_saved_at, ?) WHERE id = ?
       RETURNING secrets_saved_at AS at`,
    ),
    addSuspension: db.query<never, [number, string, string | null, string | null, string, string | null]>(
      "INSERT INTO suspensions (at, subject, reason, lifted, by, note) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    suspensions: db.query<SuspensionRecord, [string, number]>(
      "SELECT subject, reason, lifted, at, by, note FROM suspensions WHERE subject = ? ORDER BY seq DESC LIMIT ?",
    ),
    budgetsOf: db.query<SqliteBudgetRow, [string]>(
      "SELECT * FROM budgets WHERE balance_id = ? ORDER BY name",
    ),
    budgetUses: db.query<{ name: string; keys: number }, [string, number]>(
      `SELECT value AS name, count(*) AS keys FROM keys, json_each(keys.budgets)
       WHERE balance_id = ? AND ${LIVE} GROUP BY value`,
    ),
    putBudget: db.query<never, [string, string, string, number, string]>(
      `INSERT INTO budgets (id, balance_id, name, cap, window) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET cap = excluded.cap, window = excluded.window`,
    ),
    dropBudget: db.query<never, [string]>("DELETE FROM budgets WHERE id = ?"),
    run: db.query<StoredRun, [string, string]>(
      `SELECT name, cap, calls, started_at AS startedAt, used_at AS usedAt FROM runs
       WHERE balance_id = ? AND name = ?`,
    ),
    otherRuns: db.query<Pick<StoredRun, "name" | "usedAt">, [string]>(
      "SELECT name, used_at AS usedAt FROM runs WHERE balance_id = ?",
    ),
    putRun: db.query<never, [string, string, number, number, number | null, number | null]>(
      `INSERT OR REPLACE INTO runs (balance_id, name, started_at, used_at, cap, calls) VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    endRun: db.query<never, [string, string]>("DELETE FROM runs WHERE balance_id = ? AND name = ?"),
    removeRunsOf: db.query<never, [string]>("DELETE FROM runs WHERE balance_id = ?"),
  };
}
