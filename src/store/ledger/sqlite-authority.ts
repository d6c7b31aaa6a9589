import type { Database } from "bun:sqlite";
import { type Grant, type Inquiry, LATE_MS, type Statement } from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import type { Clock } from "../../units/clock.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { sql } from "../database/statement.ts";
import { askingOthers, type OthersRow, openInquiries, retiring, settling } from "./grants.ts";

/** The Authority on SQLite, in the one process that writes the database. */
export class SqliteAuthority {
  private readonly db: SqliteDatabase;

  constructor(
    db: Database,
    private readonly clock: Pick<Clock, "now">,
    /** Nodes that have a lease. */
    private readonly alive: () => readonly string[],
    /** Asks the others. */
    private readonly recall: (asker: string, inquiry: Inquiry) => void,
  ) {
    this.db = new SqliteDatabase(db);
  }

  /** Settles the statements of several nodes; a node whose epoch is over gets that for its answer. */
  settle(batches: readonly (readonly Statement[])[]): (readonly Grant[] | EpochFenced)[] {
    return batches.map((statements) => {
      try {
        return this.settleOne(statements);
      } catch (error) {
        if (error instanceof EpochFenced) return error;
        throw error;
      }
    });
  }

  private settleOne(statements: readonly Statement[]): readonly Grant[] {
    const { db } = this;
    const granted = db.locked(settling(db, sql`${this.clock.now()}`, statements));
    const isAlive = sql`node IN ${db.among(this.alive())}`;
    const { query, decided } = askingOthers(db, isAlive, statements, granted);
    const { grants, recalled } = decided(query.flatMap((one) => db.answer<OthersRow>(one)));
    for (const { counter, inquiry } of recalled) this.recall(statements[0]!.ledger, { counter, inquiry });
    return grants;
  }

  retire(node: string, counters: readonly CounterId[]): void {
    this.db.answer(retiring(this.db, node, counters));
  }

  inquiries(node: string): Inquiry[] {
    return this.db.answer<Inquiry>(openInquiries(node, sql`${this.clock.now() - LATE_MS}`));
  }
}
