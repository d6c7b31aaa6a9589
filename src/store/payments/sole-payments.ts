import type { Database } from "bun:sqlite";
import type { Credit } from "../../ledger/credit.ts";
import type { Clock } from "../../units/clock.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { SqlPaymentStore } from "./payment-store.ts";

/** Payments in SQLite, where nobody else is at them: what the process before had claimed is due. */
export function soleSqlitePayments(
  db: Database,
  clock: Pick<Clock, "now">,
  credited: (credit: Credit) => void,
): SqlPaymentStore {
  db.run("UPDATE payments SET look_at = ?1 WHERE look_at > ?1", [clock.now()]);
  return new SqlPaymentStore(new SqliteDatabase(db), clock, credited);
}
