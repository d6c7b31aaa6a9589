import { describe } from "bun:test";
import { SqlLowCreditStore } from "../../src/store/sql/low-credit-store.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SqliteStatements } from "../../src/store/sqlite/statements.ts";
import { lowCreditCases } from "./low-credit-cases.ts";

describe("low credit, remembered in SQLite", () => {
  lowCreditCases(async () => {
    const db = openDatabase(":memory:");
    return {
      store: new SqlLowCreditStore(new SqliteStatements(db)),
      async addAccount(id, email) {
        db.run("INSERT INTO accounts (id, email, created_at, proved_at) VALUES (?, ?, 1, 1)", [id, email]);
      },
      async addBalance(id, account) {
        db.run("INSERT INTO balances (id, account_id, created_at) VALUES (?, ?, 1)", [id, account]);
      },
      async setMoney(balance, credited, spent) {
        db.run("INSERT OR REPLACE INTO totals (account, credited, spent) VALUES (?, ?, ?)", [
          `balance:${balance}`,
          credited,
          spent,
        ]);
      },
      async suspendAccount(id, reason) {
        db.run("UPDATE accounts SET suspended = ? WHERE id = ?", [reason, id]);
      },
      close: async () => db.close(),
    };
  });
});
