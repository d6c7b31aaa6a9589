import { expect, test } from "bun:test";
import type { Budget } from "../../src/customers/keys/key.ts";
import { balanceCounter, type CounterId, isValueCounter, valueCounter } from "../../src/ledger/counter.ts";
import { GrantClaim, Grants } from "../../src/ledger/grants.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { Reservation } from "../../src/ledger/reservation.ts";
import type { BalanceId, BudgetId } from "../../src/units/id.ts";
import { MAX_NANO_USD, type NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";
import { FleetAuthority } from "../sim/fleet-authority.ts";

const NOON = Date.UTC(2026, 10, 21, 12);
const usd = (amount: number) => amount as NanoUsd;
const BALANCE = "bal_a" as BalanceId;
const EACH: Budget = {
  id: "bud_each" as BudgetId,
  balanceId: BALANCE,
  name: "each",
  cap: usd(10),
  window: "day",
  perTag: "user",
};
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const KEY = keyOf({ balanceId: BALANCE, budgets: ["each"] });
const BUDGETS = [EACH];

/** A ledger with books that know every end at once; alone, or with others through an Authority. */
function ledgerOf(authority: FleetAuthority | null, name = "n") {
  const clock = new ManualClock(NOON);
  const booked = new Map<CounterId, number>();
  let records = 0;
  const append = (record: LedgerRecord) => {
    if (record.kind === "terminal")
      for (const id of record.counters) booked.set(id, (booked.get(id) ?? 0) + record.charged);
    return ++records;
  };
  const sums = { spent: (id: CounterId) => usd(booked.get(id) ?? 0), credited: () => MAX_NANO_USD };
  const holders = new KnownHolders();
  holders.put(KEY, BUDGETS);
  const grants: Grants | null =
    authority &&
    new Grants(name, 1, clock, (statement) =>
      queueMicrotask(() => grants!.receive(authority.settle(statement)!)),
    );
  const ledger = new Ledger(clock, { append, withdraw: () => false }, sums, holders, grants);
  const spend = async (user: string, amount = 10): Promise<boolean> => {
    const about = { surface: "messages", model: "a/b", stream: true, tags: { user } } as const;
    const request = reservationRequest({ at: clock.now(), key: KEY, budgets: BUDGETS, amount, about });
    const claim = new GrantClaim();
    for (let round = 0; round < 2; round++) {
      const found = ledger.counters.of(KEY, BUDGETS, [], request.at, null, { user });
      const counters = found instanceof Promise ? await found : found;
      const reservation = ledger.admit(counters, request);
      if (reservation instanceof Reservation) {
        claim.release();
        ledger.settle(reservation, reservationEnd(amount), () => "{}");
        return true;
      }
      const answer = ledger.replenish(counters, request, claim);
      for (let isWaiting = answer !== null; isWaiting; clock.advance(25))
        isWaiting = await Promise.race([answer!.then(() => false), nextTurn().then(() => true)]);
    }
    claim.release();
    return false;
  };
  const values = () => [...ledger.counters.booked()].filter(({ id }) => isValueCounter(id)).length;
  /** As the books do it each second. */
  const passSecond = () => {
    clock.advance(1_001);
    if (ledger.counters.isCrowded) ledger.forgetIdle(Number.POSITIVE_INFINITY, 600_000);
  };
  const passMinute = async () => {
    clock.advance(61_000);
    grants?.returnIdle();
    ledger.forgetIdle(Number.POSITIVE_INFINITY, 600_000);
    await nextTurn();
  };
  return { ledger, grants, clock, spend, values, passSecond, passMinute, booked };
}

test("of 250,000 values, 100,000 and those of a second stay in memory, and each has spent what it has", async () => {
  const { spend, values, passSecond } = ledgerOf(null);
  let [most, served] = [0, 0];
  for (let second = 0; second < 50; second++) {
    for (let n = 0; n < 5_000; n++) served += (await spend(`u${second * 5_000 + n}`)) ? 1 : 0;
    passSecond();
    most = Math.max(most, values());
  }
  expect(served).toBe(250_000);
  expect(most).toBeLessThanOrEqual(105_000);
  for (const user of ["u0", "u99999", "u249999"]) expect(await spend(user)).toBe(false);
}, 120_000);

test("a node forgets values that were quiet for a minute, and what it spent of them counts at all nodes", async () => {
  const authority = new FleetAuthority();
  authority.credit(balanceCounter(BALANCE), usd(1_000_000));
  const [one, other] = [ledgerOf(authority, "one"), ledgerOf(authority, "other")];
  const users = Array.from({ length: 3_000 }, (_, n) => `u${n}`);
  for (const user of users) expect(await one.spend(user, 6)).toBe(true);
  expect(one.values()).toBe(3_000);
  await one.passMinute();
  // The key keeps those of its latest request.
  expect(one.values()).toBe(1);
  expect(one.grants!.figures.counters).toBeLessThan(10);
  for (const user of ["u0", "u1500", "u2998"]) {
    expect(authority.granted(valueCounter(EACH, user, one.clock.now()))).toBe(6);
    expect(await one.spend(user, 5)).toBe(false);
    expect(await other.spend(user, 5)).toBe(false);
    expect(await one.spend(user, 4)).toBe(true);
    expect(await other.spend(user, 1)).toBe(false);
  }
}, 120_000);
