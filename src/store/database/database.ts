import { StoreContended } from "../../units/errors/bookkeeping.ts";
import { TurnLines } from "../../units/turn-lines.ts";
import type { NotedChange } from "../nodes/changes.ts";
import type { WorkLimits } from "./postgres.ts";

/**
 * What the stores are written on. A change reads, decides, and commits statements that each say how many rows they must
 * change. Where one changes another number, somebody else came first: nothing is written, and the change reads and decides
 * again.
 */
export abstract class Database {
  private readonly turns: TurnLines;

  constructor(maxWaiting = MAX_WAITING) {
    this.turns = new TurnLines(maxWaiting);
  }

  /** Ends a SELECT: other transactions wait, and what is read is as durable as any commit. */
  abstract readonly forUpdate: SqlPart;
  /** Ends a SELECT: the rows are not deleted before the transaction ends. */
  abstract readonly forReference: SqlPart;

  abstract rows<Row>(statement: SqlPart, deadlineMs?: number): Promise<Row[]>;
  protected abstract attempt(
    statements: readonly CommitStatement[],
    options: CommitOptions,
  ): Promise<Committed | null>;
  abstract transact<Result>(steps: () => Steps<Result>, limits?: WorkLimits): Result | Promise<Result>;
  /** A statement that makes all others wait that name the same, until the transaction ends; none where all do anyway. */
  abstract lock(name: string): readonly SqlPart[];
  /**
   * Each word of a column of counters in `ends`, as a line of the audit: `account, 0, amount, 0`. A word may be
   * `counter=amount`; otherwise the amount is that column.
   */
  abstract wordsOf(column: "counters" | "allowances", amount: string): SqlPart;
  /** A member of a receipt's body, as text. */
  abstract member(name: "model" | "model_requested" | "host" | "error_code" | "run"): SqlPart;
  /** A list of values, as a table with the column `value`. */
  abstract among(values: readonly string[]): SqlPart;
  /** Rows, as a table with columns of these types; has to be given a name. */
  abstract table<Column extends string>(
    rows: readonly Readonly<Record<Column, string | number | null>>[],
    columns: Readonly<Record<Column, "TEXT" | "BIGINT">>,
  ): SqlPart;

  /**
   * The number up to which all rows of the table can be read: none will come between them any more. Null where that is not
   * known yet.
   */
  abstract settledThrough(table: NumberedTable): Promise<number | null>;

  /** Resolves once everything that was read is as durable as a commit; at once where nobody reads what is not. */
  async settled(): Promise<void> {}

  /** One statement by itself. Its rows have the names and types of their columns. */
  read<Row>(texts: TemplateStringsArray, ...values: SqlValue[]): Promise<Row[]> {
    return this.rows<Row>(sql(texts, ...values));
  }

  /**
   * All of the statements or none; durable when it resolves, and no node acts on what was before. Returns how many rows
   * each has changed; null where one did not change as many as it must, or a row is there already.
   */
  async commit(batch: Batch, options: CommitOptions = {}): Promise<readonly number[] | null> {
    const committed = await this.attempt(flattened(batch), options);
    await committed?.durable();
    return committed?.rows ?? null;
  }

  async decided<Result>({ reads, decide }: Planned<Result>): Promise<DecidedChange<Result>> {
    const rows: unknown[][] = [];
    for (const read of reads) rows.push(await this.rows(read));
    return decide(rows);
  }

  /**
   * Commits what is decided, which may be decided more than once. Changes of this process that name the same `subject` take
   * turns: they would otherwise compete with each other as well as with other processes.
   */
  async change<Result>(subject: string, decide: () => Promise<DecidedChange<Result>>): Promise<Result> {
    const end = await this.turns.take(subject);
    if (end === null) throw new StoreContended("too many requests wait to change the same rows");
    let committed: Committed | null;
    let decision: DecidedChange<Result>;
    let rounds = 0;
    try {
      do {
        if (rounds++ === MAX_ROUNDS)
          throw new StoreContended(`other processes changed the same rows ${MAX_ROUNDS} times`);
        decision = await decide();
        const statements = flattened(decision.statements ?? []);
        if (statements.length === 0) return decision.result;
        committed = await this.attempt(statements, decision);
      } while (committed === null);
    } finally {
      end();
    }
    await committed.durable();
    return decision.result;
  }
}

