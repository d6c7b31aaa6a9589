import { beforeEach, describe, expect, spyOn, test } from "bun:test";
import type { Budget, Key } from "../../src/customers/keys/key.ts";
import { budgetCounter, type CounterId, keyCounter } from "../../src/ledger/counter.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { Replay, recoveredEnd } from "../../src/ledger/recovery.ts";
import { Reservation } from "../../src/ledger/reservation.ts";
import { addSpending } from "../../src/store/ledger/ends.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";

const usd = (nano: number) => nano as NanoUsd;
const BALANCE = "bal_test" as BalanceId;
const KEY = keyOf({ dailyLimit: usd(1_000), monthlyLimit: usd(1_000) });

const budgetOf = (name: string, cap: number): Budget => ({
  id: `bud_${name}`,
  balanceId: BALANCE,
  name,
  cap: usd(cap),
  window: "total",
});
const [A, B] = [budgetOf("a", 1_000), budgetOf("b", 1_000)];

let clock: ManualClock;
let holders: KnownHolders;
let records: LedgerRecord[];
let ledger: Ledger;

beforeEach(() => {
  clock = new ManualClock();
  holders = new KnownHolders();
  records = [];
  const journal = { append: (record: LedgerRecord) => records.push(record), withdraw: () => true };
  ledger = new Ledger(clock, journal, { spent: () => ZERO_USD, credited: () => usd(1_000) }, holders);
});

/** A stream that holds 100 of a key that draws from these budgets. */
async function stream(budgets: readonly Budget[] = [A], key: Key = KEY): Promise<Reservation> {
  holders.put(key, budgets);
  const at = clock.now();
  const most = { amount: usd(1_000), tokens: 0 };
  const request = reservationRequest({ at, key, budgets, amount: 100, most });
  const outcome = ledger.admit(await ledger.counters.of(key, budgets, [], at), request);
  expect(outcome).toBeInstanceOf(Reservation);
  return outcome as Reservation;
}

const settle = (reservation: Reservation, cost: number) =>
  ledger.settle(reservation, reservationEnd(cost), () => "{}");

const use = (budget: Budget) => ledger.counters.use(budgetCounter(budget.id, budget.window, clock.now()));
const used = async (budget: Budget) => {
  const { spent, held } = await use(budget);
  return spent + held;
};

describe("a stream grows by the limits of this moment, not by those of its admission", () => {
  const lower = { dailyLimit: usd(150) };
  test.each<[string, boolean, (key: Key) => void]>([
    ["nothing has changed", true, () => {}],
    ["the key's daily cap is lowered below", false, (key) => holders.put({ ...key, ...lower }, [A])],
    ["its monthly cap is", false, (key) => holders.put({ ...key, monthlyLimit: usd(199) }, [A])],
    [
      "its monthly cap is lowered, but not below",
      true,
      (key) => holders.put({ ...key, monthlyLimit: usd(200) }, [A]),
    ],
    [
      "its caps are lifted",
      true,
      (key) => holders.put({ ...key, dailyLimit: null, monthlyLimit: null }, [A]),
    ],
    ["its budget's cap is lowered below", false, (key) => holders.put(key, [{ ...A, cap: usd(199) }])],
    [
      "its budget's cap is lowered, but not below",
      true,
      (key) => holders.put(key, [{ ...A, cap: usd(200) }]),
    ],
    ["it draws from no budget any more", true, (key) => holders.put(key, [])],
    ["it is revoked", false, (key) => holders.put({ ...key, state: "revoked" }, [A])],
    ["it expires", false, (key) => holders.put({ ...key, expiresAt: clock.now() }, [A])],
    [
      "it expires later",
      true,
      (key) => holders.put({ ...key, expiresAt: (clock.now() + 1) as EpochMs }, [A]),
    ],
    ["it is rotated and in its grace", true, (key) => holders.put({ ...key, state: "rotated" }, [A])],
    ["its balance is suspended", false, (key) => holders.put(key, [A], "acceptable_use")],
    ["it has just changed, and is being read", false, (key) => holders.forget(key)],
  ])("%s: %p", async (_what, grows, change) => {
    const reservation = await stream();
    change(KEY);
    expect(ledger.coversMore(reservation, usd(100))).toBe(grows);
    expect(ledger.extend(reservation, usd(100))).toBe(grows);
    expect(reservation.held).toBe(usd(grows ? 200 : 100));
    // What it holds stays, and is what it may cost, also if more is found to have been made at its end.
    expect(settle(reservation, 200)).toMatchObject(
      grows ? { charged: 200, lost: 0 } : { charged: 100, lost: 100 },
    );
  });

  test("its key is read again as soon as it may have changed, before the stream has to grow", async () => {
    await stream();
    const read = spyOn(holders, "current");
    ledger.recheck(({ id }) => id !== KEY.id);
    expect(read).not.toHaveBeenCalled();
    ledger.recheck(({ id }) => id === KEY.id);
    expect(read).toHaveBeenCalledTimes(1);
  });

  test("a limit that is raised again lets it grow again", async () => {
    const reservation = await stream();
    holders.put({ ...KEY, ...lower }, [A]);
    expect(ledger.extend(reservation, usd(100))).toBe(false);
    expect(ledger.extend(reservation, usd(50))).toBe(true);
    holders.put({ ...KEY, dailyLimit: usd(2_000) }, [A]);
    expect(ledger.extend(reservation, usd(100))).toBe(true);
  });

  test("twenty streams under a cap that is lowered to a thousandth stop where they are", async () => {
    const streams: Reservation[] = [];
    for (let n = 0; n < 9; n++) streams.push(await stream());
    holders.put({ ...KEY, dailyLimit: usd(1) }, [A]);
    for (const one of streams) expect(ledger.extend(one, usd(10))).toBe(false);
    const charged = streams.reduce((sum, one) => sum + settle(one, 110).charged, 0);
    expect(charged).toBe(900);
  });
});

