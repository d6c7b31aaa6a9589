import type { Database } from "bun:sqlite";
import type { Credit } from "../../src/ledger/credit.ts";
import { flattened } from "../../src/store/database/database.ts";
import { SqliteDatabase, writtenFor } from "../../src/store/database/sqlite-database.ts";
import { enteringCreditOf } from "../../src/store/ledger/credits.ts";

/** Credits a balance, whether or not it has a row, before it returns. */
export function enterCredit(db: Database, credit: Credit): void {
  new SqliteDatabase(db).commitNow(flattened(enteringCreditOf(credit)).map(writtenFor));
}
