import { DAY_MS, type EpochMs, isoTime } from "../../units/clock.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import {
  type Batch,
  changesOne,
  type Database,
  inserted,
  type NumberedTable,
  type SqlPart,
  sql,
  verbatim,
} from "../database/database.ts";

/**
 * How far each target has the books. One process exports at a time: the one that has put the target off. A file is written
 * down before it is put, so the process that continues after a crash puts the same one.
 */
export class SqlExportStore {
  constructor(private readonly db: Database) {}

  /** Makes this the active target, or none. */
  async configure(target: string | null, now: EpochMs): Promise<void> {
    const known = await this.db.read<{ id: string; isActive: number }>`
      SELECT id, is_active AS "isActive" FROM export_targets`;
    const isSame = known.every(({ id, isActive }) => (isActive === 1) === (id === target));
    if (isSame && (target === null || (await this.cursors(target)).length === EXPORT_KINDS.length)) return;
    await this.db.commit([
      sql`UPDATE export_targets SET is_active = 0 WHERE id <> ${target ?? ""}`,
      target === null ? null : activating(target, now),
    ]);
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

const activating = (target: string, now: EpochMs): Batch => [
  sql`INSERT INTO export_targets (id, is_active) VALUES (${target}, 1)
    ON CONFLICT (id) DO UPDATE SET is_active = 1, due_at = 0, failures = 0, problem = NULL`,
  EXPORT_KINDS.map((kind) => {
    const cursor = inserted({ target, kind, caught_up_at: now });
    return sql`INSERT INTO export_cursors ${cursor} ON CONFLICT (target, kind) DO NOTHING`;
  }),
];

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

/** What is exported: receipts, what was credited and taken back, events, and who changed what. Each is a folder of files. */
export const EXPORT_KINDS = ["receipts", "entries", "events", "changes"] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

const EXPORT_TABLES = {
  receipts: "ends",
  entries: "credits",
  events: "events",
  changes: "change_log",
} as const satisfies Record<ExportKind, NumberedTable>;

/** A row of the books as a line of a file. Neither prompts nor secrets are in the tables that it comes from. */
export interface ExportRow {
  readonly number: number;
  readonly at: EpochMs;
  /** JSON, without the line's end. */
  readonly line: string;
}

/** Rows behind `after`, up to `through`, in the order of their numbers. */
function selecting(kind: ExportKind, { after, through, since }: NumberRange, limit: number): SqlPart {
  const at = kind === "events" || kind === "changes" ? sql`created_at` : sql`at`;
  return sql`SELECT seq, ${at} AS at, balance_id AS balance, ${COLUMNS[kind]} FROM ${verbatim(EXPORT_TABLES[kind])}
    WHERE seq > ${after} AND seq <= ${through} AND ${at} >= ${since ?? 0}
      AND ${kind === "entries" ? sql`amount <> 0` : sql`TRUE`} ORDER BY seq LIMIT ${limit}`;
}

const COLUMNS = {
  receipts: sql`charged, written_off, lost, host_cost, body`,
  entries: sql`amount, idempotency_key AS reference, note, payment_id AS payment`,
  events: sql`id, kind, data`,
  changes: sql`id, by_kind, by_id, by_name, action, subject, was, became, network, request`,
} satisfies Record<ExportKind, SqlPart>;

export interface NumberRange {
  readonly after: number;
  readonly through: number;
  /** Only what began then or later. */
  readonly since?: EpochMs;
}

interface SelectedRow {
  readonly seq: number;
  readonly at: EpochMs;
  readonly balance: string;
}

interface EndRow extends SelectedRow {
  readonly charged: NanoUsd;
  readonly written_off: NanoUsd;
  readonly lost: NanoUsd;
  readonly host_cost: NanoUsd | null;
  readonly body: string;
}

interface EntryRow extends SelectedRow {
  readonly amount: NanoUsd;
  readonly reference: string;
  readonly note: string | null;
  readonly payment: string | null;
}

interface EventRow extends SelectedRow {
  readonly id: string;
  readonly kind: string;
  readonly data: string;
}

interface LoggedRow extends Omit<SelectedRow, "balance"> {
  readonly balance: string | null;
  readonly id: string;
  readonly by_kind: string;
  readonly by_id: string;
  readonly by_name: string | null;
  readonly action: string;
  readonly subject: string;
  readonly was: string;
  readonly became: string;
  readonly network: string;
  readonly request: string;
}

export const exportRow = (kind: ExportKind, row: unknown): ExportRow => {
  const { seq, at } = row as SelectedRow;
  return { number: seq, at, line: LINES[kind](row as never) };
};

const LINES = {
  receipts: ({ seq, balance, charged, written_off, lost, host_cost, body }: EndRow) =>
    joined(
      {
        number: seq,
        balance_id: balance,
        charged_nano_usd: charged,
        written_off_nano_usd: written_off,
        lost_nano_usd: lost,
        host_cost_nano_usd: host_cost,
      },
      withoutWords(body),
    ),
  entries({ seq, at, balance, amount, reference, note, payment }: EntryRow) {
    const ofBalance = `balance:${balance}`;
    return JSON.stringify({
      number: seq,
      created_at: isoTime(at),
      kind: amount > 0 ? "credit" : "debit",
      reference,
      balance_id: balance,
      debit: amount > 0 ? "funding" : ofBalance,
      credit: amount > 0 ? ofBalance : "funding",
      // Below zero, it was taken back.
      amount_nano_usd: amount,
      amount_usd: usdFromNano(amount),
      payment_id: payment,
      note,
    });
  },
  events: ({ seq, at, balance, id, kind, data }: EventRow) =>
    `${JSON.stringify({ number: seq, id, type: kind, timestamp: isoTime(at), balance_id: balance }).slice(0, -1)},"data":${data}}`,
  changes: ({ seq, at, balance, was, became, request, ...row }: LoggedRow) =>
    JSON.stringify({
      number: seq,
      id: row.id,
      at: isoTime(at),
      by: { kind: row.by_kind, id: row.by_id, name: row.by_name },
      action: row.action,
      subject: row.subject,
      balance_id: balance,
      before: JSON.parse(was),
      after: JSON.parse(became),
      network: row.network,
      request_id: request,
    }),
} satisfies Record<ExportKind, (row: never) => string>;

/** The receipt without what hosts said about failures, which may repeat the prompt. */
function withoutWords(body: string): string {
  // Most have none, and parsing takes ten times as long as this.
  if (!body.includes('"detail":"')) return body;
  const receipt = JSON.parse(body) as { readonly attempts?: readonly object[] };
  return JSON.stringify({
    ...receipt,
    attempts: receipt.attempts?.map((attempt) => ({ ...attempt, detail: null })),
  });
}

/** Members in front of those of a JSON object that has some. */
const joined = (members: object, json: string): string =>
  `${JSON.stringify(members).slice(0, -1)},${json.slice(1)}`;