describe("a stream whose key is moved to another budget", () => {
  /** Moved from A to B when it holds 100; the first try to grow finds that B is not in memory. */
  async function moved(b: Budget = B): Promise<Reservation> {
    const reservation = await stream([A]);
    holders.put(KEY, [b]);
    ledger.coversMore(reservation, usd(1));
    await Bun.sleep(0);
    return reservation;
  }

  test("leaves what it holds on the one, and grows on the other", async () => {
    const reservation = await moved();
    expect(ledger.extend(reservation, usd(50))).toBe(true);
    expect([await used(A), await used(B)]).toEqual([100, 50]);
  });

  test("grows once the other one is in memory", async () => {
    const reservation = await stream([A]);
    holders.put(KEY, [B]);
    expect(ledger.extend(reservation, usd(50))).toBe(false);
    await Bun.sleep(0);
    expect(ledger.extend(reservation, usd(50))).toBe(true);
  });

  test("grows not at all on one that caps each user, because it names no user", async () => {
    const reservation = await moved({ ...B, perTag: "user" });
    expect(ledger.extend(reservation, usd(50))).toBe(false);
    await Bun.sleep(0);
    expect([ledger.extend(reservation, usd(50)), await used(A)]).toEqual([false, 100]);
  });

  test("grows no further than the other one has room, and needs none in the first", async () => {
    const reservation = await moved({ ...B, cap: usd(60) });
    expect(ledger.extend(reservation, usd(61))).toBe(false);
    expect(ledger.extend(reservation, usd(60))).toBe(true);
    expect([await used(A), await used(B)]).toEqual([100, 60]);
  });

  test.each([
    [30, 30, 0],
    [100, 100, 0],
    [101, 100, 1],
    [150, 100, 50],
    [400, 100, 50],
  ])("is charged %p: %p on the first, the rest, %p, on the other", async (cost, onA, onB) => {
    const reservation = await moved({ ...B, cap: usd(50) });
    ledger.extend(reservation, usd(50));
    settle(reservation, cost);
    expect([await use(A), await use(B)]).toEqual([
      { spent: usd(onA), held: ZERO_USD },
      { spent: usd(onB), held: ZERO_USD },
    ]);
    expect(await ledger.counters.use(keyCounter("day", KEY.rotationId, clock.now()))).toMatchObject({
      spent: onA + onB,
    });
    // The books come to the same.
    const booked = new Map<CounterId, number>();
    for (const record of records) if (record.kind === "terminal") addSpending(booked, record);
    expect(booked.get(budgetCounter(A.id, "total", clock.now())) ?? 0).toBe(onA);
    expect(booked.get(budgetCounter(B.id, "total", clock.now())) ?? 0).toBe(onB);
  });

  test("there and back, pays each for what it held while it drew from it", async () => {
    const reservation = await moved();
    ledger.extend(reservation, usd(50));
    holders.put(KEY, [A]);
    ledger.extend(reservation, usd(25));
    expect([await used(A), await used(B)]).toEqual([125, 50]);
    settle(reservation, 160);
    expect([await used(A), await used(B)]).toEqual([110, 50]);
  });

  test("with a second budget next to the first, holds on that what comes from then on", async () => {
    const reservation = await moved();
    holders.put(KEY, [A, B]);
    expect(ledger.extend(reservation, usd(50))).toBe(true);
    expect([await used(A), await used(B)]).toEqual([150, 50]);
    settle(reservation, 120);
    expect([await used(A), await used(B)]).toEqual([120, 20]);
  });

  test("is ended after a crash as the journal says that it was held", async () => {
    const reservation = await moved();
    ledger.extend(reservation, usd(50));
    ledger.delivered(reservation, 130);
    ledger.checkpoint();
    const replay = new Replay();
    for (const record of records) replay.add(record);
    const end = recoveredEnd(replay.orphans.get(reservation.request.receipt)!, 50, () => "{}");
    const booked = new Map<CounterId, number>();
    addSpending(booked, end);
    expect(end.charged).toBe(usd(130));
    expect(booked.get(budgetCounter(A.id, "total", clock.now()))).toBe(100);
    expect(booked.get(budgetCounter(B.id, "total", clock.now()))).toBe(30);
  });

  test("that gives some back does not take it of the first again", async () => {
    const reservation = await moved();
    ledger.extend(reservation, usd(50));
    ledger.shrink(reservation, usd(60));
    expect([await used(A), await used(B)]).toEqual([60, 0]);
    ledger.extend(reservation, usd(30));
    expect([await used(A), await used(B)]).toEqual([60, 30]);
    const replay = new Replay();
    for (const record of records) replay.add(record);
    const orphan = replay.orphans.get(reservation.request.receipt)!;
    orphan.delivered = 90;
    const booked = new Map<CounterId, number>();
    addSpending(
      booked,
      recoveredEnd(orphan, 50, () => "{}"),
    );
    expect(booked.get(budgetCounter(A.id, "total", clock.now()))).toBe(60);
    expect(booked.get(budgetCounter(B.id, "total", clock.now()))).toBe(30);
  });

  test("forgets neither while it is open", async () => {
    const reservation = await moved();
    ledger.extend(reservation, usd(50));
    ledger.shrink(reservation, usd(100));
    clock.advance(10_000_000);
    ledger.forgetIdle(Number.MAX_SAFE_INTEGER, 600_000);
    expect(ledger.extend(reservation, usd(50))).toBe(true);
    expect([await used(A), await used(B)]).toEqual([100, 50]);
  });
});

