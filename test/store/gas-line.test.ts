import { describe } from "bun:test";
import { SqlGasLineStore } from "../../src/store/sql/gas-line-store.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SqliteStatements } from "../../src/store/sqlite/statements.ts";
import { gasLineCases } from "./gas-line-cases.ts";

describe("nonces of gas accounts in SQLite", () => {
  gasLineCases(async () => {
    const db = openDatabase(":memory:");
    return { store: new SqlGasLineStore(new SqliteStatements(db)), close: async () => db.close() };
  });
});
