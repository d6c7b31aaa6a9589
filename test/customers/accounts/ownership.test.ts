import { expect, test } from "bun:test";
import { SqlAccountStore } from "../../../src/store/customers/account-store.ts";
import { openDatabase } from "../../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../../src/store/database/sqlite-database.ts";
import { ALL_KINDS, walk } from "./ownership-walk.ts";

test("whose a balance is: claims, words on them, undoings and new secrets in any order", async () => {
  const took = new Set<string>();
  for (let seed = 1; seed <= 40; seed++) {
    const db = openDatabase(":memory:");
    const did = await walk(seed, 60, async (clock) => ({
      store: new SqlAccountStore(new SqliteDatabase(db), clock),
      async addBalance(id, recovery) {
        db.run("INSERT INTO balances (id, recovery_hash, created_at, setup_key) VALUES (?, ?, ?, 'key_1')", [
          id,
          recovery,
          clock.now(),
        ]);
      },
    }));
    db.close();
    for (const kind of Object.keys(did)) took.add(kind);
  }
  expect([...took].sort()).toEqual(ALL_KINDS);
});
