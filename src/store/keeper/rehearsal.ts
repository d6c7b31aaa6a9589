import type { Database } from "bun:sqlite";
import type { NotedChange } from "../changes.ts";
import type { WrittenSql } from "../sql/statement.ts";
import type { SqliteRegistry } from "../sqlite/registry.ts";
import { SqliteStatements } from "../sqlite/statements.ts";

/**
 * A transaction is decided in the node, by the functions that its stores are given, and the database is the keeper's. So
 * the node rehearses it on what it reads there, and tells each statement with what that was answered; the keeper performs
 * it if every statement is answered the same, and else tells the first other answer, on which the node rehearses again.
 */
export interface RehearsedStatement extends WrittenSql {
  /** Null where only the keeper can tell. */
  readonly rows: readonly unknown[] | null;
}

/** The change that nodes must notice, null for none; or which statement was answered otherwise, and nothing was written. */
export type Performed =
  | { readonly version: number | null }
  | { readonly at: number; readonly rows: readonly unknown[] };

/** The keeper's side: durable when it resolves. */
export function performing(db: Database, registry: SqliteRegistry, durable: () => Promise<void>) {
  const database = new SqliteStatements(db);
  const perform = db.transaction((statements: readonly RehearsedStatement[]) => {
    for (const [at, statement] of statements.entries()) {
      const rows = database.answer(statement);
      if (JSON.stringify(rows) !== JSON.stringify(statement.rows)) throw new AnsweredOtherwise(at, rows);
    }
  });
  return async (
    statements: readonly RehearsedStatement[],
    changes: readonly NotedChange[],
  ): Promise<Performed> => {
    try {
      perform.immediate(statements);
    } catch (error) {
      if (error instanceof AnsweredOtherwise) return { at: error.at, rows: error.rows };
      throw error;
    }
    await durable();
    return { version: changes.length === 0 ? null : registry.note(changes) };
  };
}

/** Thrown within the transaction, which ends it. */
class AnsweredOtherwise extends Error {
  constructor(
    readonly at: number,
    readonly rows: readonly unknown[],
  ) {
    super("a statement was answered otherwise");
  }
}
