import type { Database } from "bun:sqlite";
import { EpochFenced } from "../../ledger/membership.ts";
import { fileOffsets, type Unapplied } from "../journal/journal.ts";
import type { LedgerStore } from "./sqlite-ledger-store.ts";

/** The books in SQLite where several nodes spend: their ends leave what they were granted, and enter what is spent. */
export class NodeLedger {
  private readonly statements;

  constructor(
    private readonly db: Database,
    private readonly ledger: LedgerStore,
  ) {
    this.statements = prepare(db);
  }

  /**
   * Books a batch of a node's ends and the place up to which its journal is now known, in one transaction. An
   * end that is booked already changes nothing: its receipt is there, or, where that is deleted by now, its
   * place in the journal is known. Unlike grants, ends may still be shipped for an epoch that was closed: they
   * happened.
   */
  ship(node: string, epoch: number | null, batch: readonly Unapplied[]): void {
    if (batch.length === 0) return;
    const { statements } = this;
    this.db
      .transaction(() => {
        if (epoch !== null && statements.epoch.get(node)?.epoch !== epoch)
          throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
        const reached = this.reached(node);
        const spent = this.ledger.book(batch.filter(({ file, bytes }) => bytes > (reached.get(file) ?? 0)));
        for (const [counter, amount] of spent) {
          const { changes } = statements.ship.run(amount, counter, node);
          if (changes > 0) statements.release.run(amount, counter);
        }
        for (const [file, bytes] of fileOffsets(batch)) statements.reach.run(node, file, bytes);
      })
      .immediate();
  }

  /** How far each of the node's journal files was shipped, in bytes. */
  reached(node: string): Map<number, number> {
    return new Map(this.statements.reached.all(node).map(({ file, bytes }) => [file, bytes]));
  }

  forgetReachedBefore(node: string, file: number): void {
    this.statements.forgetReached.run(node, file);
  }
}

function prepare(db: Database) {
  return {
    epoch: db.query<{ epoch: number }, [string]>("SELECT epoch FROM nodes WHERE name = ?"),
    ship: db.query<never, [number, string, string]>(
      "UPDATE grants SET shipped = shipped + ? WHERE counter = ? AND node = ?",
    ),
    release: db.query<never, [number, string]>("UPDATE counters SET reserved = reserved - ? WHERE id = ?"),
    reach: db.query<never, [string, number, number]>(
      `INSERT INTO shipped (node, file, bytes) VALUES (?, ?, ?)
       ON CONFLICT (node, file) DO UPDATE SET bytes = max(bytes, excluded.bytes)`,
    ),
    reached: db.query<{ file: number; bytes: number }, [string]>(
      "SELECT file, bytes FROM shipped WHERE node = ?",
    ),
    forgetReached: db.query<never, [string, number]>("DELETE FROM shipped WHERE node = ? AND file < ?"),
  };
}
