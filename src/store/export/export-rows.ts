import { type EpochMs, isoTime } from "../../units/clock.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { NumberedTable } from "../database/database.ts";
import { type SqlPart, sql } from "../database/statement.ts";

/** What is exported: receipts, what was credited and taken back, events, and who changed what. Each is a folder of files. */
export const EXPORT_KINDS = ["receipts", "entries", "events", "changes"] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

export const EXPORT_TABLES = {
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
export function selecting(kind: ExportKind, { after, through, since }: NumberRange, limit: number): SqlPart {
  const at = kind === "events" || kind === "changes" ? sql`created_at` : sql`at`;
  const range = sql`seq > ${after} AND seq <= ${through} AND ${at} >= ${since ?? 0}`;
  switch (kind) {
    case "receipts":
      return sql`SELECT seq, at, balance_id AS balance, charged, written_off, lost, body FROM ends
        WHERE ${range} ORDER BY seq LIMIT ${limit}`;
    case "entries":
      return sql`SELECT seq, at, balance_id AS balance, amount, idempotency_key AS reference, note,
        payment_id AS payment FROM credits WHERE ${range} AND amount <> 0 ORDER BY seq LIMIT ${limit}`;
    case "events":
      return sql`SELECT seq, created_at AS at, balance_id AS balance, id, kind, data FROM events
        WHERE ${range} ORDER BY seq LIMIT ${limit}`;
    case "changes":
      return sql`SELECT seq, created_at AS at, balance_id AS balance, id, by_kind, by_id, by_name, action, subject, was,
        became, network, request FROM change_log WHERE ${range} ORDER BY seq LIMIT ${limit}`;
  }
}

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
  receipts: ({ seq, balance, charged, written_off, lost, body }: EndRow) =>
    joined(
      {
        number: seq,
        balance_id: balance,
        charged_nano_usd: charged,
        written_off_nano_usd: written_off,
        lost_nano_usd: lost,
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
