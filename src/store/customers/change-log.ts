import type {
  ChangedFields,
  ChangeEntry,
  ChangeFilter,
  ChangeId,
  ChangeLog,
  ChangeScope,
  LoggedChange,
} from "../../customers/changes/change.ts";
import { type ChangeStamp, changeStamp } from "../../customers/changes/origin.ts";
import type { EpochMs } from "../../units/clock.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import {
  type Batch,
  changesOne,
  type Database,
  finds,
  inserted,
  type SqlPart,
  sql,
} from "../database/database.ts";

/**
 * The change's row of the log, in the transaction of the change. None where nobody asks for it: what the gateway does by
 * itself is in the books and the events.
 */
export function logging(change: ChangeEntry, stamp: ChangeStamp | null = changeStamp()): Batch {
  const by = stamp?.by ?? change.by;
  if (stamp === null || by === undefined) return [];
  const { action, subject, balance, before, after } = change;
  return [
    changesOne(
      sql`INSERT INTO change_log ${inserted({
        id: stamp.id,
        created_at: stamp.at,
        by_kind: by.kind,
        by_id: by.id,
        by_name: by.name,
        action,
        subject,
        balance_id: balance,
        was: JSON.stringify(before),
        became: JSON.stringify(after),
        network: stamp.network,
        request: stamp.request,
      })}`,
    ),
  ];
}

/** The same of what is another than before; none where nothing is. */
export function loggingDifference(change: ChangeEntry): Batch {
  const names = Object.keys({ ...change.before, ...change.after });
  const isSame = (name: string): boolean => textOf(change.before[name]) === textOf(change.after[name]);
  const differing = names.filter((name) => !isSame(name));
  if (differing.length === 0) return [];
  const picked = (fields: ChangedFields): ChangedFields =>
    Object.fromEntries(differing.map((name) => [name, fields[name] ?? null]));
  return logging({ ...change, before: picked(change.before), after: picked(change.after) });
}

const textOf = (value: unknown): string => JSON.stringify(value ?? null);

export class SqlChangeLog implements ChangeLog {
  constructor(private readonly db: Database) {}

  async append(change: ChangeEntry, name?: string): Promise<void> {
    const stamp = changeStamp();
    if (stamp === null || name === undefined) {
      await this.db.commit(logging(change, stamp));
      return;
    }
    const idIn = (span: number): ChangeId =>
      `chg_${hashSecret(`${change.action} ${name} ${span}`).slice(0, NAMED_DIGITS)}`;
    const span = Math.floor(stamp.at / TOGETHER_MS);
    // A conflict where another process was first.
    await this.db.commit([
      finds(0, sql`SELECT 1 FROM change_log WHERE id = ${idIn(span - 1)}`),
      logging(change, { ...stamp, id: idIn(span) }),
    ]);
  }

  async list(
    scope: ChangeScope | null,
    { since, until, by, action, subject }: ChangeFilter,
    limit: number,
    before: string | null,
  ): Promise<readonly LoggedChange[]> {
    const rows = await this.db
      .read<ChangeLogRow>`SELECT id, created_at AS at, by_kind AS kind, by_id AS "byId",
        by_name AS "byName", action, subject, balance_id AS balance, was, became, network, request FROM change_log
      WHERE (created_at, seq) < (${behindRow(before)}) AND ${scope === null ? sql`TRUE` : this.within(scope)}
        ${since === null ? sql`` : sql`AND created_at >= ${since}`} ${until === null ? sql`` : sql`AND created_at < ${until}`}
        ${by === null ? sql`` : sql`AND by_id = ${by}`} ${action === null ? sql`` : sql`AND action = ${action}`}
        ${subject === null ? sql`` : sql`AND subject = ${subject}`}
      ORDER BY created_at DESC, seq DESC LIMIT ${limit}`;
    return rows.map(({ kind, byId, byName, was, became, ...row }) => ({
      ...row,
      by: { kind, id: byId, name: byName },
      before: JSON.parse(was),
      after: JSON.parse(became),
    }));
  }

  async forget(before: EpochMs): Promise<number> {
    const rows = await this.db.commit([
      sql`DELETE FROM change_log WHERE id IN
        (SELECT id FROM change_log WHERE created_at < ${before} ORDER BY created_at, id LIMIT ${FORGOTTEN_AT_ONCE})`,
    ]);
    return rows?.[0] ?? 0;
  }

  private within({ balances, account }: ChangeScope): SqlPart {
    const own = sql`balance_id IN ${this.db.among(balances)}`;
    return account === null ? own : sql`(${own} OR subject = ${account})`;
  }
}

/** In the order of their transactions, where rows are of one millisecond. From the start where there is no such row. */
const behindRow = (id: string | null): SqlPart =>
  sql`coalesce((SELECT created_at FROM change_log WHERE id = ${id}), ${Number.MAX_SAFE_INTEGER}),
    (SELECT seq FROM change_log WHERE id = ${id})`;

interface ChangeLogRow extends Omit<LoggedChange, "by" | "before" | "after"> {
  readonly kind: LoggedChange["by"]["kind"];
  readonly byId: string;
  readonly byName: string | null;
  readonly was: string;
  readonly became: string;
}

const FORGOTTEN_AT_ONCE = 256;
/** What processes do within so long because of one another is one change. */
const TOGETHER_MS = 10_000;
const NAMED_DIGITS = 32;
