import type { Database as Connection } from "bun:sqlite";
import {
  type Authority,
  decide,
  type Grant,
  type Inquiry,
  LATE_MS,
  MAX_LATE,
  NOTHING_GRANTED,
  type SharedCounter,
  type Standing,
  type Statement,
} from "../../ledger/authority.ts";
import { budgetOfSubject, type CounterId, isValueCounter } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/node-lease.ts";
import type { Clock } from "../../units/clock.ts";
import { MAX_NANO_USD, type NanoUsd } from "../../units/usd.ts";
import { type Database, type SqlPart, type Steps, sql, verbatim } from "../database/database.ts";
import { URGENT } from "../database/postgres.ts";
import type { PostgresDatabase } from "../database/postgres-database.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { BatchQueue } from "../nodes/batch-queue.ts";
import { ANSWERED_INQUIRY, ROTATION_ID } from "../schema/columns.ts";

/**
 * The Authority on a database: what one node states together is decided in one transaction, which locks the counters in
 * the order of their ids, decides by the one rule, and writes what changed.
 */
function* settling(
  db: Database,
  { now, isAlive }: { readonly now: SqlPart; readonly isAlive: SqlPart },
  statements: readonly Statement[],
): Steps<DecidedGrants> {
  const { ledger: node, epoch } = statements[0]!;
  const ids = [...new Set(statements.map(({ counter }) => counter))].sort();
  const all = db.among(ids);
  const { query, limits } = limitsOf(db, ids);
  const [lives, , counterRows, grantRows, limitRows = []] = yield [
    // Closing an epoch takes the row for itself, so none is closed while statements of it are settled. Renewing the lease
    // does not wait for this.
    sql`SELECT epoch, open FROM nodes WHERE name = ${node} ${db.forReference}`,
    sql`INSERT INTO counters (id) SELECT value FROM ${all} AS asked WHERE true ORDER BY value
      ON CONFLICT (id) DO NOTHING`,
    sql`SELECT id, credited, spent, reserved, inquiries FROM counters WHERE id IN ${all} ORDER BY id ${db.forUpdate}`,
    sql`SELECT counter, granted, shipped, used, number, coalesce(${ANSWERED}, 0) AS "answeredInquiry" FROM grants
      WHERE node = ${node} AND counter IN ${all}`,
    ...query,
  ];
  const [life] = lives as readonly LifeRow[];
  if (life?.epoch !== epoch || !life.open) throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
  const counters = lockedCounters(
    counterRows as readonly LockedCounterRow[],
    grantRows as readonly GrantRow[],
  );
  const set = limits(limitRows as readonly LimitRow[]);
  const grants = statements.map((statement) => {
    const { counter, limit } = statement;
    const least = Math.min(limit, set.get(counter) ?? limit) as NanoUsd;
    return decide(counters.get(counter)!, { ...statement, limit: least });
  });
  yield writing(db, node, [...counters.values()], now);
  const short = statements.flatMap(({ counter, inquiry: awaited }, index) => {
    const { short: isShort, inquiry } = grants[index]!;
    return isShort ? [{ counter, awaited, inquiry }] : [];
  });
  if (short.length === 0) return { grants, recalled: [] };
  const [rows] = yield [
    sql`SELECT counter, CAST(sum(granted - used) AS BIGINT) AS spare, CAST(sum(granted - shipped) AS BIGINT) AS open,
        min(CASE WHEN granted > shipped THEN coalesce(${ANSWERED}, 0) END) AS "answeredInquiry"
      FROM grants WHERE counter IN ${db.among(short.map(({ counter }) => counter))}
        AND node <> ${node} AND ${isAlive} GROUP BY counter`,
  ];
  const others = othersFrom(rows as readonly OthersRow[], short);
  return {
    grants: grants.map((grant) => ({ ...grant, ...others.get(grant.counter) })),
    recalled: short.filter(({ counter, awaited }) => {
      const { spare = 0, answered = awaited } = others.get(counter) ?? {};
      return spare > 0 || answered < awaited;
    }),
  };
}

interface DecidedGrants {
  /** In the order of the statements. */
  readonly grants: readonly Grant[];
  /** Counters that the node runs short of, and the others have something of. */
  readonly recalled: readonly Inquiry[];
}

