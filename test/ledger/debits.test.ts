import { expect, test } from "bun:test";
import { StoreUnreachable } from "../../src/errors/bookkeeping.ts";
import type { Credit, Debit } from "../../src/ledger/credit.ts";
import { Debits } from "../../src/ledger/debits.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { gate } from "../fakes/gate.ts";
import { KnownHolders } from "../fakes/holders.ts";

const BALANCE = "bal_a" as BalanceId;
const at = epochMs(0);
const wish = (amount: number | "all" | { upTo: number }, idempotencyKey = "back"): Debit => ({
  balanceId: BALANCE,
  amount: amount as Debit["amount"],
  idempotencyKey,
  note: null,
  at,
});

/** A balance of 100, whose journal and database do as they are told. */
function open() {
  const entries = new Map<string, Credit>();
  const journal = { flushed: async () => true };
  const store = {
    entry: (key: string) => entries.get(key) ?? null,
    credited: () => [...entries.values()].reduce((sum, { amount }) => sum + amount, 100) as NanoUsd,
    debit(entry: Credit) {
      entries.set(entry.idempotencyKey, entry);
      return entry;
    },
  };
  const clock = { now: () => at, elapsedMs: () => 0, after: () => ({ cancel() {} }) };
  const sums = { spent: () => ZERO_USD, credited: store.credited };
  const ledger = new Ledger(clock, { append: () => 1, withdraw: () => false }, sums, new KnownHolders());
  const available = async () => (await ledger.balance(BALANCE)).available;
  return { debits: new Debits(ledger, journal, store), ledger, journal, store, entries, available };
}

test("what is being taken back can be spent by nobody, and is booked once the journal is on the disk", async () => {
  const { debits, journal, entries, available } = open();
  const synced = gate<boolean>();
  journal.flushed = () => synced.passed;
  const first = debits.take(wish(60));
  expect(await available()).toBe(40 as NanoUsd);
  expect(await debits.take(wish(50, "more"))).toEqual({ available: 40 as NanoUsd });
  expect(entries.size).toBe(0);
  synced.open(true);
  expect(await first).toMatchObject({ amount: -60 as NanoUsd, tookAll: false });
  expect(await available()).toBe(40 as NanoUsd);
});

test("a repeat that comes meanwhile gets the same answer", async () => {
  const { debits, available } = open();
  const [first, second] = await Promise.all([debits.take(wish("all")), debits.take(wish("all"))]);
  expect(first).toMatchObject({ amount: -100 as NanoUsd, tookAll: true });
  expect(second).toEqual(first);
  expect(await available()).toBe(ZERO_USD);
});

test("what is taken up to an amount is decided once: nothing, too, whatever is credited later", async () => {
  const { debits, ledger, entries, available } = open();
  expect(await debits.take(wish({ upTo: 130 }))).toMatchObject({ amount: -100 as NanoUsd });
  expect(await debits.take(wish({ upTo: 30 }, "more"))).toMatchObject({ amount: ZERO_USD });
  entries.set("in", { ...wish(1, "in"), amount: 50 as NanoUsd });
  ledger.credited(BALANCE, 50 as NanoUsd);
  expect(await debits.take(wish({ upTo: 30 }, "more"))).toMatchObject({ amount: ZERO_USD });
  expect(await available()).toBe(50 as NanoUsd);
});

test("while the journal cannot be written, nothing is taken and the error can be retried", async () => {
  const { debits, journal, entries, available } = open();
  journal.flushed = async () => false;
  await expect(debits.take(wish(60))).rejects.toBeInstanceOf(StoreUnreachable);
  expect([await available(), entries.size]).toEqual([100 as NanoUsd, 0]);
});

test("what the database refuses is available again", async () => {
  const { debits, store, available } = open();
  const { debit } = store;
  store.debit = () => {
    throw new Error("SQLITE_BUSY");
  };
  await expect(debits.take(wish(60))).rejects.toThrow("SQLITE_BUSY");
  expect(await available()).toBe(100 as NanoUsd);
  store.debit = debit;
  expect(await debits.take(wish(60))).toMatchObject({ amount: -60 as NanoUsd });
});

test("what the database committed without saying so is taken, and the repeat says so", async () => {
  const { debits, store, available } = open();
  const { debit } = store;
  store.debit = (entry) => {
    debit(entry);
    throw new Error("SQLITE_IOERR");
  };
  await expect(debits.take(wish(60))).rejects.toThrow("SQLITE_IOERR");
  expect(await available()).toBe(40 as NanoUsd);
  expect(await debits.take(wish(60))).toMatchObject({ amount: -60 as NanoUsd });
  expect(await available()).toBe(40 as NanoUsd);
});
