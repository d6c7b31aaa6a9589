import { describe, expect, test } from "bun:test";
import type { Key } from "../../src/customers/keys/key.ts";
import type { AgentRun } from "../../src/customers/keys/runs.ts";
import type { Grant, Statement } from "../../src/ledger/authority.ts";
import {
  allowanceCounter,
  balanceCounter,
  keyCounter,
  rateCounter,
  runCounters,
  servingCounters,
} from "../../src/ledger/counter.ts";
import { GrantClaim, Grants } from "../../src/ledger/grants.ts";
import { RateShare } from "../../src/ledger/key-counters.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { Reservation, type ReservationRequest } from "../../src/ledger/reservation.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";

const NOON = Date.UTC(2026, 10, 21, 12);
const AT = epochMs(NOON);
const BALANCE = "bal_a" as BalanceId;
const ROTATION = "key_a" as KeyId;
const PRICE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } as ReservationRequest["price"];
const receiptOf = ({ request: { receipt } }: Reservation) => receipt;
const usd = (amount: number) => amount as NanoUsd;

/** What a ledger keeps in memory, what it writes, and what it states to the others that share its limits. */
function ledgerOf({ credited = 1_000, shared = false, isUsable = (): boolean => true } = {}) {
  const clock = new ManualClock(NOON);
  const records: LedgerRecord[] = [];
  const statements: Statement[] = [];
  const journal = { append: (record: LedgerRecord) => records.push(record), withdraw: () => false };
  const sums = { spent: () => ZERO_USD, credited: () => usd(credited) };
  const holders = new KnownHolders();
  const grants: Grants = new Grants("n", 1, clock, (statement) => statements.push(statement), isUsable);
  const answer = ({ counter, number, limit }: Statement): Grant => {
    const granted = limit;
    const others = { spare: ZERO_USD, open: ZERO_USD, inquiry: 0, answered: 0 };
    return { counter, number, granted, elsewhere: ZERO_USD, free: 0, short: false, ...others };
  };
  const ledger = new Ledger(clock, journal, sums, holders, shared ? grants : null);
  const key: Key = keyOf({ id: ROTATION, rotationId: ROTATION, balanceId: BALANCE });
  const requestOf = (amount: number, more: Partial<Omit<ReservationRequest, "amount">> = {}) =>
    reservationRequest({
      at: clock.now(),
      key,
      amount,
      rateTokens: 10,
      promptTokens: 5,
      price: PRICE,
      ...more,
    });
  const admit = async (amount: number, more: Partial<ReservationRequest> = {}) => {
    const request = requestOf(amount, more);
    const counters = await ledger.counters.of(key, [], request.allowances, request.at, request.run);
    holders.put(key, []);
    return ledger.admit(counters, request);
  };
  const reserve = async (amount: number, more: Partial<ReservationRequest> = {}) => {
    const reservation = await admit(amount, more);
    if (!(reservation instanceof Reservation)) throw new Error(`refused: ${reservation.what}`);
    return reservation;
  };
  const settle = (reservation: Reservation, cost: number) =>
    ledger.settle(reservation, reservationEnd(cost, { rateTokens: 10, allowanceUsed: true }), () => "{}");
  /** Answers everything that was stated, as if nobody else had anything. */
  const grantAll = () => {
    for (const statement of statements) grants.receive(answer(statement));
  };
  return { ledger, clock, key, records, statements, requestOf, admit, reserve, settle, grantAll };
}

const runOf = (limits: { cap: number | null; calls: number | null } | null): AgentRun =>
  ({
    balanceId: BALANCE,
    name: "nightly",
    startedAt: AT,
    limits,
    poll: async () => {},
  }) as unknown as AgentRun;

describe("the rate of the Open Tier", () => {
  test("refuses the request after the last, and no request that is paid for", async () => {
    const { admit, reserve } = ledgerOf();
    await reserve(0, { freeRpmLimit: 2 });
    await reserve(0, { freeRpmLimit: 2 });
    expect(await admit(0, { freeRpmLimit: 2 })).toMatchObject({ what: "open_tier.rpm", limit: 2 });
    await reserve(10);
  });
});

test("a free request is admitted where more is spent than is left of the credit", async () => {
  const { ledger, admit, reserve, settle } = ledgerOf({ credited: 100 });
  settle(await reserve(100), 100);
  ledger.credited(BALANCE, usd(-50));
  expect(await admit(0)).toBeInstanceOf(Reservation);
  expect(await admit(1)).toMatchObject({ what: "balance", available: 0 });
});

