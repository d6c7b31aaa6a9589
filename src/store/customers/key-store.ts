import { eventOf, type RecordedEvent } from "../../customers/events/event.ts";
import type { Balance, Budget, Key } from "../../customers/keys/key.ts";
import {
  type BalanceCursor,
  type BalanceWithBudgets,
  type BudgetDrop,
  type BudgetPut,
  type ChangedKey,
  type InUseHere,
  type KeyDecision,
  type KeyFilter,
  type KeyStore,
  type NewKeyDecision,
  RECENT_MS,
  type RecentKeys,
  type RemovedUnused,
  type Suspended,
  type SuspensionRecord,
} from "../../customers/keys/key-store.ts";
import type { RunChange, RunDecision, RunRevision, StoredRun } from "../../customers/keys/run.ts";
import { assert } from "../../units/assert.ts";
import { type Clock, type EpochMs, isoTime } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { WebhookEventKind } from "../../units/event-kinds.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import {
  assigned,
  behind,
  type CommitStatement,
  changes,
  changesOne,
  type Database,
  inserted,
  type SqlPart,
  sql,
  touch,
  type VersionedRow,
  verbatim,
} from "../database/database.ts";
import { changeOfBalance, changeOfBudget, changeOfKey, changeOfRun } from "../nodes/changes.ts";
import { ROTATION_ID } from "../schema/columns.ts";
import { logging } from "./change-log.ts";
import { recording } from "./events.ts";
import { BALANCE, type BalanceRow, balanceFromRow, changeable, KEY, revokedFromRow } from "./key-rows.ts";
import { loggingBalance, loggingBudget, loggingKey, loggingNewKey, loggingRun } from "./logged-fields.ts";
import { changeRun, updatingRun, versionedRun } from "./runs.ts";
import { suspend, suspensionsOf } from "./suspensions.ts";
import { removeUnusedKeys } from "./unused-keys.ts";

/**
 * Keys, balances and budgets. A change has its balance to itself, so `decide` sees what it changes, and two changes of
 * one balance follow each other.
 */
