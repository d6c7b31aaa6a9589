import type { SQL, TransactionSQL } from "bun";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { SuspensionReason } from "../../errors/suspension.ts";
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
import { allowanceCounter, balanceCounter } from "../../ledger/counter.ts";
import { assert } from "../../units/assert.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId, BudgetId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { WindowKind } from "../../units/window.ts";
import { changeOfBalance, changeOfBudget, changeOfKey, changeOfRun, type NotedChange } from "../changes.ts";
import { type BalanceRow, balanceFromRow, GRAVEST_FIRST, type KeyRow, keyFromRow } from "../key-rows.ts";
import type { Postgres } from "./postgres.ts";
import { noteChanges } from "./registry.ts";

/**
 * Keys, balances and budgets in PostgreSQL. A change locks its balance, so `decide` sees what it changes and
 * two changes of one balance follow each other. A change that other nodes may have remembered otherwise
 * resolves once all of them have taken notice (ledger/membership).
 */
export class PostgresKeyStore implements KeyStore {
  constructor(
    private readonly postgres: Postgres,
    private readonly clock: Pick<Clock, "now">,
    private readonly acknowledged: (version: number) => Promise<void>,
  ) {}

  async keyByHash(hash: SecretHash): Promise<Key | null> {
    const [row] = await this.postgres.query<KeyRow<string>>(
      (sql) => sql`SELECT * FROM keys WHERE hash = ${hash}`,
    );
    return row === undefined ? null : keyFromRow(row);
  }

  async keyById(id: KeyId): Promise<Key | null> {
    const [row] = await this.postgres.query<KeyRow<string>>(
      (sql) => sql`SELECT * FROM keys WHERE id = ${id}`,
    );
    return row === undefined ? null : keyFromRow(row);
  }

  async balanceByRecovery(hash: SecretHash): Promise<Balance | null> {
    const [row] = await this.postgres.query<BalanceRow<string>>(
      (sql) => sql`SELECT ${columns(sql)} FROM ${balancesOf(sql)} WHERE b.recovery_hash = ${hash}`,
    );
    return row === undefined ? null : balanceFromRow(row);
  }

  async balances(limit: number, before: BalanceId | null): Promise<{ balance: Balance; liveKeys: number }[]> {
    const rows = await this.postgres.query<BalanceRow<string> & { live: string }>(
      (sql) => sql`
        SELECT ${columns(sql)}, (SELECT count(*) FROM keys WHERE balance_id = b.id AND ${live(sql, this.clock.now())}) AS live
        FROM ${balancesOf(sql)} WHERE (b.created_at, b.id) < (
          coalesce((SELECT created_at FROM balances WHERE id = ${before}), ${Number.MAX_SAFE_INTEGER}), coalesce(${before}::text, ''))
        ORDER BY b.created_at DESC, b.id DESC LIMIT ${limit}`,
    );
    return rows.map((row) => ({ balance: balanceFromRow(row), liveKeys: Number(row.live) }));
  }

  async activeSuccessor(id: KeyId): Promise<Key | null> {
    const [row] = await this.postgres.query<KeyRow<string>>(
      (sql) => sql`
        SELECT next.* FROM keys old JOIN keys next ON next.balance_id = old.balance_id AND next.lineage = old.lineage
        WHERE old.id = ${id} AND old.state = 'rotated' AND next.state = 'active'`,
    );
    return row === undefined ? null : keyFromRow(row);
  }

  async balanceWithBudgets(id: BalanceId): Promise<BalanceWithBudgets | null> {
    return this.postgres.transaction((sql) => readWithBudgets(sql, id));
  }

