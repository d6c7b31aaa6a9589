import { DAY_MS, type EpochMs } from "../../units/clock.ts";
import type { Database } from "../database/database.ts";
import { type Batch, changesOne, type SqlPart, sql } from "../database/statement.ts";
import {
  EXPORT_KINDS,
  EXPORT_TABLES,
  type ExportKind,
  type ExportRow,
  exportRow,
  type NumberRange,
  selecting,
} from "./export-rows.ts";

/**
 * How far each target has the books. One process exports at a time: the one that has put the target off. A file is written
 * down before it is put, so whoever goes on after a crash puts the same one.
 */
export class SqlExportStore {
  constructor(private readonly db: Database) {}

  /** Makes this the active target, or none. */
  async configure(target: string | null, now: EpochMs): Promise<void> {
    const known = await this.db.read<{ id: string; isActive: number }>`
      SELECT id, is_active AS "isActive" FROM export_targets`;
    const isSame = known.every(({ id, isActive }) => (isActive === 1) === (id === target));
    if (isSame && (target === null || (await this.cursors(target)).length === EXPORT_KINDS.length)) return;
    await this.db.commit(
      [
        sql`UPDATE export_targets SET is_active = 0 WHERE id <> ${target ?? ""}`,
        target !== null && [
          sql`INSERT INTO export_targets (id, is_active) VALUES (${target}, 1)
          ON CONFLICT (id) DO UPDATE SET is_active = 1, due_at = 0, failures = 0, problem = NULL`,
          EXPORT_KINDS.map(
            (
              kind,
            ) => sql`INSERT INTO export_cursors (target, kind, caught_up_at) VALUES (${target}, ${kind}, ${now})
            ON CONFLICT (target, kind) DO NOTHING`,
          ),
        ],
      ].filter((one) => one !== false),
    );
  }

  /** Null where it is not due, or another process was first. */
  async claim(target: string, now: EpochMs, until: EpochMs): Promise<ExportClaim | null> {
    const [row] = await this.db.read<{ dueAt: EpochMs; failures: number }>`
      SELECT due_at AS "dueAt", failures FROM export_targets WHERE id = ${target}`;
    if (row === undefined || row.dueAt > now) return null;
    const claim = { target, dueAt: row.dueAt, failures: row.failures };
    return (await this.db.commit([putOff(claim, until)])) === null ? null : { ...claim, dueAt: until };
  }

  async cursors(target: string): Promise<readonly ExportCursor[]> {
    return this.db.read<ExportCursor>`
      SELECT kind, last, file_last AS "fileLast", file_rows AS "fileRows", caught_up_at AS "caughtUpAt"
      FROM export_cursors WHERE target = ${target} ORDER BY kind`;
  }

  /** How far the active target is. */
  async status(): Promise<readonly ExportStatus[]> {
    const cursors = await this.db.read<Omit<ExportStatus, "waiting">>`
      SELECT c.kind, c.target, c.last, c.caught_up_at AS "caughtUpAt", t.problem
      FROM export_targets t JOIN export_cursors c ON c.target = t.id WHERE t.is_active = 1`;
    const kinds = EXPORT_KINDS.flatMap((kind) => cursors.filter((cursor) => cursor.kind === kind));
    return Promise.all(
      kinds.map(async (cursor) => ({ ...cursor, waiting: await this.waiting(cursor.kind, cursor.last) })),
    );
  }

  /** Up to there, no row will come between others any more; null where that is not known yet. */
  settledThrough(kind: ExportKind): Promise<number | null> {
    return this.db.settledThrough(EXPORT_TABLES[kind]);
  }

  async rows(kind: ExportKind, range: NumberRange, limit: number): Promise<readonly ExportRow[]> {
    return (await this.db.rows(selecting(kind, range, limit))).map((row) => exportRow(kind, row));
  }

  private async waiting(kind: ExportKind, after: number): Promise<number> {
    const range = { after, through: Number.MAX_SAFE_INTEGER };
    const [row] = await this.db.read<{ waiting: number }>`
      SELECT count(*) AS waiting FROM (${selecting(kind, range, MAX_WAITING)}) AS behind`;
    return row!.waiting;
  }