/** Releases what the node was granted. */
export const freeing = ({ forUpdate }: Pick<Database, "forUpdate">, node: string): readonly SqlPart[] => [
  sql`SELECT id FROM counters
    WHERE id IN (SELECT counter FROM grants WHERE node = ${node}) ORDER BY id ${forUpdate}`,
  sql`UPDATE counters SET reserved = reserved - (held.granted - held.shipped)
    FROM grants AS held WHERE held.node = ${node} AND held.counter = counters.id`,
  sql`DELETE FROM grants WHERE node = ${node}`,
];

interface LifeRow {
  readonly epoch: number;
  readonly open: boolean | 0 | 1;
}

type LockedCounterRow = Pick<LockedCounter, "id" | "credited" | "spent" | "reserved" | "inquiries">;
type GrantRow = Standing & { readonly counter: CounterId; readonly shipped: number };

/** A counter as it is locked. */
interface LockedCounter extends SharedCounter {
  readonly id: CounterId;
  readonly standingBefore: Standing;
  readonly reservedBefore: number;
  readonly inquiriesBefore: number;
}

function lockedCounters(
  counters: readonly LockedCounterRow[],
  grants: readonly GrantRow[],
): Map<CounterId, LockedCounter> {
  const known = new Map(
    grants.map(({ counter, shipped, ...standing }) => [counter, { shipped, standing }] as const),
  );
  return new Map(
    counters.map((counter) => {
      const mine = known.get(counter.id) ?? { shipped: 0, standing: NOTHING_GRANTED };
      const { reserved: reservedBefore, inquiries: inquiriesBefore } = counter;
      return [
        counter.id,
        { ...counter, ...mine, standingBefore: mine.standing, reservedBefore, inquiriesBefore },
      ];
    }),
  );
}

function writing(
  db: Database,
  node: string,
  counters: readonly LockedCounter[],
  now: SqlPart,
): readonly SqlPart[] {
  const moved = counters.filter(({ standing, standingBefore }) => standing !== standingBefore);
  const isRetired = ({ standing }: LockedCounter) => standing === NOTHING_GRANTED;
  const retired = moved.filter(isRetired).map(({ id }) => id);
  const stated = moved
    .filter((one) => !isRetired(one))
    .map(({ id, standing: { answeredInquiry, ...rest } }) => ({ id, ...rest, answered: answeredInquiry }));
  const changed = counters
    .filter((one) => one.reserved !== one.reservedBefore || one.inquiries !== one.inquiriesBefore)
    .map(({ id, reserved, inquiries }) => ({ id, reserved, inquiries }));
  const writingGrants = sql`INSERT INTO grants (node, counter, granted, used, number, ${ANSWERED})
    SELECT ${node}, id, granted, used, number, answered FROM ${db.table(stated, GRANT_COLUMNS)} AS stated WHERE true
    ON CONFLICT (node, counter) DO UPDATE
    SET granted = excluded.granted, used = excluded.used, number = excluded.number,
      ${ANSWERED} = excluded.${ANSWERED}`;
  const writingCounters = sql`UPDATE counters SET reserved = changed.reserved, inquiries = changed.inquiries,
      inquired_at = CASE WHEN counters.inquiries < changed.inquiries THEN ${now} ELSE inquired_at END
    FROM ${db.table(changed, COUNTER_COLUMNS)} AS changed WHERE counters.id = changed.id`;
  return [
    ...(retired.length > 0
      ? [sql`DELETE FROM grants WHERE node = ${node} AND counter IN ${db.among(retired)}`]
      : []),
    ...(stated.length > 0 ? [writingGrants] : []),
    ...(changed.length > 0 ? [writingCounters] : []),
  ];
}

const ANSWERED = verbatim(ANSWERED_INQUIRY);
const GRANT_COLUMNS = {
  id: "TEXT",
  granted: "BIGINT",
  used: "BIGINT",
  number: "BIGINT",
  answered: "BIGINT",
} as const;
const COUNTER_COLUMNS = { id: "TEXT", reserved: "BIGINT", inquiries: "BIGINT" } as const;

