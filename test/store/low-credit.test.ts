import { describe } from "bun:test";
import { SqlLowCreditStore } from "../../src/store/sql/low-credit-store.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SqliteStatements } from "../../src/store/sqlite/statements.ts";
import { lowCreditCases, sqliteLowCredit } from "./low-credit-cases.ts";

describe("low credit, remembered in SQLite", () => {
  lowCreditCases(async () => {
    const db = openDatabase(":memory:");
    return sqliteLowCredit(db, new SqlLowCreditStore(new SqliteStatements(db)));
  });
});