  /** Durable: from now on, these rows are one file. Null where another process has taken over. */
  async begin(claim: ExportClaim, { kind, last, file, until }: FileStep): Promise<ExportClaim | null> {
    return this.step(claim, until, [
      changesOne(sql`UPDATE export_cursors SET file_last = ${file.last}, file_rows = ${file.rows}
        WHERE target = ${claim.target} AND kind = ${kind} AND last = ${last} AND file_last IS NULL`),
    ]);
  }

  /** The file is there. */
  async finish(claim: ExportClaim, { kind, last, file, until }: FileStep): Promise<ExportClaim | null> {
    return this.step(claim, until, [
      changesOne(sql`UPDATE export_cursors SET last = file_last, file_last = NULL, file_rows = NULL
        WHERE target = ${claim.target} AND kind = ${kind} AND last = ${last} AND file_last = ${file.last}`),
    ]);
  }

  /** Ends the claim. `caughtUp`: everything of these kinds is there that was booked before then. */
  async release(claim: ExportClaim, { dueAt, problem, caughtUp }: ExportState): Promise<void> {
    await this.step(claim, dueAt, [
      sql`UPDATE export_targets SET problem = ${problem}, failures = ${problem === null ? 0 : claim.failures + 1}
        WHERE id = ${claim.target}`,
      [...caughtUp].map(
        ([kind, at]) => sql`UPDATE export_cursors SET caught_up_at = ${at}
          WHERE target = ${claim.target} AND kind = ${kind} AND file_last IS NULL`,
      ),
    ]);
  }

  private async step(claim: ExportClaim, until: EpochMs, batch: Batch): Promise<ExportClaim | null> {
    const done = await this.db.commit([putOff(claim, until), batch]);
    return done === null ? null : { ...claim, dueAt: until };
  }
}

/** A conflict where somebody else has put it off. */
const putOff = ({ target, dueAt }: ExportClaim, until: EpochMs) =>
  changesOne(sql`UPDATE export_targets SET due_at = ${until} WHERE id = ${target} AND due_at = ${dueAt}`);

/** A process may export to the target until `dueAt`, and has to renew it before. */
export interface ExportClaim {
  readonly target: string;
  readonly dueAt: EpochMs;
  readonly failures: number;
}

export interface ExportCursor {
  readonly kind: ExportKind;
  /** The number of the last row that is there. */
  readonly last: number;
  /** The file that is being put, if there is one. */
  readonly fileLast: number | null;
  readonly fileRows: number | null;
  readonly caughtUpAt: EpochMs;
}

export interface ExportStatus extends Pick<ExportCursor, "kind" | "last" | "caughtUpAt"> {
  readonly target: string;
  /** Rows that it lacks, as far as they are counted. */
  readonly waiting: number;
  /** Why the last attempt failed. */
  readonly problem: string | null;
}

interface FileStep extends Pick<ExportCursor, "kind" | "last"> {
  readonly file: { readonly last: number; readonly rows: number };
  readonly until: EpochMs;
}

interface ExportState {
  readonly dueAt: EpochMs;
  readonly problem: string | null;
  readonly caughtUp: ReadonlyMap<ExportKind, EpochMs>;
}

const MAX_WAITING = 100_000;
/** Receipts that an active target lacks are kept for so much longer than the configuration says. */
const EXTRA_DAYS = 30;

/**
 * Which ends may be deleted of those that began before `before`: not what the active target lacks, unless it is older by
 * that, and never what is in a file that is being put.
 */
export const exportedOrOld = (before: EpochMs): SqlPart => sql`NOT EXISTS (
  SELECT 1 FROM export_cursors c JOIN export_targets t ON t.id = c.target
  WHERE c.kind = 'receipts' AND t.is_active = 1 AND (ends.seq > c.last OR ends.seq IS NULL)
    AND (ends.at >= ${before - EXTRA_DAYS * DAY_MS} OR ends.seq <= coalesce(c.file_last, 0)))`;