/** What the others have of counters that are short, as they last said, and which inquiry all of them have answered. */
function othersFrom(rows: readonly OthersRow[], short: readonly ShortCounter[]): Map<CounterId, Others> {
  const found = new Map(rows.map((row) => [row.counter, row]));
  return new Map(
    short.flatMap(({ counter, inquiry }) => {
      const row = found.get(counter);
      if (row === undefined) return [];
      const { spare, open, answeredInquiry } = row;
      return [[counter, { spare, open, answered: Math.min(inquiry, answeredInquiry ?? inquiry) }] as const];
    }),
  );
}

interface ShortCounter extends Inquiry {
  /** The inquiry that requests there wait for. */
  readonly awaited: number;
}

type Others = Pick<Grant, "spare" | "open" | "answered">;

interface OthersRow {
  readonly counter: CounterId;
  readonly spare: NanoUsd;
  readonly open: NanoUsd;
  /** Null where nobody has anything open. */
  readonly answeredInquiry: number | null;
}

/**
 * What owners last set, of keys, budgets and runs, for those of these counters that it limits. A node may state a limit
 * that has changed since: a request that it admits may have waited, and what was granted to that would be spent by
 * others, above the limit.
 */
function limitsOf(db: Database, counters: readonly CounterId[]): CounterLimits {
  const limited = counters.map(limitSubjectOf);
  const queries = [...Map.groupBy(limited, ({ kind }) => kind)].flatMap(([kind, some]) => {
    const subjects = [...new Set(some.map(({ subject }) => subject))];
    return limitsOfKind(db, kind, subjects) ?? [];
  });
  return {
    query: queries.length === 0 ? [] : [queries.reduce((all, query) => sql`${all} UNION ALL ${query}`)],
    limits: (rows) =>
      new Map(
        limited.flatMap(({ counter, kind, subject, window }) => {
          const own = rows.filter(
            (row) => row.kind === kind && row.subject === subject && (window === "" || window === row.period),
          );
          // The highest limit of a chain of keys counts.
          return own.length === 0
            ? []
            : [[counter, Math.max(...own.map(({ amount }) => amount ?? MAX_NANO_USD))] as const];
        }),
      ),
  };
}

interface CounterLimits {
  /** One statement, or none where nothing of it can be limited. */
  readonly query: readonly SqlPart[];
  /** By what it has found. */
  limits(rows: readonly LimitRow[]): Map<CounterId, number>;
}

interface LimitSubject {
  readonly counter: CounterId;
  readonly kind: LimitKind;
  readonly subject: string;
  /** A budget's window, because it is counted in all while its cap is for one; empty for others. */
  readonly window: string;
}

function limitSubjectOf(counter: CounterId): LimitSubject {
  const [kind, subject = "", window = "", start] = counter.split(":") as [LimitKind, ...string[]];
  const isRun = kind === "run" || kind === "calls";
  return {
    counter,
    kind,
    subject: isRun ? `${subject}:${window}` : budgetOfSubject(subject),
    window:
      kind === "budget" && start !== undefined ? `${window}${isValueCounter(counter) ? OF_VALUES : ""}` : "",
  };
}

/** Behind a budget's window where its cap is that of each value of a tag, and not of all together. */
const OF_VALUES = " of values";

type LimitKind = "day" | "month" | "rpm" | "tpm" | "budget" | "run" | "calls";

interface LimitRow {
  readonly kind: LimitKind;
  readonly subject: string;
  readonly period: string;
  /** Null for none. */
  readonly amount: number | null;
}

/** Null for counters that no owner limits. */
function limitsOfKind(db: Database, kind: LimitKind, subjects: readonly string[]): SqlPart | null {
  switch (kind) {
    case "day":
    case "month":
    case "rpm":
    case "tpm":
      return sql`SELECT '${verbatim(kind)}' AS kind, ${verbatim(ROTATION_ID)} AS subject, '' AS period,
        ${verbatim(KEY_LIMITS[kind])} AS amount
        FROM keys WHERE ${verbatim(ROTATION_ID)} IN ${db.among(subjects)} AND state <> 'revoked'`;
    case "budget":
      return sql`SELECT 'budget' AS kind, id AS subject,
        period || CASE WHEN per IS NULL THEN '' ELSE ${OF_VALUES} END AS period, cap AS amount
        FROM budgets WHERE id IN ${db.among(subjects)}`;
    case "run":
    case "calls":
      return sql`SELECT '${verbatim(kind)}' AS kind, asked.subject, '' AS period,
        runs.${verbatim(kind === "run" ? "cap" : "calls")} AS amount
        FROM ${db.table(subjects.map(namedRun), RUN_COLUMNS)} AS asked JOIN runs
          ON runs.balance_id = asked.balance_id AND runs.name = asked.name AND runs.started_at = asked.started_at`;
    default:
      return null;
  }
}