describe("what the journal gets of a stream", () => {
  test("a hold that shrinks is written as the whole that is left", async () => {
    const { ledger, records, reserve } = ledgerOf();
    const reservation = await reserve(100);
    ledger.shrink(reservation, usd(40));
    ledger.shrink(reservation, usd(40));
    ledger.shrink(reservation, usd(90));
    expect(records.slice(1)).toEqual([{ kind: "extend", receipt: receiptOf(reservation), held: usd(40) }]);
    expect(ledger.counters.heldOn(balanceCounter(BALANCE))).toBe(usd(40));
  });

  test("a checkpoint writes who answers it, once, and nothing once it has ended", async () => {
    const { ledger, records, reserve, settle } = ledgerOf();
    const by = { model: "a/b", host: "h", price: PRICE, attempts: [], firstTokenMs: 5 };
    const [open, ended] = [await reserve(10), await reserve(10)];
    ledger.serves(open, by);
    ledger.serves(ended, by);
    settle(ended, 1);
    records.length = 0;
    ledger.checkpoint();
    expect(records).toMatchObject([{ kind: "hold", receipt: receiptOf(open), served: by }]);
    ledger.checkpoint();
    expect(records).toHaveLength(1);
  });

  test("a new file begins with the open holds and how far each has got", async () => {
    const { ledger, reserve } = ledgerOf();
    expect(ledger.openRecords()).toEqual([]);
    const [first, second] = [await reserve(10), await reserve(10)];
    ledger.delivered(first, 7);
    expect(ledger.openRecords()).toMatchObject([
      { kind: "hold", receipt: receiptOf(first) },
      { kind: "hold", receipt: receiptOf(second) },
      {
        kind: "delivered",
        tokens: [
          [receiptOf(first), 7],
          [receiptOf(second), 0],
        ],
      },
    ]);
  });
});

describe("what is in memory", () => {
  test("nothing is held on a counter that nobody has used", () => {
    expect(ledgerOf().ledger.counters.heldOn(balanceCounter(BALANCE))).toBe(ZERO_USD);
  });

  test("credit is known once the balance was read, and is what is not spent", async () => {
    const { ledger, reserve, settle } = ledgerOf({ credited: 100 });
    expect(ledger.creditInMemory(BALANCE, 0)).toBeNull();
    settle(await reserve(60), 60);
    expect(ledger.creditInMemory(BALANCE, 1_000)).toBe(usd(40));
    ledger.credited(BALANCE, usd(-80));
    expect(ledger.creditInMemory(BALANCE, 0)).toBe(ZERO_USD);
  });

  test("credit that other ledgers may have is known only as far as it is enough", async () => {
    const { ledger, admit, grantAll } = ledgerOf({ shared: true });
    await admit(10);
    expect(ledger.creditInMemory(BALANCE, 1)).toBeNull();
    expect(ledger.creditInMemory(BALANCE, 0)).toBe(ZERO_USD);
    grantAll();
  });

  test("an allowance or a run that a known key has not used yet is read first", async () => {
    const { ledger, key, clock, reserve } = ledgerOf();
    await reserve(10);
    const at = clock.now();
    expect(ledger.counters.of(key, [], [], at)).not.toBeInstanceOf(Promise);
    const allowances = [{ owner: "bal_a", limit: 1 }];
    expect(ledger.counters.of(key, [], allowances, at)).toBeInstanceOf(Promise);
    await reserve(0, { allowances });
    expect(ledger.counters.of(key, [], allowances, at)).not.toBeInstanceOf(Promise);
    const run = runOf({ cap: null, calls: 1 });
    expect(ledger.counters.of(key, [], [], at, run)).toBeInstanceOf(Promise);
    await reserve(10, { run });
    expect(ledger.counters.of(key, [], [], at, run)).not.toBeInstanceOf(Promise);
  });

  test("a key is forgotten a while after its last request ended, and never within its minute", async () => {
    const { ledger, key, clock, admit, reserve, settle } = ledgerOf();
    const isKnown = () => !(ledger.counters.of(key, [], [], clock.now()) instanceof Promise);
    const reservation = await reserve(10, { rpmLimit: 1 });
    clock.advance(100);
    ledger.forgetIdle(Number.POSITIVE_INFINITY, 50);
    settle(reservation, 1);
    clock.advance(100);
    ledger.forgetIdle(Number.POSITIVE_INFINITY, 50);
    expect(await admit(10, { rpmLimit: 1 })).toMatchObject({ what: "rpm_limit" });
    clock.advance(100_000);
    const late = await reserve(10);
    clock.advance(100_000);
    settle(late, 1);
    clock.advance(40_000);
    ledger.forgetIdle(Number.POSITIVE_INFINITY, 60_000);
    expect(isKnown()).toBeTrue();
    clock.advance(20_001);
    ledger.forgetIdle(Number.POSITIVE_INFINITY, 60_000);
    expect(isKnown()).toBeFalse();
  });
});

