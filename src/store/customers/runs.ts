import {
  NO_OTHERS,
  type OtherRuns,
  type RunChange,
  type RunDecision,
  type StoredRun,
} from "../../customers/keys/run.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { BalanceId } from "../../units/id.ts";
import {
  assigned,
  type CommitStatement,
  changesOne,
  type Database,
  inserted,
  sql,
} from "../database/database.ts";
import { changeOfRun } from "../nodes/changes.ts";
import { TableColumns } from "../schema/columns.ts";

export async function changeRun(
  db: Database,
  balance: BalanceId,
  name: string,
  most: number,
  decide: RunDecision,
): Promise<RunChange | Refusal> {
  const seen = (await versionedRun(db, balance, name))?.run ?? null;
  // One that is used as it is, as nearly always, waits for nobody.
  const unchanged = seen === null ? null : decide(seen, NO_OTHERS);
  if (unchanged !== null && (refused(unchanged) || !unchanged.isWritten)) return unchanged;
  return db.change<RunChange | Refusal>(`${balance}/${name}`, async () => {
    // The run's own row, and not its balance's: a fleet starts hundreds at once. If two start the same run, one
    // finds it there when it is decided again; and as many more than the most may start as commit in one moment.
    const known = await versionedRun(db, balance, name);
    const decided = decide(
      known?.run ?? null,
      known === null ? await otherRuns(db, balance, most) : NO_OTHERS,
    );
    if (refused(decided) || !decided.isWritten) return { result: decided };
    const { run, ends, hasNewLimits } = decided;
    return {
      result: decided,
      statements: [
        ...(ends === null ? [] : [sql`DELETE FROM runs WHERE balance_id = ${balance} AND name = ${ends}`]),
        known === null ? insertingRun(balance, run) : updatingRun(balance, run, known.version),
        // There was room for one more.
        known === null && ends === null ? leavingRoom(balance, run, most) : null,
      ],
      changes: hasNewLimits ? [changeOfRun(balance, run)] : [],
    };
  });
}

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

async function otherRuns(db: Database, balance: BalanceId, most: number): Promise<OtherRuns> {
  const [{ count } = { count: 0 }] = await db.read<{ count: number }>`
    SELECT count(*) AS count FROM runs WHERE balance_id = ${balance}`;
  if (count < most) return { most, quietest: null };
  const [quietest = null] = await db.read<NonNullable<OtherRuns["quietest"]>>`
    SELECT name, used_at AS "usedAt" FROM runs WHERE balance_id = ${balance} ORDER BY used_at, name LIMIT 1`;
  return { most, quietest };
}

const insertingRun = (balance: BalanceId, run: StoredRun): CommitStatement =>
  changesOne(sql`INSERT INTO runs ${inserted({ balance_id: balance, ...RUN.row(run) })}`);

/** A conflict where others that started since have filled the balance. */
const leavingRoom = (balance: BalanceId, { name }: StoredRun, most: number): CommitStatement =>
  changesOne(sql`UPDATE runs SET version = version WHERE balance_id = ${balance} AND name = ${name}
    AND (SELECT count(*) FROM runs WHERE balance_id = ${balance}) <= ${most}`);

export const updatingRun = (
  balance: BalanceId,
  { name, ...changed }: StoredRun,
  version: number,
): CommitStatement =>
  changesOne(sql`UPDATE runs SET ${assigned(RUN.row(changed))}, version = version + 1
    WHERE balance_id = ${balance} AND name = ${name} AND version = ${version}`);

const RUN = new TableColumns<StoredRun>("name cap calls startedAt startedBy usedAt revision");
