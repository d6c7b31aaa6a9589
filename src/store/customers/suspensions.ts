import { BY_GATEWAY, type Suspended, type SuspensionRecord } from "../../customers/keys/key-store.ts";
import type { SuspensionReason } from "../../units/errors/suspension.ts";
import type { BalanceId } from "../../units/id.ts";
import {
  type Database,
  inserted,
  type SqlPart,
  sql,
  touch,
  type VersionedRow,
} from "../database/database.ts";
import { changeOfBalance } from "../nodes/changes.ts";
import { TableColumns } from "../schema/columns.ts";
import { loggingSuspension } from "./logged-fields.ts";

/** Suspends an account or a balance, or lifts that. Its reasons stand side by side; the gravest is shown. */
export function suspend(db: Database, suspension: SuspensionRecord): Promise<Suspended | null> {
  const { subject, reason, lifted, by } = suspension;
  return db.change<Suspended | null>(subject, async () => {
    const accounts = await db.read<VersionedRow>`SELECT id, version FROM accounts WHERE id = ${subject}`;
    const balances = await db.read<VersionedRow>`SELECT id, version FROM balances WHERE id = ${subject}`;
    if (accounts.length + balances.length === 0) return { result: null };
    const before = gravest(await reasons(db, subject));
    const suspended = gravest(await reasonsAfter(db, suspension));
    const standing = by === BY_GATEWAY ? byOperator(subject) : sql`false`;
    const rows = await db.read<{ id: BalanceId }>`
      SELECT id FROM balances WHERE id = ${subject} OR account_id = ${subject} ORDER BY attached_at, id`;
    const ids = rows.map(({ id }) => id);
    return {
      result: { balances: ids, suspended },
      statements: [
        accounts.map((row) => touch("accounts", row)),
        balances.map((row) => touch("balances", row)),
        reason === null
          ? sql`DELETE FROM suspension_reasons WHERE subject = ${subject}
              AND (CAST(${lifted} AS TEXT) IS NULL OR reason = ${lifted}) AND NOT ${standing}`
          : sql`INSERT INTO suspension_reasons (subject, reason) VALUES (${subject}, ${reason})
              ON CONFLICT DO NOTHING`,
        sql`UPDATE accounts SET suspended = ${suspended} WHERE id = ${subject}`,
        sql`UPDATE balances SET suspended = ${suspended} WHERE id = ${subject}`,
        sql`INSERT INTO suspensions ${inserted(SUSPENSION.row(suspension))}`,
        loggingSuspension(suspension, balances.length > 0, { before, after: suspended }),
      ],
      changes: ids.map(changeOfBalance),
    };
  });
}

export function suspensionsOf(db: Database, subject: string, limit: number): Promise<SuspensionRecord[]> {
  return db.read<SuspensionRecord>`
    SELECT ${SUSPENSION} FROM suspensions
    WHERE subject = ${subject} ORDER BY seq DESC LIMIT ${limit}`;
}

const SUSPENSION = new TableColumns<SuspensionRecord>("subject reason lifted at by note", { by: "by_whom" });

async function reasons(db: Database, subject: string): Promise<SuspensionReason[]> {
  const rows = await db.read<{ reason: SuspensionReason }>`
    SELECT reason FROM suspension_reasons WHERE subject = ${subject}`;
  return rows.map(({ reason }) => reason);
}

/** The reasons that stand once this suspension, or lifting, is recorded. */
async function reasonsAfter(
  db: Database,
  { subject, reason, lifted, by }: SuspensionRecord,
): Promise<SuspensionReason[]> {
  const standing = by === BY_GATEWAY ? byOperator(subject) : sql`false`;
  const rows = await db.read<{ reason: SuspensionReason; stands: boolean | 0 | 1 }>`
    SELECT reason, ${standing} AS stands FROM suspension_reasons WHERE subject = ${subject}`;
  if (reason !== null) return [...rows.map((row) => row.reason), reason];
  return rows.flatMap((row) =>
    row.stands || (lifted !== null && row.reason !== lifted) ? [row.reason] : [],
  );
}

/** Shows the gravest of several reasons. */
const gravest = (reasons: readonly SuspensionReason[]): SuspensionReason | null =>
  GRAVEST.find((reason) => reasons.includes(reason)) ?? null;

const GRAVEST: readonly SuspensionReason[] = ["sanctions", "chargeback", "acceptable_use"];

/** Whether an operator's last word on this reason was to suspend for it. */
const byOperator = (subject: string): SqlPart => sql`coalesce((
  SELECT s.reason IS NOT NULL FROM suspensions s
  WHERE s.subject = ${subject} AND s.by_whom <> ${BY_GATEWAY}
    AND coalesce(s.reason, s.lifted, suspension_reasons.reason) = suspension_reasons.reason
  ORDER BY s.seq DESC LIMIT 1), false)`;