const KEY_LIMITS = {
  day: "daily_limit",
  month: "monthly_limit",
  rpm: "rpm_limit",
  tpm: "tpm_limit",
} as const;

const RUN_COLUMNS = { subject: "TEXT", balance_id: "TEXT", name: "TEXT", started_at: "BIGINT" } as const;

function namedRun(subject: string) {
  const [balance, name, startedAt] = subject.split(/[/:]/) as [string, string, string];
  return { subject, balance_id: balance, name, started_at: Number(startedAt) };
}

/** The Authority as a node knows it. Statements that come together are settled in one go. */
export class NodeAuthority implements Authority {
  private readonly queue: BatchQueue<Statement, Grant>;

  constructor(
    private readonly db: Database,
    settleAll: (statements: readonly Statement[]) => Promise<readonly Grant[]>,
    /** The time since which inquiries are of late, as the database has it. */
    private readonly late: () => SqlPart,
    defer: (run: () => void) => void = setImmediate,
  ) {
    this.queue = new BatchQueue(settleAll, defer);
  }

  settle(statement: Statement): Promise<Grant> {
    return this.queue.request(statement);
  }

  /** Forgets grants of counters whose window is over, if everything was shipped. */
  async retire(node: string, counters: readonly CounterId[]): Promise<void> {
    if (counters.length === 0) return;
    await this.db.commit([
      sql`DELETE FROM grants
        WHERE node = ${node} AND granted = shipped AND counter IN ${this.db.among(counters)}`,
    ]);
  }

  /**
   * The inquiries of late after what this node was granted, which it has not answered. Announcements arrive sooner, where
   * they are sent and nothing happened to the connection.
   */
  inquiries(node: string): Promise<Inquiry[]> {
    return this.db.read<Inquiry>`
      SELECT counter, inquiries AS inquiry FROM counters JOIN grants ON grants.counter = counters.id
      WHERE inquired_at > ${this.late()} AND node = ${node} AND granted > shipped
        AND coalesce(${ANSWERED}, 0) < inquiries
      LIMIT ${MAX_LATE}`;
  }
}

/** The Authority on PostgreSQL. */
export function postgresAuthority(db: PostgresDatabase): NodeAuthority {
  const time = { now: sql`clock_timestamp()`, isAlive: IS_ALIVE };
  const settleAll = (statements: readonly Statement[]) =>
    db.transact(function* () {
      const { grants, recalled } = yield* settling(db, time, statements);
      const words = recalled.map(({ counter, inquiry }) => `${statements[0]!.ledger} ${counter} ${inquiry}`);
      yield db.notifying(RECALLS, words);
      return grants;
    }, URGENT);
  return new NodeAuthority(db, settleAll, () => LATE);
}

/** The channel on which nodes hear which counters somebody runs short of: `asker counter inquiry`. */
export const RECALLS = "gateway_recalls";

const IS_ALIVE = sql`node IN (SELECT name FROM nodes WHERE lease_until > clock_timestamp())`;
const LATE = sql`clock_timestamp() - interval '${verbatim(String(LATE_MS))} milliseconds'`;

/** The Authority on SQLite, in the one process that writes the database. */
export class SqliteAuthority {
  private readonly db: SqliteDatabase;

  constructor(
    db: Connection,
    private readonly clock: Pick<Clock, "now">,
    /** Nodes that have a lease. */
    private readonly alive: () => readonly string[],
    /** Asks the others. */
    private readonly recall: (asker: string, inquiry: Inquiry) => void,
  ) {
    this.db = new SqliteDatabase(db);
  }

  /** Settles what one node states together. Throws EpochFenced. */
  settle(statements: readonly Statement[]): readonly Grant[] {
    const { db } = this;
    const time = { now: sql`${this.clock.now()}`, isAlive: sql`node IN ${db.among(this.alive())}` };
    const { grants, recalled } = db.transact(() => settling(db, time, statements));
    for (const { counter, inquiry } of recalled) this.recall(statements[0]!.ledger, { counter, inquiry });
    return grants;
  }
}
