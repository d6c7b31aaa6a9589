import type { NotedChange } from "../changes.ts";

/** A part of a statement: its text, with values in between, of which some may be parts themselves. */
export class SqlPart {
  constructor(
    private readonly texts: readonly string[],
    private readonly values: readonly SqlValue[],
  ) {}

  /** As a database takes it: `placeholder` is what it calls the value of this number, from 1. */
  written(placeholder: (number: number) => string): WrittenSql {
    const values: (string | number | null)[] = [];
    const write = (part: SqlPart): string =>
      part.texts.reduce((text, next, at) => {
        const value = part.values[at - 1]!;
        return text + (value instanceof SqlPart ? write(value) : placeholder(values.push(value))) + next;
      });
    return { text: write(this), values };
  }
}

export interface WrittenSql {
  readonly text: string;
  readonly values: (string | number | null)[];
}

type SqlValue = string | number | null | SqlPart;

export const part = (texts: TemplateStringsArray, ...values: SqlValue[]): SqlPart =>
  new SqlPart(texts, values);

/** What is in the code, never a value. */
export const verbatim = (text: string): SqlPart => new SqlPart([text], []);

/** `("a", "b") VALUES (1, 2)` */
export function inserted(row: SqlRow): SqlPart {
  const names = Object.keys(row).map((name) => `"${name}"`);
  const texts = names.map((_, at) => (at === 0 ? `(${names.join(", ")}) VALUES (` : ", "));
  return new SqlPart([...texts, ")"], Object.values(row));
}

/** `"a" = 1, "b" = 2` */
export function assigned(row: SqlRow): SqlPart {
  const texts = Object.keys(row).map((name, at) => `${at === 0 ? "" : ", "}"${name}" = `);
  return new SqlPart([...texts, ""], Object.values(row));
}

/** Where a page begins behind the row of that id, newest first; with null, at the start. */
export const behind = (table: string, id: string | null): SqlPart =>
  part`coalesce((SELECT created_at FROM ${verbatim(table)} WHERE id = ${id}), ${Number.MAX_SAFE_INTEGER}),
    coalesce(CAST(${id} AS TEXT), '')`;

type SqlRow = Readonly<Record<string, string | number | null>>;

/**
 * What a transaction does, written once for both databases: each statement is yielded, and its rows come back. SQLite
 * takes all steps in one turn, so nobody comes between them; PostgreSQL awaits each.
 */
export type Steps<Result> = Generator<SqlPart, Result, unknown>;

/** One statement among the steps of a transaction. Its rows have the names and types of their columns. */
export function* sql<Row>(texts: TemplateStringsArray, ...values: SqlValue[]): Steps<Row[]> {
  return (yield new SqlPart(texts, values)) as Row[];
}

/** A database that stores are written on. */
export interface SqlDatabase {
  /** One statement by itself. */
  query<Row>(texts: TemplateStringsArray, ...values: SqlValue[]): Promise<Row[]>;
  /** Steps that write nothing; in PostgreSQL, with so much time. */
  read<Result>(steps: () => Steps<Result>, deadlineMs?: number): Promise<Result>;
  /** All of the steps or none. PostgreSQL may begin them anew. */
  write<Result>(steps: () => Steps<Result>, options?: WriteOptions<Result>): Promise<Result>;
  /** The same; resolves once what was written is durable, and no node acts on what was before. */
  change<Result>(
    steps: () => Steps<NotedResult<Result>>,
    isolation?: WriteOptions<Result>["isolation"],
  ): Promise<Result>;
  /** Nobody else takes this until the transaction ends. */
  lock(name: string): Steps<void>;
  /** Ends a SELECT: its rows are this transaction's until it ends. */
  readonly forUpdate: SqlPart;
  /** The same of those that nobody else has. */
  readonly skipLocked: SqlPart;
  /** Its rows stay until it ends. */
  readonly forReference: SqlPart;
  /** A list of values, as a table. */
  among(values: readonly string[]): SqlPart;
  /** Rows, as a table with columns of these types; has to be given a name. */
  table<Column extends string>(
    rows: readonly Readonly<Record<Column, string | number>>[],
    columns: Readonly<Record<Column, "TEXT" | "BIGINT">>,
  ): SqlPart;
}

export interface WriteOptions<Result> {
  /** In PostgreSQL; otherwise whoever waited for a lock sees what was committed meanwhile. */
  readonly isolation?: "serializable";
  /** Called in the turn of the commit where the database is this process's own; otherwise, once it is known. */
  readonly committed?: (result: Result) => void;
}

export interface NotedResult<Result> {
  readonly result: Result;
  /** What nodes must notice. */
  readonly changes: readonly NotedChange[];
}
