import {
  decide,
  type Grant,
  type Inquiry,
  MAX_LATE,
  NOTHING_GRANTED,
  type SharedCounter,
  type Standing,
  type Statement,
} from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { limitsOf } from "./counter-limits.ts";
import { part, type SqlDatabase, type SqlPart, type Steps, sql } from "./statement.ts";

/**
 * The Authority on a database: what one node states together is decided in one transaction, which locks the counters in
 * the order of their ids, decides by the one rule, and writes what changed.
 */
export function* settleSteps(
  db: SqlDatabase,
  { isAlive, now }: GrantTerms,
  statements: readonly Statement[],
): Steps<DecidedGrants> {
  const { ledger: node, epoch } = statements[0]!;
  yield* holdEpoch(db, node, epoch);
  const ids = [...new Set(statements.map(({ counter }) => counter))].sort();
  const counters = yield* lockCounters(db, node, ids);
  const limits = yield* limitsOf(db, ids);
  const grants = statements.map((statement) => {
    const { counter, limit } = statement;
    const set = Math.min(limit, limits.get(counter) ?? limit) as NanoUsd;
    return decide(counters.get(counter)!, { ...statement, limit: set });
  });
  yield* write(db, node, [...counters.values()], now);
  const short = statements.flatMap(({ counter, inquiry: awaited }, index) => {
    const { short: isShort, inquiry } = grants[index]!;
    return isShort ? [{ counter, awaited, inquiry }] : [];
  });
  if (short.length === 0) return { grants, recalled: [] };
  const others = yield* othersOf(db, node, short, isAlive);
  return {
    grants: grants.map((grant) => ({ ...grant, ...others.get(grant.counter) })),
    recalled: short.filter(({ counter, awaited }) => {
      const { spare = 0, answered = awaited } = others.get(counter) ?? {};
      return spare > 0 || answered < awaited;
    }),
  };
}

/** What a database says in its own words. */
export interface GrantTerms {
  /** Whether the node of a grant has a lease: nobody waits for others. */
  readonly isAlive: SqlPart;
  readonly now: SqlPart;
}

export interface DecidedGrants {
  /** In the order of the statements. */
  readonly grants: Grant[];
  /** Counters that the node runs short of, and the others have something of. */
  readonly recalled: readonly Inquiry[];
}

/** Forgets grants of counters whose window is over, if everything was shipped. */
export function* retireGrants(db: SqlDatabase, node: string, counters: readonly CounterId[]): Steps<void> {
  yield* sql`DELETE FROM grants WHERE node = ${node} AND granted = shipped AND counter IN ${db.among(counters)}`;
}

/** The inquiries since then after what this node was granted, which it has not answered. */
export const openInquiries = (node: string, since: SqlPart): SqlPart => part`
  SELECT counter, inquiries AS inquiry FROM counters JOIN grants ON grants.counter = counters.id
  WHERE inquired_at > ${since} AND node = ${node} AND granted > shipped AND coalesce(heard, 0) < inquiries
  LIMIT ${MAX_LATE}`;

/** Releases what the node was granted. */
export function* freeGrants({ forUpdate }: Pick<SqlDatabase, "forUpdate">, node: string): Steps<void> {
  yield* sql`SELECT id FROM counters
    WHERE id IN (SELECT counter FROM grants WHERE node = ${node}) ORDER BY id ${forUpdate}`;
  yield* sql`UPDATE counters SET reserved = reserved - (held.granted - held.shipped)
    FROM grants AS held WHERE held.node = ${node} AND held.counter = counters.id`;
  yield* sql`DELETE FROM grants WHERE node = ${node}`;
}

/**
 * Closing an epoch takes the row for itself, so none is closed while statements of it are settled. Renewing the lease
 * does not wait for this.
 */
function* holdEpoch({ forReference }: SqlDatabase, node: string, epoch: number): Steps<void> {
  const [row] = yield* sql<{ epoch: number; open: boolean | 0 | 1 }>`
    SELECT epoch, open FROM nodes WHERE name = ${node} ${forReference}`;
  if (row?.epoch !== epoch || !row.open) throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
}

