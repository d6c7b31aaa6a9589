import { beforeEach, describe, expect, test } from "bun:test";
import type { Budget, Key } from "../../src/customers/keys/key.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { Reservation } from "../../src/ledger/reservation.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationRequest } from "../fakes/reservation.ts";

const KEY = keyOf({ dailyLimit: 1_000 as NanoUsd, allowedModels: ["a/b"], budgets: ["team"] });
const TEAM: Budget = {
  id: "bud_team",
  balanceId: "bal_test" as BalanceId,
  name: "team",
  cap: 1_000 as NanoUsd,
  window: "total",
};

let holders: KnownHolders;
let ledger: Ledger;
const clock = new ManualClock();

beforeEach(() => {
  holders = new KnownHolders();
  const journal = { append: () => 1, withdraw: () => true };
  const sums = { spent: () => ZERO_USD, credited: () => 1_000 as NanoUsd };
  ledger = new Ledger(clock, journal, sums, holders);
});

const request = () => reservationRequest({ at: clock.now(), key: KEY, budgets: [TEAM], amount: 100 });

/** A request that was read with the key as `KEY` is, once that was changed. */
async function admitAfter(key: Key, budgets: readonly Budget[]) {
  holders.put(KEY, [TEAM]);
  const counters = await ledger.counters.of(KEY, [TEAM], [], clock.now());
  holders.put(key, budgets);
  return ledger.admit(counters, request());
}

describe("a request that waited is admitted by what it was read with where, meanwhile,", () => {
  test.each<[string, Key, readonly Budget[]]>([
    ["nothing changed, and all of it was read again", structuredClone(KEY), [{ ...TEAM }]],
    ["the key got another name", { ...KEY, name: "other" }, [TEAM]],
    ["the key was rotated, and is in its grace", { ...KEY, state: "rotated" }, [TEAM]],
  ])("%s", async (_what, key, budgets) => {
    expect(await admitAfter(key, budgets)).toBeInstanceOf(Reservation);
  });
});

describe("and is read again where", () => {
  test.each<[string, Key, readonly Budget[]]>([
    ["a limit changed", { ...KEY, dailyLimit: 999 as NanoUsd }, [TEAM]],
    ["a rate was set", { ...KEY, rpmLimit: 9 }, [TEAM]],
    ["its models changed", { ...KEY, allowedModels: null }, [TEAM]],
    ["the budget's cap changed", KEY, [{ ...TEAM, cap: 999 as NanoUsd }]],
    ["the budget's window changed", KEY, [{ ...TEAM, window: "day" }]],
    ["it draws from no budget any more", KEY, []],
    ["it was revoked", { ...KEY, state: "revoked" }, [TEAM]],
  ])("%s", async (_what, key, budgets) => {
    expect(await admitAfter(key, budgets)).toEqual({ what: "key" });
    expect(await ledger.isStillCurrent(request())).toBe(false);
  });
});
