import type { CounterId } from "../../ledger/counter.ts";
import { MAX_NANO_USD } from "../../units/usd.ts";
import { part, type SqlDatabase, type SqlPart, type Steps, sql } from "./statement.ts";

/**
 * What owners last set, of keys, budgets and runs, for those of these counters that it limits. A node may state a limit
 * that has changed since: a request that it admits may have waited, and what was granted to that would be spent by
 * others, above the limit.
 */
export function* limitsOf(db: SqlDatabase, counters: readonly CounterId[]): Steps<Map<CounterId, number>> {
  const asked = counters.map(askedOf);
  const queries = QUERIES.flatMap(({ kinds, of }) => {
    const subjects = asked.filter(({ kind }) => kinds.includes(kind)).map(({ subject }) => subject);
    return subjects.length === 0 ? [] : [of(db, [...new Set(subjects)])];
  });
  if (queries.length === 0) return new Map();
  const rows = yield* sql<LimitRow>`${queries.reduce((all, query) => part`${all} UNION ALL ${query}`)}`;
  return new Map(
    asked.flatMap(({ counter, kind, subject, window }) => {
      const own = rows.filter((row) => row.subject === subject && (window === "" || window === row.period));
      // Of a chain of keys, the highest limit counts.
      return own.length === 0
        ? []
        : [[counter, Math.max(...own.map((row) => row[kind] ?? MAX_NANO_USD))] as const];
    }),
  );
}

interface AskedLimit {
  readonly counter: CounterId;
  readonly kind: LimitKind;
  readonly subject: string;
  /** Of a budget, which is counted in all windows, while its cap is that of one; empty for others. */
  readonly window: string;
}

function askedOf(counter: CounterId): AskedLimit {
  const [kind, subject = "", window = "", start] = counter.split(":") as [LimitKind, ...string[]];
  const isRun = kind === "run" || kind === "calls";
  return {
    counter,
    kind,
    subject: isRun ? `${subject}:${window}` : subject,
    window: kind === "budget" && start !== undefined ? window : "",
  };
}

type LimitKind = "day" | "month" | "rpm" | "tpm" | "budget" | "run" | "calls";

/** The limits of a subject, each under the kind of counter that it limits. */
type LimitRow = Readonly<Record<LimitKind, number | null>> & {
  readonly subject: string;
  readonly period: string;
};

const NONE = part`CAST(NULL AS BIGINT)`;

const QUERIES: readonly LimitQuery[] = [
  {
    kinds: ["day", "month", "rpm", "tpm"],
    of: (
      db,
      rotations,
    ) => part`SELECT lineage AS subject, daily_limit AS day, monthly_limit AS month, rpm_limit AS rpm,
      tpm_limit AS tpm, ${NONE} AS budget, ${NONE} AS run, ${NONE} AS calls, '' AS period
      FROM keys WHERE lineage IN ${db.among(rotations)} AND state <> 'revoked'`,
  },
  {
    kinds: ["budget"],
    of: (
      db,
      budgets,
    ) => part`SELECT id AS subject, ${NONE} AS day, ${NONE} AS month, ${NONE} AS rpm, ${NONE} AS tpm,
      cap AS budget, ${NONE} AS run, ${NONE} AS calls, period FROM budgets WHERE id IN ${db.among(budgets)}`,
  },
  {
    kinds: ["run", "calls"],
    of: (
      db,
      subjects,
    ) => part`SELECT asked.subject, ${NONE} AS day, ${NONE} AS month, ${NONE} AS rpm, ${NONE} AS tpm,
      ${NONE} AS budget, runs.cap AS run, runs.calls, '' AS period
      FROM ${db.table(subjects.map(namedRun), RUN_COLUMNS)} AS asked JOIN runs
        ON runs.balance_id = asked.balance_id AND runs.name = asked.name AND runs.started_at = asked.started_at`,
  },
];

interface LimitQuery {
  readonly kinds: readonly LimitKind[];
  of(db: SqlDatabase, subjects: readonly string[]): SqlPart;
}

const RUN_COLUMNS = { subject: "TEXT", balance_id: "TEXT", name: "TEXT", started_at: "BIGINT" } as const;

function namedRun(subject: string) {
  const [balance, name, startedAt] = subject.split(/[/:]/) as [string, string, string];
  return { subject, balance_id: balance, name, started_at: Number(startedAt) };
}
