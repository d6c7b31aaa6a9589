import type { OtherRuns, StoredRun } from "../../customers/keys/run.ts";
import type { BalanceId } from "../../units/id.ts";
import {
  assigned,
  type CommitStatement,
  changesOne,
  type Database,
  inserted,
  sql,
} from "../database/database.ts";

export async function versionedRun(
  db: Database,
  balance: BalanceId,
  name: string,
): Promise<{ readonly run: StoredRun; readonly version: number } | null> {
  const [row] = await db.read<StoredRun & { readonly version: number }>`
    SELECT ${RUN}, version FROM runs WHERE balance_id = ${balance} AND name = ${name}`;
  if (row === undefined) return null;
  const { version, ...run } = row;
  return { run, version };
}

export async function otherRuns(db: Database, balance: BalanceId, most: number): Promise<OtherRuns> {
  const [{ count } = { count: 0 }] = await db.read<{ count: number }>`
    SELECT count(*) AS count FROM runs WHERE balance_id = ${balance}`;
  if (count < most) return { most, quietest: null };
  const [quietest = null] = await db.read<NonNullable<OtherRuns["quietest"]>>`
    SELECT name, used_at AS "usedAt" FROM runs WHERE balance_id = ${balance} ORDER BY used_at, name LIMIT 1`;
  return { most, quietest };
}

export const insertingRun = (balance: BalanceId, run: StoredRun): CommitStatement =>
  changesOne(sql`INSERT INTO runs ${inserted({ balance_id: balance, name: run.name, ...rowOfRun(run) })}`);

/** A conflict where others that started since have filled the balance. */
export const leavingRoom = (balance: BalanceId, { name }: StoredRun, most: number): CommitStatement =>
  changesOne(sql`UPDATE runs SET version = version WHERE balance_id = ${balance} AND name = ${name}
    AND (SELECT count(*) FROM runs WHERE balance_id = ${balance}) <= ${most}`);

export const updatingRun = (balance: BalanceId, run: StoredRun, version: number): CommitStatement =>
  changesOne(sql`UPDATE runs SET ${assigned(rowOfRun(run))}, version = version + 1
    WHERE balance_id = ${balance} AND name = ${run.name} AND version = ${version}`);

const rowOfRun = ({ startedAt, startedBy, usedAt, cap, calls, revision }: StoredRun) => ({
  started_at: startedAt,
  started_by: startedBy,
  used_at: usedAt,
  cap,
  calls,
  revision,
});

const RUN = sql`name, cap, calls, started_at AS "startedAt", started_by AS "startedBy", used_at AS "usedAt", revision`;
