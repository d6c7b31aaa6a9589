import { expect, test } from "bun:test";
import { isPending } from "../../../src/customers/accounts/ownership.ts";
import { SqlAccountStore } from "../../../src/store/customers/account-store.ts";
import { openDatabase } from "../../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../../src/store/database/sqlite-database.ts";
import { DAY_MS, type EpochMs } from "../../../src/units/clock.ts";
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

test.each([
  [7 * DAY_MS - 1, true],
  [7 * DAY_MS, false],
])("a claim waits seven days for the owner of its address: after %i ms, %p", (ms, isWaiting) => {
  expect(isPending({ at: 1_000 } as Parameters<typeof isPending>[0], (1_000 + ms) as EpochMs)).toBe(
    isWaiting,
  );
});
