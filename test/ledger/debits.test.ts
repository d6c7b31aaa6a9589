import { describe, expect, test } from "bun:test";
import {
  type Credit,
  type CreditClaim,
  type Debit,
  debitEntry,
  lossKey,
  type TakenCredit,
} from "../../src/ledger/credit.ts";
import { Debits } from "../../src/ledger/debits.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { Reservation } from "../../src/ledger/reservation.ts";
import { epochMs } from "../../src/units/clock.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { gate } from "../fakes/gate.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";

const BALANCE = "bal_a" as BalanceId;
const at = epochMs(0);
const wish = (amount: number | "all" | { upTo: number }, idempotencyKey = "back"): Debit => ({
  balanceId: BALANCE,
  amount: amount as Debit["amount"],
  idempotencyKey,
  note: null,
  at,
});

/** A balance of 100, whose journal and database do as the test says. */
function open() {
  const entries = new Map<string, Credit>();
  const journal = { flushed: async () => true };
  const store = {
    entry: async (key: string) => entries.get(key) ?? null,
    credited: () => [...entries.values()].reduce((sum, { amount }) => sum + amount, 100) as NanoUsd,
    async debit(debit: Debit, holds: TakenCredit) {
      const entry = debitEntry(debit, holds);
      entries.set(entry.idempotencyKey, entry);
      return entry;
    },
    async decideClaim(
      { idempotencyKey, balanceId }: CreditClaim,
      _: unknown,
      lostOfClaimed: (claimed: NanoUsd) => NanoUsd | null,
    ) {
      const entry = entries.get(idempotencyKey)!;
      if (entry.claimed === 0) return ZERO_USD;
      const lost = lostOfClaimed(entry.claimed!);
      if (lost === null) return null;
      entries.set(idempotencyKey, { ...entry, claimed: ZERO_USD });
      const back = { ...wish(1, lossKey(idempotencyKey)), balanceId, amount: lost };
      if (lost > 0) entries.set(back.idempotencyKey, back);
      ledger.credited(balanceId, lost);
      return lost;
    },
  };
  const clock = { now: () => at, elapsedMs: () => 0, after: () => ({ cancel() {} }) };
  const sums = { spent: () => ZERO_USD, credited: store.credited };
  const holders = new KnownHolders();
  const ledger = new Ledger(clock, { append: () => 1, withdraw: () => false }, sums, holders);
  const available = async () => (await ledger.balance(BALANCE)).available;
  const debits = new Debits(ledger, journal, store);
  const books = { debits, ledger, holders, journal, store, entries, available, lost: 0, endClaims };
  async function endClaims(): Promise<void> {
    const open = [...entries.values()].filter(({ claimed = 0 }) => claimed > 0);
    for (const entry of open.toSorted((a, b) => (a.idempotencyKey < b.idempotencyKey ? -1 : 1)))
      books.lost += (await debits.decideClaim(entry as Credit & CreditClaim, at)) ?? 0;
  }
  return books;
}

