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
  const { subject, reason, by } = suspension;
  return db.change<Suspended | null>(subject, async () => {
    const accounts = await db.read<VersionedRow>`SELECT id, version FROM accounts WHERE id = ${subject}`;
    const balances = await db.read<VersionedRow>`SELECT id, version FROM balances WHERE id = ${subject}`;
    if (accounts.length + balances.length === 0) return { result: null };
    const isKept = by === BY_GATEWAY ? byOperator(subject) : sql`false`;
    const standing = await db.read<StandingReason>`
      SELECT reason, ${isKept} AS "isKept" FROM suspension_reasons WHERE subject = ${subject}`;
    const reasons = standing.map((one) => one.reason);
    const reasonsThen = reasonsAfter(standing, suspension);
    const ended = reasons.filter((one) => !reasonsThen.includes(one));
    const before = gravest(reasons);
    const suspended = gravest(reasonsThen);
    const rows = await db.read<{ id: BalanceId }>`
      SELECT id FROM balances WHERE id = ${subject} OR account_id = ${subject} ORDER BY attached_at, id`;
    const ids = rows.map(({ id }) => id);
    return {
      result: { balances: ids, suspended },
      statements: [
        accounts.map((row) => touch("accounts", row)),
        balances.map((row) => touch("balances", row)),
        reason === null
          ? sql`DELETE FROM suspension_reasons WHERE subject = ${subject} AND reason IN ${db.among(ended)}`
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

interface StandingReason {
  readonly reason: SuspensionReason;
  /** An operator suspended for it, and the gateway lifts only what it did itself. */
  readonly isKept: boolean | 0 | 1;
}

/** The reasons that stand once this suspension, or lifting, is recorded. */
function reasonsAfter(
  standing: readonly StandingReason[],
  { reason, lifted }: SuspensionRecord,
): SuspensionReason[] {
  if (reason !== null) return [...standing.map((one) => one.reason), reason];
  return standing.flatMap((one) =>
    one.isKept || (lifted !== null && one.reason !== lifted) ? [one.reason] : [],
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