/** A counter as it is locked. */
interface LockedCounter extends SharedCounter {
  readonly id: CounterId;
  readonly standingBefore: Standing;
  readonly reservedBefore: number;
  readonly inquiriesBefore: number;
}

function* lockCounters(
  db: SqlDatabase,
  node: string,
  ids: readonly CounterId[],
): Steps<Map<CounterId, LockedCounter>> {
  const all = db.among(ids);
  yield* sql`INSERT INTO counters (id) SELECT value FROM ${all} AS asked WHERE true ORDER BY value
    ON CONFLICT (id) DO NOTHING`;
  const counters = yield* sql<Pick<LockedCounter, "id" | "credited" | "spent" | "reserved" | "inquiries">>`
    SELECT id, credited, spent, reserved, inquiries FROM counters WHERE id IN ${all} ORDER BY id ${db.forUpdate}`;
  const grants = yield* sql<Standing & { counter: CounterId; shipped: number }>`
    SELECT counter, granted, shipped, used, number, coalesce(heard, 0) AS heard FROM grants
    WHERE node = ${node} AND counter IN ${all}`;
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

function* write(
  db: SqlDatabase,
  node: string,
  counters: readonly LockedCounter[],
  now: SqlPart,
): Steps<void> {
  const stated = counters
    .filter(({ standing, standingBefore }) => standing !== standingBefore)
    .map(({ id, standing }) => ({ id, ...standing }));
  if (stated.length > 0)
    yield* sql`INSERT INTO grants (node, counter, granted, used, number, heard)
      SELECT ${node}, id, granted, used, number, heard FROM ${db.table(stated, GRANT_COLUMNS)} AS stated WHERE true
      ON CONFLICT (node, counter) DO UPDATE
      SET granted = excluded.granted, used = excluded.used, number = excluded.number, heard = excluded.heard`;
  const changed = counters
    .filter((one) => one.reserved !== one.reservedBefore || one.inquiries !== one.inquiriesBefore)
    .map(({ id, reserved, inquiries }) => ({ id, reserved, inquiries }));
  if (changed.length > 0)
    yield* sql`UPDATE counters SET reserved = changed.reserved, inquiries = changed.inquiries,
        inquired_at = CASE WHEN counters.inquiries < changed.inquiries THEN ${now} ELSE inquired_at END
      FROM ${db.table(changed, COUNTER_COLUMNS)} AS changed WHERE counters.id = changed.id`;
}

const GRANT_COLUMNS = {
  id: "TEXT",
  granted: "BIGINT",
  used: "BIGINT",
  number: "BIGINT",
  heard: "BIGINT",
} as const;
const COUNTER_COLUMNS = { id: "TEXT", reserved: "BIGINT", inquiries: "BIGINT" } as const;

/** What the others have of counters that are short, as they last said, and which inquiry all of them have answered. */
function* othersOf(
  db: SqlDatabase,
  node: string,
  short: readonly ShortCounter[],
  isAlive: SqlPart,
): Steps<Map<CounterId, Others>> {
  const rows = yield* sql<OthersRow>`
    SELECT counter, CAST(sum(granted - used) AS BIGINT) AS spare, CAST(sum(granted - shipped) AS BIGINT) AS open,
      min(CASE WHEN granted > shipped THEN coalesce(heard, 0) END) AS heard
    FROM grants WHERE counter IN ${db.among(short.map(({ counter }) => counter))}
      AND node <> ${node} AND ${isAlive} GROUP BY counter`;
  const found = new Map(rows.map((row) => [row.counter, row]));
  return new Map(
    short.flatMap(({ counter, inquiry }) => {
      const row = found.get(counter);
      if (row === undefined) return [];
      const { spare, open, heard } = row;
      return [[counter, { spare, open, answered: Math.min(inquiry, heard ?? inquiry) }] as const];
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
  readonly heard: number | null;
}