describe("a budget whose window is changed", () => {
  const noon = Date.UTC(2026, 10, 18, 12) as EpochMs;
  const [earlierThisMonth, monday, today] = [
    Date.UTC(2026, 10, 3),
    Date.UTC(2026, 10, 16),
    noon,
  ] as EpochMs[];
  const spent = [
    [earlierThisMonth, 10],
    [monday, 20],
    [today, 30],
  ] as const;
  const room = async (window: Budget["window"], cap: number) => {
    const budget = { ...A, cap: usd(cap), window };
    const reservation = await stream([budget], UNLIMITED);
    return ledger.extend(reservation, usd(1));
  };
  const UNLIMITED = keyOf();

  beforeEach(async () => {
    for (const [at, cost] of spent) {
      clock.advance(at! - clock.now());
      const budget = { ...A, window: "day" } as const;
      settle(await stream([budget], UNLIMITED), cost);
    }
  });

  test.each<[Budget["window"], number]>([
    ["day", 30],
    ["week", 50],
    ["month", 60],
    ["total", 60],
  ])("knows what was spent in the %s: %p", async (window, cost) => {
    expect(await ledger.counters.use(budgetCounter(A.id, window, noon))).toMatchObject({ spent: cost });
    expect(await room(window, cost + 100)).toBe(false);
    expect(await room(window, cost + 201)).toBe(true);
  });

  test("lets streams that run grow by the new one", async () => {
    const reservation = await stream([{ ...A, cap: usd(200), window: "day" }], UNLIMITED);
    holders.put(UNLIMITED, [{ ...A, cap: usd(200), window: "month" }]);
    ledger.coversMore(reservation, usd(1));
    await Bun.sleep(0);
    expect(ledger.extend(reservation, usd(41))).toBe(false);
    expect(ledger.extend(reservation, usd(40))).toBe(true);
    holders.put(UNLIMITED, [{ ...A, cap: usd(200), window: "day" }]);
    expect(ledger.extend(reservation, usd(30))).toBe(true);
    expect(await use({ ...A, window: "month" })).toMatchObject({ held: 170 });
  });
});

test("a hold that shrinks makes room for others at once", async () => {
  const reservation = await stream([{ ...A, cap: usd(150) }]);
  ledger.shrink(reservation, usd(50));
  const other = await stream([{ ...A, cap: usd(150) }]);
  expect(ledger.extend(other, usd(1))).toBe(false);
  expect(settle(reservation, 50).charged).toBe(usd(50));
});
