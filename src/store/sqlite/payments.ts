import type { Database } from "bun:sqlite";
import type { Credit } from "../../ledger/credit.ts";
import type { Clock } from "../../units/clock.ts";
import { SqlPaymentStore } from "../sql/payment-store.ts";
import type { LedgerStore } from "./ledger-store.ts";
import { SqliteStatements } from "./statements.ts";

/** Payments in SQLite. Where the connection syncs at every commit, durable. */
export function sqlitePayments(
  db: Database,
  ledger: Pick<LedgerStore, "credit">,
  clock: Pick<Clock, "now">,
  credited: (credit: Credit) => void = () => {},
): SqlPaymentStore {
  // biome-ignore lint/correctness/useYield: the ledger takes its own statements, in the same transaction.
  const enter = function* (credit: Credit) {
    const done = ledger.credit(credit);
    return done === null ? null : (done.repeated ?? credit);
  };
  return new SqlPaymentStore(new SqliteStatements(db), clock, enter, credited);
}

/** Where nobody else is at them: what the process before had claimed is due. */
export function soleSqlitePayments(...parts: Parameters<typeof sqlitePayments>): SqlPaymentStore {
  const [db, , clock] = parts;
  db.run("UPDATE payments SET look_at = ?1 WHERE look_at > ?1", [clock.now()]);
  return sqlitePayments(...parts);
}
