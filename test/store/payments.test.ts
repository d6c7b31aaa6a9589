import { describe, expect, test } from "bun:test";
import { type Credit, debitEntry } from "../../src/ledger/credit.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { LedgerStore } from "../../src/store/sqlite/ledger-store.ts";
import { soleSqlitePayments } from "../../src/store/sqlite/payments.ts";
import { epochMs } from "../../src/units/clock.ts";
import { ZERO_USD } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { NOW, payment, paymentCases } from "./payment-cases.ts";

function openBench(counted: Credit[] = []) {
  const db = openDatabase(":memory:");
  const ledger = new LedgerStore(db);
  db.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 1), ('bal_b', 1)");
  const open = () => soleSqlitePayments(db, new ManualClock(), (credit) => counted.push(credit));
  return { db, ledger, open };
}

describe("payments in SQLite", () => {
  paymentCases(async () => {
    const { db, ledger, open } = openBench();
    const at = new ManualClock().now();
    return {
      store: open(),
      credited: async (id) => ledger.credited(id),
      async debit(idempotencyKey, amount, agoMs) {
        const entry = {
          balanceId: "bal_a",
          amount,
          idempotencyKey,
          note: null,
          at: epochMs(at - agoMs),
        } as const;
        ledger.debit(debitEntry(entry, { amount, claimed: ZERO_USD }));
      },
      close: async () => db.close(),
    };
  });

  test("the ledger's memory counts a credit in the turn in which it is committed", async () => {
    const counted: Credit[] = [];
    const { open } = openBench(counted);
    const store = open();
    const one = payment("1");
    await store.add(one, []);
    const change = store.change(one.id, () => ({ state: "credited", credit: { amount: one.amount } }));
    expect(counted).toMatchObject([
      { balanceId: "bal_a", amount: one.amount, idempotencyKey: "payment:pay_1" },
    ]);
    await change;
  });

  test("what a process had claimed is due when the next one starts", async () => {
    const { open } = openBench();
    const later = (NOW * 1_000_000) as typeof NOW;
    await open().add(payment("1", { lookAt: later }), []);
    const clock = new ManualClock();
    expect(await open().claim(clock.now(), later, 10)).toHaveLength(1);
  });
});