/** Tables whose rows have a number, `seq`, in the order of their booking. */
export type NumberedTable = "ends" | "credits" | "events" | "change_log";

export interface CommitOptions {
  /** What nodes must notice. */
  readonly changes?: readonly NotedChange[];
  /** Called in the turn in which the statements are sent; where it is false, that is a conflict. */
  readonly confirm?: () => boolean;
  /** Called in the turn of the commit where the database is this process's own; otherwise, once it is known. */
  readonly committed?: () => void;
}

export interface DecidedChange<Result> extends CommitOptions {
  readonly result: Result;
  /** Without any, nothing is written. */
  readonly statements?: Batch;
}

export interface Committed {
  /** How many rows each statement has changed. */
  readonly rows: readonly number[];
  /** Resolves once the commit is durable, and noticed by all nodes. */
  durable(): Promise<void>;
}

/** What a few statements decide, to be committed. */
export interface Planned<Result> {
  readonly reads: readonly SqlPart[];
  /** By the rows of each. */
  decide(rows: readonly (readonly unknown[])[]): DecidedChange<Result>;
}

/**
 * A transaction, step by step, for both databases. The statements of a step are performed in one go, and the step gets the
 * rows of each. What it throws undoes the transaction. It may have to be repeated, so it changes nothing else.
 */
export type Steps<Result> = Generator<
  readonly (CommitStatement | EachRow)[],
  Result,
  readonly (readonly unknown[])[]
>;

/** A statement for each of many rows: one over all of them in PostgreSQL, and in SQLite, which is faster so, row by row. */
export class EachRow<Column extends string = string> {
  constructor(
    /** The first one orders the rows, so that transactions lock what they write in one order. */
    readonly columns: Readonly<Record<Column, "TEXT" | "BIGINT">>,
    /** In the order of the columns. */
    readonly rows: readonly (readonly (string | number | null)[])[],
    readonly write: (row: RowParts<Column>) => SqlPart,
    /** The step gets the first column of the rows for which the statement has changed something. */
    readonly returnsChanged = false,
  ) {}
}

interface RowParts<Column extends string> {
  /** Behind `INSERT INTO table (columns)`. */
  readonly source: SqlPart;
  /** Behind the SET of an UPDATE. */
  readonly from: SqlPart;
  cell(column: Column): SqlPart;
}

/** Ends the transaction in which a statement changed another number of rows than it must. */
export class CommitConflict extends Error {}

/** For a turn to change the same rows. */
const MAX_WAITING = 5_000;
/** Each round, somebody else has come through. */
const MAX_ROUNDS = 200;

/** A statement, or a part of one: its text, with values in between, of which some may be parts themselves. */
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

export type SqlValue = string | number | null | SqlPart;

export const sql = (texts: TemplateStringsArray, ...values: SqlValue[]): SqlPart =>
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
  sql`coalesce((SELECT created_at FROM ${verbatim(table)} WHERE id = ${id}), ${Number.MAX_SAFE_INTEGER}),
    coalesce(CAST(${id} AS TEXT), '')`;

type SqlRow = Readonly<Record<string, string | number | null>>;

/** A statement of a commit, with the number of rows that it must change, or find if it only `finds`. */
export interface Expected {
  readonly part: SqlPart;
  readonly rows: number;
  readonly finds?: true;
}

/** A bare statement may change any number of rows. */
export type CommitStatement = SqlPart | Expected;

/** What is committed, in order; what is not needed is null or undefined. */
export type Batch = readonly (CommitStatement | Batch | null | undefined)[];

export const flattened = (batch: Batch): readonly CommitStatement[] =>
  batch.flatMap((one) => (Array.isArray(one) ? flattened(one) : ((one ?? []) as CommitStatement)));

export const changes = (rows: number, part: SqlPart): Expected => ({ part, rows });
export const changesOne = (part: SqlPart): Expected => changes(1, part);
export const finds = (rows: number, part: SqlPart): Expected => ({ part, rows, finds: true });

/** For a row that people change. */
export interface VersionedRow {
  readonly id: string;
  readonly version: number;
}

/** Counts the change of a row that people change; a conflict where somebody else has changed it since it was read. */
export const touch = (table: "accounts" | "balances", { id, version }: VersionedRow): Expected =>
  changesOne(
    sql`UPDATE ${verbatim(table)} SET version = version + 1 WHERE id = ${id} AND version = ${version}`,
  );
