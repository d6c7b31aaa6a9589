import { describe, expect, test } from "bun:test";
import type { Credit } from "../../src/ledger/credit.ts";
import { soleSqlitePayments } from "../../src/store/books/bookkeeping-sqlite.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { epochMs } from "../../src/units/clock.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { NOW, payment, paymentCases } from "./payment-cases.ts";

const usd = (amount: number) => (amount * 1_000_000_000) as NanoUsd;

function openBench(counted: Credit[] = []) {
  const db = openDatabase(":memory:");
  const ledger = new SqliteLedgerStore(new SqliteDatabase(db));
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
        const debit = { balanceId: "bal_a", amount, idempotencyKey, note: null } as const;
        await ledger.debit({ ...debit, at: epochMs(at - agoMs) }, { amount, claimed: ZERO_USD });
      },
      close: async () => db.close(),
    };
  });

  test("the ledger's memory counts a credit in the turn in which it is committed", async () => {
    const counted: Credit[] = [];
    const { open, ledger } = openBench(counted);
    const store = open();
    const one = payment("1");
    await store.add(one, []);
    let ended = false;
    const credit = { amount: one.amount };
    const change = store.change(one.id, () => ({ state: "credited", credit })).then(() => (ended = true));
    while (!ended) {
      const inMemory = counted.reduce((sum, { amount }) => sum + amount, 0);
      expect(inMemory).toBe(ledger.credited("bal_a"));
      await null;
    }
    await change;
    expect(counted).toMatchObject([
      { balanceId: "bal_a", amount: one.amount, idempotencyKey: "payment:pay_1" },
    ]);
  });

  test("what is credited again is no part of a claim any more, the latest one first", async () => {
    const { db, ledger, open } = openBench();
    const store = open();
    await store.add(payment("1"), []);
    await store.change("pay_1", () => ({ state: "credited", credit: { amount: usd(5) } }));
    for (const [entry, amount] of [
      [1, usd(2)],
      [2, usd(3)],
    ] as const) {
      const debit = { balanceId: "bal_a", amount, note: null, at: epochMs(NOW + entry) } as const;
      const idempotencyKey = `payment:pay_1:back:${entry}`;
      await ledger.debit({ ...debit, idempotencyKey }, { amount, claimed: amount });
    }
    await store.change("pay_1", () => ({ credit: { amount: usd(4), purpose: "more:3" } }));
    expect(await ledger.claims("", 9)).toMatchObject([
      { idempotencyKey: "payment:pay_1:back:1", claimed: usd(1) },
    ]);
    db.close();
  });

  test("what a process had claimed is due when the next one starts", async () => {
    const { open } = openBench();
    const later = (NOW * 1_000_000) as typeof NOW;
    await open().add(payment("1", { nextPollAt: later }), []);
    const clock = new ManualClock();
    expect(await open().claim(clock.now(), later, 10)).toHaveLength(1);
  });
});