export class SqlKeyStore implements KeyStore {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, "now">,
  ) {}

  removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedUnused> {
    return removeUnusedKeys(this.db, this.clock.now(), before, from, here);
  }

  async keyByHash(hash: SecretHash): Promise<Key | null> {
    return firstKey(await this.db.read<object>`SELECT ${KEY} FROM keys WHERE hash = ${hash}`);
  }

  async keyById(id: KeyId): Promise<Key | null> {
    return firstKey(await this.db.read<object>`SELECT ${KEY} FROM keys WHERE id = ${id}`);
  }

  async balanceByRecovery(hash: SecretHash): Promise<Balance | null> {
    const [row] = await this.db.read<BalanceRow>`
      SELECT ${BALANCE} FROM ${BALANCES} WHERE b.recovery_hash = ${hash}`;
    return row === undefined ? null : balanceFromRow(row);
  }

  async balances(limit: number, before: BalanceId | null): Promise<{ balance: Balance; liveKeys: number }[]> {
    const rows = await this.db.read<BalanceRow & { liveKeys: number }>`
      SELECT ${BALANCE}, (SELECT count(*) FROM keys WHERE balance_id = b.id AND ${live(this.clock.now())}) AS "liveKeys"
      FROM ${BALANCES} WHERE (b.created_at, b.id) < (${behind("balances", before)})
      ORDER BY b.created_at DESC, b.id DESC LIMIT ${limit}`;
    return rows.map(({ liveKeys, ...row }) => ({ balance: balanceFromRow(row), liveKeys }));
  }

  async activeSuccessor(id: KeyId): Promise<Key | null> {
    return firstKey(
      await this.db.read<object>`
        SELECT ${KEY} FROM keys WHERE state = 'active'
          AND (balance_id, ${verbatim(ROTATION_ID)}) IN (SELECT balance_id, ${verbatim(ROTATION_ID)} FROM keys WHERE id = ${id} AND state = 'rotated')`,
    );
  }

  async balanceWithBudgets(id: BalanceId): Promise<BalanceWithBudgets | null> {
    const found = await this.find(id);
    return found === null ? null : { balance: found.balance, budgets: await this.budgetsOf(id) };
  }

  async keysOf(
    balances: readonly BalanceId[],
    limit: number,
    before: KeyId | null,
    { search, state, ids }: KeyFilter = EVERY_KEY,
  ): Promise<Key[]> {
    const works = live(this.clock.now());
    const text = `%${search?.toLowerCase().replace(/[\\%_]/g, "\\$&")}%`;
    const rows = await this.db.read<object>`
      SELECT ${KEY} FROM keys WHERE balance_id IN ${this.db.among(balances)} AND (created_at, id) < (${behind("keys", before)})
        AND ${search === null ? sql`TRUE` : sql`lower(coalesce(name, '') || ' ' || prefix || ' ' || id) LIKE ${text} ESCAPE '\\'`}
        AND ${state === null ? sql`TRUE` : state === "active" ? sql`(${works})` : sql`NOT (${works})`}
        AND ${ids === null ? sql`TRUE` : sql`id IN ${this.db.among(ids)}`}
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
    return rows.map(KEY.read);
  }

  async liveKeysOf(balance: BalanceId, limit: number): Promise<Key[]> {
    const rows = await this.db.read<object>`
      SELECT ${KEY} FROM keys WHERE balance_id = ${balance} AND ${live(this.clock.now())}
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
    return rows.map(KEY.read);
  }

  async addBalance(balance: Balance, key: Key): Promise<void> {
    const { id, accountId, suspended, createdAt, setUpKey, recovery, priceList } = balance;
    const after = { key_id: key.id, ...(priceList === null ? {} : { price_list: priceList }) };
    const added = await this.db.commit([
      sql`INSERT INTO balances (id, account_id, suspended, recovery_hash, created_at, setup_key, price_list)
        VALUES (${id}, ${accountId}, ${suspended}, ${recovery}, ${createdAt}, ${setUpKey}, ${priceList})`,
      insertKey(key),
      recording(this.db, [keyEvent("key.created", key, createdAt)]),
      logging({ action: "balance.created", subject: id, balance: id, before: {}, after }),
      loggingNewKey(key),
    ]);
    assert(added !== null, `${id} or ${key.id} exists already`);
  }

  addKey(balance: BalanceId, decide: NewKeyDecision): Promise<Key | Refusal> {
    const now = this.clock.now();
    return this.db.change<Key | Refusal>(balance, async () => {
      const present = await this.withBudgets(balance);
      const { decided, most } = await this.decidedByKeys(present.row, now, (liveKeys, recentKeys) =>
        decide(present, liveKeys, recentKeys),
      );
      if (refused(decided)) return { result: decided };
      // Nobody can have remembered a key that was not there: no node needs a notification.
      return {
        result: decided,
        statements: [
          touchWithKeys(present.row, most + 1),
          insertKey(decided),
          recording(this.db, [keyEvent("key.created", decided, now)]),
          loggingNewKey(decided),
        ],
      };
    });
  }

  async changeKey(id: KeyId, decide: KeyDecision): Promise<ChangedKey | Refusal> {
    const now = this.clock.now();
    const { balanceId, rotationId } = await this.presentKey(id);
    return this.db.change<ChangedKey | Refusal>(balanceId, async () => {
      const present = await this.withBudgets(balanceId);
      const siblings = await this.countKeys(
        balanceId,
        sql`${verbatim(ROTATION_ID)} = ${rotationId} AND ${live(now)}`,
      );
      const before = await this.presentKey(id);
      const { decided, most } = await this.decidedByKeys(present.row, now, (_, recentKeys) =>
        decide(before, present, siblings, recentKeys),
      );
      if (refused(decided)) return { result: decided };
      const others = sql`balance_id = ${balanceId} AND ${verbatim(ROTATION_ID)} = ${rotationId} AND id <> ${id} AND state <> 'revoked'`;
      const ended = decided.endsSiblings
        ? (await this.db.read<object>`SELECT ${KEY} FROM keys WHERE ${others}`).map(revokedFromRow)
        : [];
      return {
        result: { ...decided, ended },
        statements: [
          touchWithKeys(present.row, most + (decided.successor ? 1 : 0)),
          changesOne(sql`UPDATE keys SET ${assigned(changeable(decided.key))} WHERE id = ${decided.key.id}`),
          decided.endsSiblings &&
            changes(ended.length, sql`UPDATE keys SET state = 'revoked' WHERE ${others}`),
          decided.successor && insertKey(decided.successor),
          recording(this.db, changedKeyEvents(before, { ...decided, ended }, now)),
          loggingKey(before, { ...decided, ended }),
        ],
        changes: [decided.key, ...ended].map(changeOfKey),
      };
    });
  }

  putBudget(balance: BalanceId, name: string, most: number, decide: BudgetPut): Promise<Budget | Refusal> {
    return this.db.change<Budget | Refusal>(balance, async () => {
      const present = await this.withBudgets(balance);
      const known = present.budgets.find((budget) => budget.name === name) ?? null;
      const isFull = known === null && present.budgets.length >= most;
      const decided = decide({ balance: present.balance, known, isFull });
      if (refused(decided)) return { result: decided };
      const { id, cap, window, perTag = null } = decided;
      return {
        result: decided,
        statements: [
          touch("balances", present.row),
          sql`INSERT INTO budgets (id, balance_id, name, cap, period, per)
            VALUES (${id}, ${balance}, ${decided.name}, ${cap}, ${window}, ${perTag})
            ON CONFLICT (id) DO UPDATE SET cap = excluded.cap, period = excluded.period`,
          loggingBudget(known, decided),
        ],
        changes: [changeOfBudget(balance, id)],
      };
    });
  }

  dropBudget(balance: BalanceId, name: string, decide: BudgetDrop): Promise<Budget | Refusal> {
    const now = this.clock.now();
    return this.db.change<Budget | Refusal>(balance, async () => {
      const present = await this.withBudgets(balance);
      const known = present.budgets.find((budget) => budget.name === name) ?? null;
      const uses = await this.db.read<{
        budgets: string;
      }>`SELECT budgets FROM keys WHERE balance_id = ${balance}
        AND budgets <> '[]' AND ${live(now)}`;
      const drawnFrom = uses.filter(({ budgets }) => JSON.parse(budgets).includes(name)).length;
      const decided = decide({ balance: present.balance, known, drawnFrom });
      if (refused(decided)) return { result: decided };
      return {
        result: decided,
        statements: [
          touch("balances", present.row),
          sql`DELETE FROM budgets WHERE id = ${decided.id}`,
          loggingBudget(decided, null),
        ],
        changes: [changeOfBudget(balance, decided.id)],
      };
    });
  }

  async run(balance: BalanceId, name: string): Promise<StoredRun | null> {
    return (await versionedRun(this.db, balance, name))?.run ?? null;
  }

  changeRun(
    balance: BalanceId,
    name: string,
    most: number,
    decide: RunDecision,
  ): Promise<RunChange | Refusal> {
    return changeRun(this.db, balance, name, most, decide);
  }

  reviseRun(balance: BalanceId, name: string, decide: RunRevision): Promise<StoredRun | Refusal> {
    return this.db.change<StoredRun | Refusal>(`${balance}/${name}`, async () => {
      const owned = await this.present(balance);
      const known = await versionedRun(this.db, balance, name);
      const decided = decide(known?.run ?? null, owned.balance);
      if (refused(decided)) return { result: decided };
      return {
        result: decided,
        statements: [
          touch("balances", owned.row),
          updatingRun(balance, decided, known!.version),
          loggingRun(owned.balance, known!.run, decided),
        ],
        changes: [changeOfRun(balance, decided)],
      };
    });
  }

  suspend(suspension: SuspensionRecord): Promise<Suspended | null> {
    return suspend(this.db, suspension);
  }

  suspensions(subject: string, limit: number): Promise<SuspensionRecord[]> {
    return suspensionsOf(this.db, subject, limit);
  }

  secretsSaved(balance: BalanceId, at: EpochMs): Promise<EpochMs> {
    return this.db.change<EpochMs>(balance, async () => {
      const { balance: present, row } = await this.present(balance);
      if (present.secretsSavedAt !== null) return { result: present.secretsSavedAt };
      const after = { secrets_saved_at: isoTime(at) };
      return {
        result: at,
        statements: [
          touch("balances", row),
          sql`UPDATE balances SET secrets_saved_at = ${at} WHERE id = ${balance}`,
          logging({ action: "balance.saved", subject: balance, balance, before: {}, after }),
        ],
        changes: [changeOfBalance(balance)],
      };
    });
  }

  changeBalance(
    id: BalanceId,
    decide: (balance: Balance) => Balance | Refusal,
  ): Promise<Balance | Refusal | null> {
    return this.db.change<Balance | Refusal | null>(id, async () => {
      const found = await this.find(id);
      const decided = found === null ? null : decide(found.balance);
      if (found === null || decided === null || refused(decided)) return { result: decided };
      const { priceList, lowCredit } = decided;
      return {
        result: decided,
        statements: [
          touch("balances", found.row),
          sql`UPDATE balances SET price_list = ${priceList}, low_credit = ${lowCredit} WHERE id = ${id}`,
          loggingBalance(found.balance, decided),
        ],
        changes: [changeOfBalance(id)],
      };
    });
  }

  private async presentKey(id: KeyId): Promise<Key> {
    const key = await this.keyById(id);
    assert(key !== null, `change of ${id}, which does not exist`);
    return key;
  }

  private async find(id: BalanceId): Promise<{ balance: Balance; row: VersionedRow } | null> {
    const [found] = await this.db.read<BalanceRow & VersionedRow>`
      SELECT ${BALANCE}, b.version FROM ${BALANCES} WHERE b.id = ${id}`;
    if (found === undefined) return null;
    const { version, ...row } = found;
    return { balance: balanceFromRow(row), row: { id, version } };
  }

  private async present(id: BalanceId): Promise<{ balance: Balance; row: VersionedRow }> {
    const found = await this.find(id);
    assert(found !== null, `change on ${id}, which does not exist`);
    return found;
  }

  private async withBudgets(id: BalanceId): Promise<BalanceWithBudgets & { readonly row: VersionedRow }> {
    return { ...(await this.present(id)), budgets: await this.budgetsOf(id) };
  }

  private budgetsOf(balance: BalanceId): Promise<Budget[]> {
    return this.db
      .read<Budget>`SELECT id, balance_id AS "balanceId", name, cap, period AS "window", per AS "perTag"
      FROM budgets WHERE balance_id = ${balance} ORDER BY name`;
  }

  /** By what the balance has at most; its keys, which may be thousands, are counted only where that is too many. */
  private async decidedByKeys<Decision>(
    { id, version }: VersionedRow,
    now: EpochMs,
    decide: (liveKeys: number, recentKeys: RecentKeys) => Decision | Refusal,
  ): Promise<{ readonly decided: Decision | Refusal; readonly most: number }> {
    const [known] = await this.db.read<{ most: number }>`
      SELECT max_keys AS most FROM balances WHERE id = ${id} AND max_keys_version = ${version}`;
    if (known !== undefined) {
      const { most } = known;
      const decided = decide(most, { ofSetUp: most, ofClaims: most });
      if (!refused(decided)) return { decided, most };
    }
    const balance = id as BalanceId;
    const liveKeys = await this.countKeys(balance, live(now));
    const recentKeys = await this.recentKeys(balance, now);
    const { ofSetUp, ofClaims } = recentKeys;
    return { decided: decide(liveKeys, recentKeys), most: Math.max(liveKeys, ofSetUp, ofClaims) };
  }

  private async recentKeys(balance: BalanceId, now: EpochMs): Promise<RecentKeys> {
    const recent = sql`created_at > ${now - RECENT_MS}`;
    return {
      ofSetUp: await this.countKeys(balance, sql`root = 0 AND ${recent}`),
      ofClaims: await this.countKeys(balance, sql`root > 0 AND ${recent}`),
    };
  }

  private async countKeys(balance: BalanceId, where: SqlPart): Promise<number> {
    const [row] = await this.db.read<{ count: number }>`
      SELECT count(*) AS count FROM keys WHERE balance_id = ${balance} AND ${where}`;
    return row!.count;
  }
}

