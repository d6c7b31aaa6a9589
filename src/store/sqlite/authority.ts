import type { Database } from "bun:sqlite";
import { type Grant, type Inquiry, LATE_MS, type Statement } from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/membership.ts";
import type { Clock } from "../../units/clock.ts";
import {
  type DecidedGrants,
  type GrantTerms,
  openInquiries,
  retireGrants,
  settleSteps,
} from "../sql/grants.ts";
import { part, type Steps, sql } from "../sql/statement.ts";
import { SqliteStatements } from "./statements.ts";

/** The Authority on SQLite, in the one process that writes the database: what is settled together is one transaction. */
export class SqliteAuthority {
  private readonly db: SqliteStatements;

  constructor(
    db: Database,
    private readonly clock: Pick<Clock, "now">,
    /** Nodes that have a lease. */
    private readonly alive: () => readonly string[],
    /** Asks the others. */
    private readonly recall: (asker: string, inquiry: Inquiry) => void,
  ) {
    this.db = new SqliteStatements(db);
  }

  /** Settles the statements of several nodes; a node whose epoch is over gets that for its answer. */
  settle(batches: readonly (readonly Statement[])[]): (Grant[] | EpochFenced)[] {
    const settled = this.db.commit(() => this.settleAll(batches));
    return settled.map((settlement, index) => {
      if (settlement instanceof EpochFenced) return settlement;
      const { grants, recalled } = settlement;
      for (const { counter, inquiry } of recalled)
        this.recall(batches[index]![0]!.ledger, { counter, inquiry });
      return grants;
    });
  }

  retire(node: string, counters: readonly CounterId[]): void {
    this.db.commit(() => retireGrants(this.db, node, counters));
  }

  inquiries(node: string): Inquiry[] {
    const since = part`${this.clock.now() - LATE_MS}`;
    return this.db.take(sql<Inquiry>`${openInquiries(node, since)}`);
  }

  private *settleAll(batches: readonly (readonly Statement[])[]): Steps<(DecidedGrants | EpochFenced)[]> {
    const terms: GrantTerms = {
      isAlive: part`node IN ${this.db.among(this.alive())}`,
      now: part`${this.clock.now()}`,
    };
    const settled: (DecidedGrants | EpochFenced)[] = [];
    for (const statements of batches) {
      try {
        settled.push(yield* settleSteps(this.db, terms, statements));
      } catch (error) {
        if (!(error instanceof EpochFenced)) throw error;
        settled.push(error);
      }
    }
    return settled;
  }
}