test("what is being taken back can be spent by nobody, and is booked once the journal is on the disk", async () => {
  const { debits, journal, entries, available } = open();
  const synced = gate<boolean>();
  journal.flushed = () => synced.passed;
  const first = debits.take(wish(60));
  await Bun.sleep(0);
  expect(await available()).toBe(40 as NanoUsd);
  const more = debits.take(wish(50, "more"));
  expect(entries.size).toBe(0);
  synced.open(true);
  expect(await more).toEqual({ available: 40 as NanoUsd });
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
  store.debit = async () => {
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
  store.debit = async (...of) => {
    await debit(...of);
    throw new Error("SQLITE_IOERR");
  };
  await expect(debits.take(wish(60))).rejects.toThrow("SQLITE_IOERR");
  expect(await available()).toBe(40 as NanoUsd);
  expect(await debits.take(wish(60))).toMatchObject({ amount: -60 as NanoUsd });
  expect(await available()).toBe(40 as NanoUsd);
});

describe("of credit that requests hold", () => {
  /** A request that holds so much of the balance of 100; null where there is no room. */
  async function request({ ledger, holders }: ReturnType<typeof open>, amount: number) {
    const key = keyOf({ balanceId: BALANCE });
    holders.put(key);
    const request = reservationRequest({ at, key, amount, most: { amount: 1_000 as NanoUsd, tokens: 0 } });
    const outcome = ledger.admit(await ledger.counters.of(key, [], [], at), request);
    if (!(outcome instanceof Reservation)) return null;
    const end = (cost: number) => ledger.settle(outcome, reservationEnd(cost), () => "{}");
    return { end, grow: (more: number) => ledger.extend(outcome, more as NanoUsd) };
  }
  const claimed = ({ entries }: ReturnType<typeof open>) =>
    [...entries.values()].map(({ amount, claimed = 0 }) => [amount as number, claimed as number]);

  test("a debit up to an amount has what they give back, before anybody else", async () => {
    const books = open();
    const [one, two] = [await request(books, 50), await request(books, 30)];
    expect(await books.debits.take(wish({ upTo: 90 }))).toMatchObject({ amount: -90, claimed: 70 });
    expect(await books.available()).toBe(ZERO_USD);
    expect([await request(books, 1), one!.grow(1)]).toEqual([null, false]);
    one!.end(1);
    await books.endClaims();
    // 9 is left, and 30 held.
    expect([await request(books, 1), two!.grow(1), claimed(books)]).toEqual([null, false, [[-90, 70]]]);
    two!.end(2);
    expect(await books.available()).toBe(7 as NanoUsd);
    await books.endClaims();
    expect([claimed(books), books.lost]).toEqual([[[-90, 0]], ZERO_USD]);
    expect(await request(books, 7)).not.toBe(null);
  });

  test("what they spend is lost, and known once the last one has ended", async () => {
    const books = open();
    const [one, two] = [await request(books, 60), await request(books, 40)];
    expect(await books.debits.take(wish({ upTo: 100 }))).toMatchObject({ amount: -100, claimed: 100 });
    one!.end(25);
    await books.endClaims();
    expect(claimed(books)).toEqual([[-100, 100]]);
    two!.end(40);
    await books.endClaims();
    expect([claimed(books), books.lost]).toEqual([
      [
        [-100, 0],
        [65, 0],
      ],
      65 as NanoUsd,
    ]);
    expect([await books.available(), await request(books, 1)]).toEqual([ZERO_USD, null]);
  });

  test("what is spent already is no part of a claim", async () => {
    const books = open();
    (await request(books, 30))!.end(30);
    await request(books, 20);
    expect(await books.debits.take(wish({ upTo: 100 }))).toMatchObject({ amount: -70, claimed: 20 });
  });

  test("two claims share what is given back; each has lost no more than it claimed", async () => {
    const books = open();
    const one = await request(books, 100);
    expect(await books.debits.take(wish({ upTo: 30 }, "a"))).toMatchObject({ amount: -30, claimed: 30 });
    expect(await books.debits.take(wish({ upTo: 100 }, "b"))).toMatchObject({ amount: -70, claimed: 70 });
    one!.end(80);
    await books.endClaims();
    expect(claimed(books)).toEqual([
      [-30, 0],
      [-70, 0],
      [30, 0],
      [50, 0],
    ]);
  });

  test("credit that is given meanwhile covers a claim, and only the rest of it can be spent", async () => {
    const books = open();
    const one = await request(books, 60);
    await books.debits.take(wish({ upTo: 100 }));
    books.entries.set("in", { ...wish(1, "in"), amount: 70 as NanoUsd });
    books.ledger.credited(BALANCE, 70 as NanoUsd);
    await books.endClaims();
    expect([await books.available(), claimed(books)]).toEqual([
      10 as NanoUsd,
      [
        [-100, 0],
        [70, 0],
      ],
    ]);
    one!.end(60);
    expect(await books.available()).toBe(10 as NanoUsd);
  });

  test.each([
    ["all", 30],
    ["a part", 10],
  ])("%s of a claim that is credited again while it ends is not lost, too", async (_, again) => {
    const books = open();
    const one = await request(books, 100);
    await books.debits.take(wish({ upTo: 30 }, "a"));
    await books.debits.take(wish({ upTo: 70 }, "b"));
    one!.end(100);
    const synced = gate<boolean>();
    books.journal.flushed = () => synced.passed;
    const ending = books.endClaims();
    await Promise.resolve();
    books.entries.set("a", { ...books.entries.get("a")!, claimed: (30 - again) as NanoUsd });
    books.entries.set("again", { ...wish(1, "again"), amount: again as NanoUsd });
    books.ledger.credited(BALANCE, again as NanoUsd);
    synced.open(true);
    await ending;
    await books.endClaims();
    expect(books.lost).toBe((100 - again) as NanoUsd);
    expect(books.store.credited()).toBe(100 as NanoUsd);
    expect(await books.ledger.balance(BALANCE)).toMatchObject({ credited: 100, available: 0 });
  });

  test("a claim is not ended by an end that may not be on the disk", async () => {
    const books = open();
    const one = await request(books, 60);
    await books.debits.take(wish({ upTo: 100 }));
    const synced = gate<boolean>();
    one!.end(10);
    books.journal.flushed = () => synced.passed;
    const ending = books.endClaims();
    synced.open(false);
    await ending;
    expect(claimed(books)).toEqual([[-100, 60]]);
  });

  test("an amount, or all that is available, takes nothing that they hold", async () => {
    const books = open();
    await request(books, 60);
    expect(await books.debits.take(wish(41))).toEqual({ available: 40 as NanoUsd });
    expect(await books.debits.take(wish("all", "all"))).toMatchObject({ amount: -40, claimed: 0 });
  });
});