/** Another change of the balance than one of its keys leaves the number behind, which then says nothing any more. */
const touchWithKeys = ({ id, version }: VersionedRow, most: number): CommitStatement =>
  changesOne(sql`UPDATE balances SET version = version + 1, max_keys = ${most}, max_keys_version = version + 1
    WHERE id = ${id} AND version = ${version}`);

const keyEvent = (
  kind: WebhookEventKind,
  { id, balanceId, name }: Key,
  at: EpochMs,
  more: object = {},
): RecordedEvent => eventOf(kind, id, { at, balance: balanceId, key_id: id, name, ...more });

/** A key is revoked once and rotated once: its id tells the event. */
function changedKeyEvents(before: Key, { key, successor, ended }: ChangedKey, at: EpochMs): RecordedEvent[] {
  const revoked = key.state === "revoked" && before.state !== "revoked" ? [key, ...ended] : ended;
  return [
    ...(successor ? [keyEvent("key.rotated", key, at, { new_key_id: successor.id })] : []),
    ...revoked.map((one) => keyEvent("key.revoked", one, at)),
  ];
}

const insertKey = (key: Key): CommitStatement => changesOne(sql`INSERT INTO keys ${inserted(KEY.row(key))}`);

const BALANCES = sql`balances b LEFT JOIN accounts a ON a.id = b.account_id`;

const EVERY_KEY: KeyFilter = { search: null, state: null, ids: null };

/** Neither revoked nor expired. */
const live = (now: EpochMs) => sql`state <> 'revoked' AND (expires_at IS NULL OR expires_at > ${now})`;

const firstKey = ([row]: readonly object[]): Key | null => (row === undefined ? null : KEY.read(row));
