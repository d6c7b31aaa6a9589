import { describe } from "bun:test";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqlGasLineStore } from "../../src/store/payments/gas-line-store.ts";
import { gasLineCases } from "./gas-line-cases.ts";

describe("nonces of gas accounts in SQLite", () => {
  gasLineCases(async () => {
    const db = openDatabase(":memory:");
    return { store: new SqlGasLineStore(new SqliteDatabase(db)), close: async () => db.close() };
  });
});
