import { StoreContended } from "../../units/errors/bookkeeping.ts";
import { TurnLines } from "../../units/turn-lines.ts";
import type { NotedChange } from "../nodes/changes.ts";
import {
  type Batch,
  type CommitStatement,
  flattened,
  type SqlPart,
  type SqlValue,
  sql,
} from "./statement.ts";

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
  /** A statement that makes all others wait that name the same, until the transaction ends; none where all do anyway. */
  abstract lock(name: string): readonly SqlPart[];
  /**
   * Each word of a column of counters in `ends`, as a line of the audit: `account, 0, amount, 0`. A word may be
   * `counter=amount`; otherwise the amount is that column.
   */
  abstract wordsOf(column: "counters" | "allowances", amount: string): SqlPart;
  /** A member of a receipt's body, as text. */
  abstract member(name: "model" | "model_requested" | "host" | "error_code"): SqlPart;
  /** A list of values, as a table with the column `value`. */
  abstract among(values: readonly string[]): SqlPart;
  /** Rows, as a table with columns of these types; has to be given a name. */
  abstract table<Column extends string>(
    rows: readonly Readonly<Record<Column, string | number>>[],
    columns: Readonly<Record<Column, "TEXT" | "BIGINT">>,
  ): SqlPart;

  /**
   * The number up to which all rows of the table can be read: none will come between them any more. Null where that is not
   * known yet.
   */
  abstract settledThrough(table: NumberedTable): Promise<number | null>;

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

/** What a few statements decide: under locks, where these lock what they read, or to be committed. */
export interface Planned<Result> {
  readonly reads: readonly SqlPart[];
  /** By the rows of each. */
  decide(rows: readonly (readonly unknown[])[]): DecidedChange<Result>;
}

/** Ends the transaction in which a statement changed another number of rows than it must. */
export class CommitConflict extends Error {}

/** For a turn to change the same rows. */
const MAX_WAITING = 5_000;
/** Each round, somebody else has come through. */
const MAX_ROUNDS = 200;