describe("limits that ledgers share", () => {
  test("every limit of a request is requested from the others, and those on money only where it costs", async () => {
    const { ledger, statements, key, requestOf, grantAll } = ledgerOf({ shared: true });
    const run = runOf({ cap: 500, calls: 3 });
    const allowances = [{ owner: "bal_a", limit: 5 }];
    const free = requestOf(0, { allowances, run, rpmLimit: 10, freeRpmLimit: 10, tpmLimit: 1_000 });
    const counters = await ledger.counters.of(key, [], allowances, AT, run);
    const requested = () =>
      statements.splice(0).map(({ counter, needed }) => [counter as string, needed as number]);
    const counted: [string, number][] = [
      [rateCounter("rpm", ROTATION), 1],
      [rateCounter("free_rpm", ROTATION), 1],
      [rateCounter("tpm", ROTATION), 10],
      [allowanceCounter("bal_a", AT), 1],
      [runCounters(run).calls, 1],
    ];
    void ledger.replenish(counters, free, new GrantClaim());
    grantAll();
    expect(requested()).toEqual(counted);
    void ledger.replenish(counters, requestOf(100, { run }), new GrantClaim());
    expect(requested()).toEqual([
      [balanceCounter(BALANCE), 100],
      [keyCounter("day", ROTATION, AT), 100],
      [keyCounter("month", ROTATION, AT), 100],
      [runCounters(run).money, 100],
    ]);
  });

  test("while grants must not be used, a request is refused because of the books, not of its key", async () => {
    const { admit } = ledgerOf({ shared: true, isUsable: () => false });
    expect(await admit(10)).toEqual({ what: "books" });
  });

  test("a stream grows while its node has a lease, and not without one, whatever was granted", async () => {
    let hasLease = true;
    const { ledger, key, requestOf, reserve, grantAll } = ledgerOf({
      shared: true,
      isUsable: () => hasLease,
    });
    const counters = await ledger.counters.of(key, [], [], AT);
    void ledger.replenish(counters, requestOf(10), new GrantClaim());
    grantAll();
    const stream = await reserve(10);
    expect(ledger.extend(stream, usd(10))).toBe(true);
    hasLease = false;
    expect(ledger.extend(stream, usd(10))).toBe(false);
    hasLease = true;
    expect(ledger.extend(stream, usd(10))).toBe(true);
  });

  test("a rate that ran beyond its share counts as all of the share", () => {
    const share = new RateShare(rateCounter("tpm", ROTATION), new ManualClock(), usd(10));
    share.window.take(4, 0);
    expect(share.used()).toBe(usd(4));
    share.window.take(20, 0);
    expect(share.used()).toBe(usd(10));
  });

  test("what a node may still hold of a balance: its money, two days' allowances, and all rates of its keys", () => {
    const now = epochMs(NOON);
    const yesterday = epochMs(NOON - 86_400_000);
    const kinds = ["rpm", "tpm", "free_rpm"] as const;
    expect(servingCounters(BALANCE, null, [ROTATION], now)).toEqual([
      balanceCounter(BALANCE),
      allowanceCounter(BALANCE, now),
      allowanceCounter(BALANCE, yesterday),
      ...kinds.map((kind) => rateCounter(kind, ROTATION)),
    ]);
    expect(servingCounters(BALANCE, "acc_1", [], now)).toContain(allowanceCounter("acc_1", now));
  });
});

describe("the calls of a run", () => {
  test("are refused after the last, before anything that is short of money", async () => {
    const { admit, reserve } = ledgerOf({ credited: 100 });
    const run = runOf({ cap: null, calls: 1 });
    await reserve(100, { run });
    expect(await admit(100, { run })).toMatchObject({ what: "calls", run: "nightly", limit: 1, held: 1 });
  });

  test("leave what it may spend as it is", async () => {
    const { admit, reserve } = ledgerOf();
    const run = runOf({ cap: 100, calls: 5 });
    await reserve(60, { run });
    expect(await admit(60, { run })).toMatchObject({ what: "run", name: "nightly", limit: 100, held: 60 });
  });
});

test("free requests left today are those of the scarcest allowance", async () => {
  const { ledger, reserve } = ledgerOf();
  const allowances = [
    { owner: "bal_a", limit: 5 },
    { owner: "block_b", limit: 3 },
  ];
  expect(ledger.remaining(allowances, AT)).toBeNull();
  await reserve(0, { allowances });
  await reserve(0, { allowances: allowances.slice(0, 1) });
  expect(ledger.remaining(allowances, AT)).toBe(2);
  expect(ledger.remaining(allowances.slice(0, 1), AT)).toBe(3);
  expect(ledger.remaining([], AT)).toBeNull();
});

test("a stream that moved is written at the next checkpoint, once, with how far it is by then", async () => {
  const { ledger, records, reserve } = ledgerOf();
  const reservation = await reserve(10);
  records.length = 0;
  ledger.delivered(reservation, 3);
  ledger.delivered(reservation, 5);
  ledger.checkpoint();
  ledger.checkpoint();
  ledger.delivered(reservation, 8);
  ledger.checkpoint();
  const receipt = receiptOf(reservation);
  expect(records).toEqual([
    { kind: "delivered", tokens: [[receipt, 5]] },
    { kind: "delivered", tokens: [[receipt, 8]] },
  ]);
});