  async keysOf(balances: readonly BalanceId[], limit: number, before: KeyId | null): Promise<Key[]> {
    const ids = JSON.stringify(balances);
    const rows = await this.postgres.query<KeyRow<string>>(
      (sql) => sql`
        SELECT * FROM keys WHERE balance_id IN (SELECT value FROM json_array_elements_text(${ids}::text::json))
          AND (created_at, id) < (
            coalesce((SELECT created_at FROM keys WHERE id = ${before}), ${Number.MAX_SAFE_INTEGER}), coalesce(${before}::text, ''))
        ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
    );
    return rows.map(keyFromRow);
  }

  async addBalance(balance: Balance, recovery: SecretHash, key: Key): Promise<void> {
    const { id, accountId, suspended, createdAt, setUpKey } = balance;
    await this.postgres.transaction(async (sql) => {
      await sql`INSERT INTO balances (id, account_id, suspended, recovery_hash, created_at, setup_key)
        VALUES (${id}, ${accountId}, ${suspended}, ${recovery}, ${createdAt}, ${setUpKey})`;
      await insertKey(sql, key);
    });
  }

  async addKey(balance: BalanceId, decide: NewKeyDecision): Promise<Key | Refusal> {
    return this.postgres.transaction(async (sql) => {
      const withBudgets = await lockWithBudgets(sql, balance);
      const recent = await this.recentKeys(sql, balance);
      const decided = decide(withBudgets, await this.liveKeys(sql, balance, null), recent);
      // Nobody can have remembered a key that was not there: no node need be told.
      if (!refused(decided)) await insertKey(sql, decided);
      return decided;
    });
  }

  async changeKey(id: KeyId, decide: KeyDecision): Promise<ChangedKey | Refusal> {
    return this.change<ChangedKey | Refusal>(async (sql) => {
      const [at] = await sql<{ balance_id: BalanceId }[]>`SELECT balance_id FROM keys WHERE id = ${id}`;
      assert(at !== undefined, `change of ${id}, which does not exist`);
      const withBudgets = await lockWithBudgets(sql, at.balance_id);
      const [row] = await sql<KeyRow<string>[]>`SELECT * FROM keys WHERE id = ${id}`;
      const key = keyFromRow(row!);
      const siblings = await this.liveKeys(sql, key.balanceId, key.rotationId);
      const decided = decide(key, withBudgets, siblings, await this.recentKeys(sql, key.balanceId));
      if (refused(decided)) return { result: decided, changes: [] };
      await updateKey(sql, decided.key);
      const ended = decided.endsSiblings ? await endSiblings(sql, key) : [];
      if (decided.successor !== undefined) await insertKey(sql, decided.successor);
      return { result: { ...decided, ended }, changes: [decided.key, ...ended].map(changeOfKey) };
    });
  }

  async changeBudgets(balance: BalanceId, decide: BudgetDecision): Promise<BudgetChange | Refusal> {
    return this.change<BudgetChange | Refusal>(async (sql) => {
      const withBudgets = await lockWithBudgets(sql, balance);
      const uses = await sql<{ budgets: string }[]>`SELECT budgets FROM keys WHERE balance_id = ${balance}
        AND budgets <> '[]' AND ${live(sql, this.clock.now())}`;
      const decided = decide(withBudgets, countUses(uses.map(({ budgets }) => JSON.parse(budgets))));
      if (refused(decided)) return { result: decided, changes: [] };
      const { id, balanceId, name, cap, window } = decided.budget;
      if (decided.kind === "drop") await sql`DELETE FROM budgets WHERE id = ${id}`;
      else {
        await sql`INSERT INTO budgets (id, balance_id, name, cap, period) VALUES (${id}, ${balanceId}, ${name}, ${cap}, ${window})
          ON CONFLICT (id) DO UPDATE SET cap = excluded.cap, period = excluded.period`;
      }
      return { result: decided, changes: [changeOfBudget(balance, id)] };
    });
  }

  async run(balance: BalanceId, name: string): Promise<StoredRun | null> {
    const [row] = await this.postgres.query<RunRow>(
      (sql) => sql`SELECT * FROM runs WHERE balance_id = ${balance} AND name = ${name}`,
    );
    return row === undefined ? null : runOf(row);
  }

  async changeRun(balance: BalanceId, name: string, decide: RunDecision): Promise<RunChange | Refusal> {
    return this.change<RunChange | Refusal>(async (sql) => {
      const rows = await sql<RunRow[]>`SELECT * FROM runs WHERE balance_id = ${balance} AND name = ${name}`;
      // One that is used as it is takes no lock.
      const seen = rows[0] === undefined ? null : runOf(rows[0]);
      if (seen !== null) {
        const decided = decide(seen, NO_OTHERS);
        if (refused(decided) || !decided.isWritten) return { result: decided, changes: [] };
      }
      await sql`SELECT id FROM balances WHERE id = ${balance} FOR UPDATE`;
      const runs = (await sql<RunRow[]>`SELECT * FROM runs WHERE balance_id = ${balance}`).map(runOf);
      const decided = decide(runs.find((run) => run.name === name) ?? null, othersOf(runs));
      if (refused(decided) || !decided.isWritten) return { result: decided, changes: [] };
      const { startedAt, usedAt, cap, calls } = decided.run;
      await sql`DELETE FROM runs WHERE balance_id = ${balance} AND name = ${decided.ends}`;
      await sql`INSERT INTO runs (balance_id, name, started_at, used_at, cap, calls)
        VALUES (${balance}, ${name}, ${startedAt}, ${usedAt}, ${cap}, ${calls})
        ON CONFLICT (balance_id, name) DO UPDATE SET started_at = excluded.started_at, used_at = excluded.used_at,
          cap = excluded.cap, calls = excluded.calls`;
      return { result: decided, changes: decided.isTighter ? [changeOfRun(balance, decided.run)] : [] };
    });
  }

  async suspend({ subject, reason, lifted, at, by, note }: SuspensionRecord): Promise<Suspended | null> {
    return this.change<Suspended | null>(async (sql) => {
      // Two decisions about the same subject wait for each other.
      const accounts = await sql`SELECT id FROM accounts WHERE id = ${subject} FOR UPDATE`;
      const balances = await sql`SELECT id FROM balances WHERE id = ${subject} FOR UPDATE`;
      if (accounts.length + balances.length === 0) return { result: null, changes: [] };
      if (reason === null)
        await sql`DELETE FROM suspension_reasons
          WHERE subject = ${subject} AND (${lifted}::text IS NULL OR reason = ${lifted})`;
      else
        await sql`INSERT INTO suspension_reasons (subject, reason) VALUES (${subject}, ${reason})
          ON CONFLICT DO NOTHING`;
      const [gravest] = await sql<{ reason: SuspensionReason }[]>`
        SELECT reason FROM suspension_reasons WHERE subject = ${subject} ${sql.unsafe(GRAVEST_FIRST)} LIMIT 1`;
      const suspended = gravest?.reason ?? null;
      await sql`UPDATE accounts SET suspended = ${suspended} WHERE id = ${subject}`;
      await sql`UPDATE balances SET suspended = ${suspended} WHERE id = ${subject}`;
      await sql`INSERT INTO suspensions (at, subject, reason, lifted, by_whom, note)
        VALUES (${at}, ${subject}, ${reason}, ${lifted}, ${by}, ${note})`;
      const rows = await sql<{ id: BalanceId }[]>`
        SELECT id FROM balances WHERE id = ${subject} OR account_id = ${subject} ORDER BY attached_at, id`;
      const ids = rows.map(({ id }) => id);
      return {
        result: { balances: ids, suspended },
        changes: ids.map(changeOfBalance),
      };
    });
  }

  async secretsSaved(balance: BalanceId, at: EpochMs): Promise<EpochMs> {
    return this.change(async (sql) => {
      const [row] = await sql<{ secrets_saved_at: string }[]>`UPDATE balances
        SET secrets_saved_at = coalesce(secrets_saved_at, ${at}) WHERE id = ${balance} RETURNING secrets_saved_at`;
      return { result: Number(row!.secrets_saved_at) as EpochMs, changes: [changeOfBalance(balance)] };
    });
  }

  async suspensions(subject: string, limit: number): Promise<SuspensionRecord[]> {
    const rows = await this.postgres.query<SuspensionRow>(
      (sql) => sql`SELECT * FROM suspensions WHERE subject = ${subject} ORDER BY seq DESC LIMIT ${limit}`,
    );
    return rows.map(({ reason, lifted, at, by_whom, note }) => ({
      subject,
      reason,
      lifted,
      at: Number(at) as EpochMs,
      by: by_whom,
      note,
    }));
  }

  async removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedUnused> {
    const rows = await this.postgres.query<SweptRow>(
      (sql) => sql`SELECT id, created_at, ${unusedBalance(sql, before)} AS unused,
          ${hasFewEnds(sql)} AND EXISTS (SELECT 1 FROM keys k WHERE balance_id = b.id AND ${unusedKey(sql, before)}) AS has_unused
        FROM balances b WHERE created_at < ${before}
          AND (created_at, id) > (${from.createdAt}, ${from.id}) ORDER BY created_at, id LIMIT ${SWEPT_AT_ONCE}`,
    );
    const last = rows.at(-1);
    const next =
      rows.length < SWEPT_AT_ONCE || last === undefined
        ? null
        : { createdAt: Number(last.created_at) as EpochMs, id: last.id };
    const found = rows.filter((row) => row.unused || row.has_unused).map(({ id }) => id);
    if (found.length === 0) return { balances: [], keys: [], next };
    const removed = await this.change<Omit<RemovedUnused, "next">>(async (sql) => {
      // Whoever credits one of them holds its row until the credit can be seen by the statements after this one.
      const locked = await sql<{ id: BalanceId; account_id: AccountId | null }[]>`
        SELECT id, account_id FROM balances
        WHERE id IN (SELECT value FROM json_array_elements_text(${JSON.stringify(found)}::text::json)) ORDER BY id FOR UPDATE`;
      const served = await this.servedElsewhere(sql, locked);
      const idle = locked.map(({ id }) => id).filter((id) => !here.isInUse(id) && !served.has(id));
      const unused = await sql<{ id: BalanceId }[]>`
        SELECT id FROM balances b WHERE id IN (SELECT value FROM json_array_elements_text(${JSON.stringify(idle)}::text::json))
          AND ${unusedBalance(sql, before)}`;
      const balances = unused.map(({ id }) => id);
      const gone = JSON.stringify(balances);
      const kept = JSON.stringify(idle.filter((id) => !balances.includes(id)));
      const keys = await sql<KeyRow<string>[]>`
        DELETE FROM keys k WHERE balance_id IN (SELECT value FROM json_array_elements_text(${gone}::text::json))
          OR (balance_id IN (SELECT value FROM json_array_elements_text(${kept}::text::json)) AND ${unusedKey(sql, before)}
            AND (SELECT ${hasFewEnds(sql)} FROM balances b WHERE id = k.balance_id))
        RETURNING *`;
      await sql`DELETE FROM budgets WHERE balance_id IN (SELECT value FROM json_array_elements_text(${gone}::text::json))`;
      await sql`DELETE FROM runs WHERE balance_id IN (SELECT value FROM json_array_elements_text(${gone}::text::json))`;
      await sql`DELETE FROM balances WHERE id IN (SELECT value FROM json_array_elements_text(${gone}::text::json))`;
      here.forget(keys, balances);
      const changes = keys.map((row) => changeOfKey(keyFromRow(row)));
      return { result: { balances, keys }, changes };
    });
    return { ...removed, next };
  }

  /**
   * Those that some node may be serving, whose ends are not here yet: it was granted what their requests hold as
   * long as they are open, of the balance or, for free ones, of an allowance; or of a rate within the last minute.
   */
  private async servedElsewhere(
    sql: TransactionSQL,
    balances: readonly { readonly id: BalanceId; readonly account_id: AccountId | null }[],
  ): Promise<Set<BalanceId>> {
    const now = this.clock.now();
    const counters = balances.flatMap(({ id, account_id }) => {
      const days = [now, (now - DAY_MS) as EpochMs];
      const allowances = days.map((at) => allowanceCounter(account_id ?? id, at));
      return [balanceCounter(id), ...allowances].map((counter) => ({ id, counter }));
    });
    const rows = await sql<{ id: BalanceId }[]>`
      WITH asked AS (SELECT * FROM json_to_recordset(${JSON.stringify(counters)}::text::json) AS row (id TEXT, counter TEXT)
        UNION ALL SELECT balance_id, kind || lineage FROM keys, unnest(ARRAY['rpm:', 'tpm:', 'free_rpm:']) AS kind
          WHERE balance_id IN (SELECT value FROM json_array_elements_text(${JSON.stringify(balances.map(({ id }) => id))}::text::json)))
      SELECT DISTINCT asked.id FROM asked JOIN grants ON grants.counter = asked.counter WHERE granted > shipped`;
    return new Set(rows.map(({ id }) => id));
  }

  /**
   * Writes the change and its notice in one transaction, and resolves when no node acts on what was before
   * it.
   */
  private async change<Result>(
    write: (sql: TransactionSQL) => Promise<{ result: Result; changes: NotedChange[] }>,
  ): Promise<Result> {
    const { result, version } = await this.postgres.transaction(async (sql) => {
      const { result, changes } = await write(sql);
      return {
        result,
        version: changes.length === 0 ? null : await noteChanges(this.postgres, sql, changes),
      };
    });
    if (version !== null) await this.acknowledged(version);
    return result;
  }

  private async recentKeys(sql: TransactionSQL, balance: BalanceId): Promise<number> {
    const [row] = await sql<{ recent: string }[]>`SELECT count(*) AS recent FROM keys
      WHERE balance_id = ${balance} AND created_at > ${this.clock.now() - RECENT_MS}`;
    return Number(row!.recent);
  }

  private async liveKeys(sql: TransactionSQL, balance: BalanceId, lineage: KeyId | null): Promise<number> {
    const [row] = await sql<{ live: string }[]>`SELECT count(*) AS live FROM keys
      WHERE balance_id = ${balance} AND (${lineage}::text IS NULL OR lineage = ${lineage})
        AND ${live(sql, this.clock.now())}`;
    return Number(row!.live);
  }
}

/** Whether balance `b` was never used. */
const unusedBalance = (sql: SQL, before: EpochMs) => sql`(
  account_id IS NULL AND suspended IS NULL AND undo_hash IS NULL AND claimed_at IS NULL AND closed_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM ends WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM keys WHERE balance_id = b.id AND created_at >= ${before})
  AND NOT EXISTS (SELECT 1 FROM credits WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM folded WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM claims WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM low_credit WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM payments WHERE balance_id = b.id)
  AND NOT EXISTS (SELECT 1 FROM suspensions WHERE subject = b.id))`;

/** Whether key `k` has ended without a request. */
const unusedKey = (sql: SQL, before: EpochMs) => sql`(
  k.created_at < ${before} AND (k.state = 'revoked' OR k.expires_at < ${before})
  AND NOT EXISTS (SELECT 1 FROM ends WHERE balance_id = k.balance_id AND key_id = k.id))`;

/** Whether the ends of balance `b` are few enough to look for each key among them. */
const hasFewEnds = (sql: SQL) => sql`(
  (SELECT count(*) FROM (SELECT 1 FROM ends WHERE balance_id = b.id LIMIT ${MOST_ENDS_LOOKED_AT + 1}) AS few)
    <= ${MOST_ENDS_LOOKED_AT})`;

const DAY_MS = 86_400_000;

async function lockWithBudgets(sql: TransactionSQL, id: BalanceId): Promise<BalanceWithBudgets> {
  await sql`SELECT id FROM balances WHERE id = ${id} FOR UPDATE`;
  const withBudgets = await readWithBudgets(sql, id);
  assert(withBudgets !== null, `change on ${id}, which does not exist`);
  return withBudgets;
}

async function readWithBudgets(sql: TransactionSQL, id: BalanceId): Promise<BalanceWithBudgets | null> {
  const [row] = await sql<
    BalanceRow<string>[]
  >`SELECT ${columns(sql)} FROM ${balancesOf(sql)} WHERE b.id = ${id}`;
  if (row === undefined) return null;
  const budgets = await sql<
    PostgresBudgetRow[]
  >`SELECT * FROM budgets WHERE balance_id = ${id} ORDER BY name`;
  return { balance: balanceFromRow(row), budgets: budgets.map(budgetOf) };
}

/** An account's suspension is that of all its balances, beside those of their own. */
const columns = (sql: SQL) =>
  sql`b.id, b.account_id, coalesce(b.suspended, a.suspended) AS suspended, b.created_at, b.setup_key, b.secrets_saved_at, b.closed_at`;
const balancesOf = (sql: SQL) => sql`balances b LEFT JOIN accounts a ON a.id = b.account_id`;

/** Neither revoked nor expired. */
const live = (sql: SQL, now: EpochMs) =>
  sql`state <> 'revoked' AND (expires_at IS NULL OR expires_at > ${now})`;

async function insertKey(sql: TransactionSQL, key: Key): Promise<void> {
  const { id, hash, prefix, balanceId, rotationId: lineage, madeBy, createdAt } = key;
  await sql`INSERT INTO keys ${sql({
    id,
    hash,
    prefix,
    balance_id: balanceId,
    lineage,
    made_by: madeBy,
    created_at: createdAt,
    ...changeable(key),
  })}`;
}

async function updateKey(sql: TransactionSQL, key: Key): Promise<void> {
  await sql`UPDATE keys SET ${sql(changeable(key))} WHERE id = ${key.id}`;
}

async function endSiblings(sql: TransactionSQL, { id, balanceId, rotationId: lineage }: Key): Promise<Key[]> {
  const rows = await sql<KeyRow<string>[]>`UPDATE keys SET state = 'revoked'
    WHERE balance_id = ${balanceId} AND lineage = ${lineage} AND id <> ${id} AND state <> 'revoked' RETURNING *`;
  return rows.map(keyFromRow);
}

/** Columns that a key's life changes. */
const changeable = (key: Key) => ({
  name: key.name,
  state: key.state,
  expires_at: key.expiresAt,
  rpm_limit: key.rpmLimit,
  tpm_limit: key.tpmLimit,
  daily_limit: key.dailyLimit,
  monthly_limit: key.monthlyLimit,
  allowed_models: key.allowedModels === null ? null : JSON.stringify(key.allowedModels),
  budgets: JSON.stringify(key.budgets),
});

function countUses(lists: readonly (readonly string[])[]): Map<string, number> {
  const uses = new Map<string, number>();
  for (const name of lists.flat()) uses.set(name, (uses.get(name) ?? 0) + 1);
  return uses;
}

interface SuspensionRow {
  readonly reason: SuspensionReason | null;
  readonly at: string;
  readonly lifted: SuspensionReason | null;
  readonly by_whom: string;
  readonly note: string | null;
}

interface SweptRow {
  readonly unused: boolean;
  readonly has_unused: boolean;
  readonly id: BalanceId;
  readonly created_at: string;
}

interface PostgresBudgetRow {
  readonly id: BudgetId;
  readonly balance_id: BalanceId;
  readonly name: string;
  readonly cap: string;
  readonly period: WindowKind;
}

const budgetOf = (row: PostgresBudgetRow): Budget => ({
  id: row.id,
  balanceId: row.balance_id,
  name: row.name,
  cap: Number(row.cap) as NanoUsd,
  window: row.period,
});

type RunRow = Record<"name" | "started_at" | "used_at", string> & Record<"cap" | "calls", string | null>;

const runOf = ({ name, started_at, used_at, cap, calls }: RunRow): StoredRun => ({
  name,
  cap: cap === null ? null : (Number(cap) as NanoUsd),
  calls: calls === null ? null : Number(calls),
  startedAt: Number(started_at) as EpochMs,
  usedAt: Number(used_at) as EpochMs,
});
