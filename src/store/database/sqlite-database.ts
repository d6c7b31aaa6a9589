import { type Database as Connection, SQLiteError } from "bun:sqlite";
import {
  CommitConflict,
  type CommitOptions,
  type CommitStatement,
  type Committed,
  Database,
  EachRow,
  SqlPart,
  type Steps,
  sql,
  verbatim,
  type WrittenSql,
} from "./database.ts";

/** A connection to SQLite. Nobody comes between the statements of a commit; what nodes must notice is its caller's to announce. */
export class SqliteDatabase extends Database {
  readonly forUpdate = sql``;
  readonly forReference = sql``;
  /** By text, of which there are as many as in the code. */
  private readonly prepared = new Map<string, ReturnType<Connection["prepare"]>>();

  /** Made once: that costs as much as a few statements. */
  private readonly whole;

  constructor(
    protected readonly db: Connection,
    /** Where the connection does not sync at commit: resolves once what was committed is durable. */
    private readonly durable: () => Promise<void> = async () => {},
    maxWaiting?: number,
  ) {
    super(maxWaiting);
    this.whole = db.transaction((run: () => unknown) => run());
  }

  async rows<Row>(statement: SqlPart): Promise<Row[]> {
    return this.answer<Row>(statement);
  }

  protected async attempt(
    statements: readonly CommitStatement[],
    { confirm, committed }: CommitOptions,
  ): Promise<Committed | null> {
    if (confirm?.() === false) return null;
    const rows = this.commitNow(statements.map(writtenFor));
    if (rows === null) return null;
    committed?.();
    return { rows, durable: this.durable };
  }

  lock(): readonly SqlPart[] {
    return [];
  }

  member(name: string): SqlPart {
    return verbatim(`body ->> '${name}'`);
  }

  among(values: readonly string[]): SqlPart {
    return sql`(SELECT value FROM json_each(${JSON.stringify(values)}))`;
  }

  table(rows: readonly object[], columns: Readonly<Record<string, string>>): SqlPart {
    const named = Object.keys(columns).map((name) => `value ->> '${name}' AS ${name}`);
    return sql`(SELECT ${verbatim(named.join(", "))} FROM json_each(${JSON.stringify(rows)}))`;
  }

  wordsOf(column: string, amount: string): SqlPart {
    return verbatim(`SELECT substr(value, 1, instr(value || '=', '=') - 1), 0,
      coalesce(CAST(nullif(substr(value, instr(value || '=', '=') + 1), '') AS INTEGER), ${amount}), 0
      FROM ends, json_each('["' || replace(${column}, ' ', '","') || '"]') WHERE ${column} <> ''`);
  }

  /** Transactions that write come one after another. */
  async settledThrough(): Promise<number> {
    return Number.MAX_SAFE_INTEGER;
  }

  /** Before it returns. */
  answer<Row>(statement: SqlPart): Row[] {
    const { text, values } = statement.written(() => "?");
    return this.statement(text).all(...values) as Row[];
  }

  /** As `commit`, before it returns. */
  commitNow(statements: readonly WrittenStatement[]): readonly number[] | null {
    try {
      return this.atOnce(() => statements.map((statement) => this.perform(statement)), "immediate");
    } catch (error) {
      if (error instanceof CommitConflict || isTaken(error)) return null;
      throw error;
    }
  }

  /** Before it returns. */
  transact<Result>(steps: () => Steps<Result>): Result {
    return this.atOnce(() => {
      const running = steps();
      let step = running.next();
      while (!step.done) step = running.next(step.value.map((one) => this.stepped(one)));
      return step.value;
    }, "immediate");
  }

  /** In one transaction: what `run` reads is of one moment. One that writes takes the write lock first. */
  atOnce<Result>(run: () => Result, kind: "deferred" | "immediate" = "deferred"): Result {
    return this.whole[kind](run) as Result;
  }

  private stepped(one: CommitStatement | EachRow): unknown[] {
    if (one instanceof SqlPart) return this.answer(one);
    if (one instanceof EachRow) return this.writeEach(one);
    this.perform(writtenFor(one));
    return [];
  }

  private writeEach({ columns, rows, write, returnsChanged }: EachRow): unknown[] {
    if (rows.length === 0) return [];
    const names = Object.keys(columns);
    const marks = names.map((_, at) => `?${at + 1}`);
    const part = write({
      source: verbatim(`VALUES (${marks.join(", ")})`),
      from: sql``,
      cell: (column) => verbatim(marks[names.indexOf(column)]!),
    });
    const { text, values } = part.written((number) => `?${names.length + number}`);
    const statement = this.statement(text);
    const written: unknown[] = [];
    for (const row of rows) {
      const { changes } = values.length === 0 ? statement.run(...row) : statement.run(...row, ...values);
      if (returnsChanged && changes > 0) written.push({ [names[0]!]: row[0]! });
    }
    return written;
  }

  private perform({ text, values, rows, finds }: WrittenStatement): number {
    const statement = this.statement(text);
    const changed = finds ? statement.all(...values).length : statement.run(...values).changes;
    if (rows !== null && changed !== rows) throw new CommitConflict();
    return changed;
  }

  private statement(text: string) {
    return this.prepared.getOrInsertComputed(text, () => this.db.prepare(text));
  }
}

export interface WrittenStatement extends WrittenSql {
  /** Null for any number. */
  readonly rows: number | null;
  readonly finds?: true;
}

export const writtenFor = (statement: CommitStatement): WrittenStatement => {
  if (statement instanceof SqlPart) return { ...statement.written(() => "?"), rows: null };
  const { part, ...expected } = statement;
  return { ...part.written(() => "?"), ...expected };
};

const isTaken = (error: unknown): boolean =>
  error instanceof SQLiteError && /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)$/.test(error.code ?? "");
