import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { budgetCounter } from "../../src/ledger/counter.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { LedgerStore } from "../../src/store/sqlite/ledger-store.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import type { BudgetId } from "../../src/units/id.ts";
import { WINDOW_KINDS } from "../../src/units/window.ts";
import { KNOWN, NOW, oldBudgets } from "./old-budgets.ts";

const folder = mkdtempSync(join(tmpdir(), "old-budgets-"));
afterEach(() => rmSync(folder, { recursive: true }));

test("a database whose budgets were counted in one window knows what was spent in all", () => {
  const path = join(folder, "gateway.sqlite");
  const old = new Database(path);
  for (const migration of MIGRATIONS.slice(0, 8)) old.run(migration);
  old.run("PRAGMA user_version = 8");
  old.run(oldBudgets("totals", "account", "", ""));
  old.close();
  const db = openDatabase(path);
  const store = new LedgerStore(db);
  for (const [budget, spent] of Object.entries(KNOWN)) {
    for (const kind of WINDOW_KINDS)
      expect([budget, kind, store.spent(budgetCounter(budget as BudgetId, kind, NOW)) as number]).toEqual([
        budget,
        kind,
        spent[kind],
      ]);
  }
  expect(store.audit().drifts).toEqual([]);
  while (store.fold(Number.MAX_SAFE_INTEGER as typeof NOW) > 0);
  expect(store.audit().drifts).toEqual([]);
  db.close();
});
