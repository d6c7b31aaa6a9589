import { readFileSync } from "node:fs";
import type { Cell } from "../units/csv.ts";
import { redacted } from "../units/redacted.ts";
import { CommandFailure, EXIT, type ExitCode } from "./failure.ts";

/** Where a command runs: everything outside of it that it reads or writes. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly fetch: typeof fetch;
  /** Runs the gateway in this process; resolves when it serves. */
  serve(): Promise<void>;
  /** All of standard input. */
  input(): Promise<string>;
  out(text: string): void;
  err(text: string): void;
  /** Columns of the terminal that `err` writes to; null when it is none, and then nothing moves there. */
  readonly columns: number | null;
}

/**
 * Results for people as text, or with `--json` for programs: one JSON document on stdout and nothing else
 * there.
 */
export function show(context: CommandContext, json: boolean, value: unknown, lines: readonly string[]): void {
  context.out(json ? `${JSON.stringify(value, null, 2)}\n` : lines.map((line) => `${line}\n`).join(""));
}

/** What failed and the next step, on stderr; returns the exit code. */
export function showFailure(context: CommandContext, json: boolean, error: unknown): ExitCode {
  const failure = error instanceof CommandFailure ? error : new CommandFailure(EXIT.found, messageOf(error));
  const { message, next, exitCode } = failure;
  context.err(
    redacted(
      json
        ? `${JSON.stringify({ error: { message, next, exit_code: exitCode } })}\n`
        : `error: ${message}\n${next === null ? "" : `${next}\n`}`,
    ),
  );
  return exitCode;
}

export function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandFailure(EXIT.usage, `cannot read ${path}: ${messageOf(error)}`);
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Columns as wide as their longest cell; numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const texts = [head, ...rows.map((row) => row.map(cellText))];
  const widths = head.map((_, column) => Math.max(...texts.map((row) => row[column]!.length)));
  const right = head.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] !== "string"),
  );
  return texts.map((row) =>
    row
      .map((cell, column) => (right[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
}

/** By heading: the name of a row's member, or a function of the row. */
export type Columns<Row> = Readonly<Record<string, CellOf<Row> | ((row: Row) => Cell)>>;
type CellOf<Row> = { [Name in keyof Row]-?: Row[Name] extends Cell | undefined ? Name : never }[keyof Row];

export const tableOf = <Row>(columns: Columns<Row>, rows: readonly Row[]): string[] =>
  table(
    Object.keys(columns),
    rows.map((row) =>
      Object.values(columns).map((column) =>
        typeof column === "function" ? column(row) : ((row[column] as Cell | undefined) ?? null),
      ),
    ),
  );

const cellText = (cell: Cell): string => (cell === null ? "-" : printable(String(cell)));

/**
 * Names are whatever their owners wrote: no control character of theirs may reach the operator's terminal.
 */
export const printable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\uFFFD");

/** "1 model", "3 models". */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** `name  value` lines. */
export function pairs(rows: readonly (readonly [string, Cell])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${cellText(value)}`);
}

/** `name  value` lines of an answer's members. */
export const members = (of: object): string[] =>
  pairs(Object.entries(of).map(([name, value]) => [name, memberText(value)]));

function memberText(value: unknown): Cell {
  if (value === null || typeof value === "string" || typeof value === "number") return value;
  const isWords = Array.isArray(value) && value.every((one) => typeof one === "string");
  return isWords ? value.join(", ") : JSON.stringify(value);
}
