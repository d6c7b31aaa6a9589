import { expect, test } from "bun:test";
import { creditEvents } from "../../src/ledger/credit-events.ts";
import { soleSqlitePayments } from "../../src/store/books/bookkeeping-sqlite.ts";
import { SqlWebhookStore } from "../../src/store/customers/webhook-store.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { payment } from "./payment-cases.ts";

const usd = (amount: number) => (amount * 1_000_000_000) as NanoUsd;

test("a payment's states that an owner waits for are events, each once, whatever else changes of it", async () => {
  const db = openDatabase(":memory:");
  db.run("INSERT INTO balances (id, created_at) VALUES ('bal_a', 1)");
  const webhooks = new SqlWebhookStore(new SqliteDatabase(db));
  await webhooks.configure([
    { id: "wh_a", url: "http://a.test", format: "signed", kinds: null, secrets: ["whsec_"], lowCredit: null },
  ]);
  const clock = new ManualClock();
  const store = soleSqlitePayments(db, clock, () => {});
  await store.add(payment("1"), []);
  const states = [
    "submitted",
    "confirming",
    "credited",
    "credited",
    "disputed",
    "credited",
    "refunded",
  ] as const;
  for (const [index, state] of states.entries()) {
    clock.advance(1);
    const credit = index === 2 ? { credit: { amount: usd(5) } } : {};
    await store.change("pay_1", () => ({ state, nextPollAt: null, ...credit }));
  }
  const waiting = await webhooks.waiting("wh_a", 100);
  expect(waiting.map(({ kind }) => kind)).toEqual([
    "payment.credited",
    "payment.disputed",
    "payment.credited",
    "payment.refunded",
  ]);
  expect(JSON.parse(waiting[0]!.data)).toEqual({
    balance_id: "bal_a",
    payment_id: "pay_1",
    method: "x402",
    amount_usd: 5,
    credited_usd: 5,
  });
  db.close();
});

test.each([
  ["far above the line", 10, 9, ["none"]],
  ["onto the line", 6, 5, ["none"]],
  ["below the line", 5, 4.999999999, ["credit.low"]],
  ["further below", 4, 3, ["none"]],
  ["to nothing", 3, 0, ["credit.exhausted"]],
  ["from above to nothing", 6, 0, ["credit.low", "credit.exhausted"]],
  ["below what was there, by a loss", 6, -1, ["credit.low", "credit.exhausted"]],
  ["up again", 0, 6, ["none"]],
])("credit that goes %s", (_how, had, left, kinds) => {
  const sums = (amount: number) => ({ credited: usd(10), spent: usd(10) - usd(amount) });
  const found = creditEvents("bal_a", sums(had), sums(left), { low: usd(5), at: epochMs(1) });
  expect(found.length === 0 ? ["none"] : found.map(({ kind }) => kind)).toEqual(kinds);
});

test("without a line, only the end of the credit is an event", () => {
  const sums = (amount: number) => ({ credited: usd(10), spent: usd(10) - usd(amount) });
  const found = creditEvents("bal_a", sums(6), sums(0), { low: null, at: epochMs(1) });
  expect(found.map(({ kind }) => kind)).toEqual(["credit.exhausted"]);
});
