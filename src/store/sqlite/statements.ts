import type { Database } from "bun:sqlite";
import { refused } from "../../units/errors/refusal.ts";
import {
  type NotedResult,
  part,
  type SqlDatabase,
  SqlPart,
  type Steps,
  verbatim,
  type WriteOptions,
  type WrittenSql,
} from "../sql/statement.ts";

/** A connection to SQLite. A change is one immediate transaction; what must be noticed is its caller's to tell. */
export class SqliteStatements implements SqlDatabase {
  readonly forUpdate = part``;
  readonly skipLocked = part``;
  readonly forReference = part``;
  /** By text, of which there are as many as in the code. */
  private readonly prepared = new Map<string, ReturnType<Database["prepare"]>>();

  /** Made once: that costs as much as a few statements. */
  private readonly whole;

  constructor(
    protected readonly db: Database,
    /** Where the connection does not sync at commit: resolves once what was committed is durable. */
    private readonly durable: () => Promise<void> = async () => {},
  ) {
    this.whole = db.transaction((run: () => void) => run());
  }

  async query<Row>(...[texts, ...values]: Parameters<typeof part>): Promise<Row[]> {
    return this.rows(new SqlPart(texts, values)) as Row[];
  }

  async read<Result>(steps: () => Steps<Result>): Promise<Result> {
    return this.db.transaction(() => this.take(steps()))();
  }

  async write<Result>(steps: () => Steps<Result>, { committed }: WriteOptions<Result> = {}): Promise<Result> {
    const result = this.commit(steps);
    committed?.(result);
    return result;
  }

  async change<Result>(steps: () => Steps<NotedResult<Result>>): Promise<Result> {
    const { result } = this.commit(steps);
    // Nothing was written.
    if (!refused(result)) await this.durable();
    return result;
  }

  *lock(): Steps<void> {}

  among(values: readonly string[]): SqlPart {
    return part`(SELECT value FROM json_each(${JSON.stringify(values)}))`;
  }

  table(rows: readonly object[], columns: Readonly<Record<string, string>>): SqlPart {
    const named = Object.keys(columns).map((name) => `value ->> '${name}' AS ${name}`);
    return part`(SELECT ${verbatim(named.join(", "))} FROM json_each(${JSON.stringify(rows)}))`;
  }

  /** All of the steps or none, before it returns. */
  commit<Result>(steps: () => Steps<Result>): Result {
    let result: Result;
    this.whole.immediate(() => {
      result = this.take(steps());
    });
    return result!;
  }

  /** One after another, in the turn of the caller. */
  take<Result>(steps: Steps<Result>): Result {
    let step = steps.next();
    while (!step.done) step = steps.next(this.rows(step.value));
    return step.value;
  }

  private rows(statement: SqlPart): unknown[] {
    return this.answer(statement.written(() => "?"));
  }

  answer({ text, values }: WrittenSql): unknown[] {
    let prepared = this.prepared.get(text);
    if (prepared === undefined) this.prepared.set(text, (prepared = this.db.prepare(text)));
    return prepared.all(...values);
  }
}
