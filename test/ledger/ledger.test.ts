import { describe, expect, test } from "bun:test";
import type { Budget, Key } from "../../src/customers/keys/key.ts";
import { balanceCounter, budgetCounter, keyCounter } from "../../src/ledger/counter.ts";
import { GrantClaim, Grants } from "../../src/ledger/grants.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { Reservation, type ReservationEnd, type ReservationRequest } from "../../src/ledger/reservation.ts";
import type { Shortfall } from "../../src/ledger/shortfall.ts";
import { type Clock, DAY_MS, type EpochMs, epochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf as anyKey } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";
import { FleetAuthority } from "../sim/fleet-authority.ts";

const NOON = epochMs(Date.UTC(2026, 10, 21, 12));
const FREE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } as ReservationRequest["price"];

/** A ledger whose clock is set by hand and whose journal is a list. */
function open(
  credited = 1_000,
  { withdraws = true, grants }: { withdraws?: boolean; grants?: (clock: Clock) => Grants } = {},
) {
  const time = { now: NOON as EpochMs, elapsedMs: 0 };
  const clock = { now: () => time.now, elapsedMs: () => time.elapsedMs, after: () => ({ cancel() {} }) };
  const records: LedgerRecord[] = [];
  const journal = {
    append: (record: LedgerRecord) => records.push(record),
    withdraw: (sequence: number) => withdraws && records.splice(sequence - 1, 1).length === 1,
  };
  const sums = { spent: () => ZERO_USD, credited: () => credited as NanoUsd };
  const holders = new KnownHolders();
  return { ledger: new Ledger(clock, journal, sums, holders, grants?.(clock)), records, time, holders };
}

/** One that shares its limits with others, and is granted what it asks for. */
function openShared() {
  const authority = new FleetAuthority();
  authority.credit(balanceCounter("bal_a" as BalanceId), 1_000 as NanoUsd);
  let shared: Grants | null = null;
  const books = open(1_000, {
    grants(clock) {
      const grants: Grants = new Grants("n", 1, clock, (statement) => {
        queueMicrotask(() => grants.receive(authority.settle(statement)!));
      });
      shared = grants;
      return grants;
    },
  });
  return { ...books, grants: shared! as Grants };
}

const keyOf = (limits: Partial<Key> = {}): Key =>
  anyKey({ id: "key_a" as KeyId, rotationId: "key_a" as KeyId, balanceId: "bal_a" as BalanceId, ...limits });

const budgetOf = (name: string, cap: number, window: Budget["window"] = "day"): Budget => ({
  id: `bud_${name}`,
  balanceId: "bal_a" as BalanceId,
  name,
  cap: cap as NanoUsd,
  window,
});

async function admit(
  { ledger, time, holders }: ReturnType<typeof open>,
  amount: number,
  key = keyOf(),
  more: Partial<ReservationRequest> = {},
  meanwhile: (holders: KnownHolders) => void = () => {},
): Promise<Reservation | Shortfall> {
  const { rpmLimit, tpmLimit } = key;
  const request = reservationRequest({
    at: time.now,
    key,
    rpmLimit,
    tpmLimit,
    amount,
    rateTokens: 10,
    promptTokens: 5,
    price: FREE,
    about: { surface: "messages", model: "a/b", stream: false },
    ...more,
  });
  const keyCounters = await ledger.counters.of(key, request.budgets, request.allowances, request.at);
  const claim = new GrantClaim();
  await ledger.replenish(keyCounters, request, claim);
  claim.release();
  holders.put(key, request.budgets);
  meanwhile(holders);
  return ledger.admit(keyCounters, request);
}

const admitted = (result: Reservation | Shortfall): Reservation => {
  expect(result).toBeInstanceOf(Reservation);
  return result as Reservation;
};
const shortOf = (result: Reservation | Shortfall): string =>
  result instanceof Reservation ? "nothing" : result.what;

const ending = (cost: number, more: Partial<ReservationEnd> = {}) =>
  reservationEnd(cost, { rateTokens: 10, allowanceUsed: true, ...more });

describe("a thousand requests at once", () => {
  test.each<[string, Partial<Key>, Partial<ReservationRequest>, string]>([
    ["a balance", {}, {}, "balance"],
    ["a daily cap", { dailyLimit: 100 as NanoUsd }, {}, "daily_limit_usd"],
    ["a monthly cap", { monthlyLimit: 100 as NanoUsd }, {}, "monthly_limit_usd"],
    ["a budget", {}, { budgets: [budgetOf("team", 100)] }, "budget"],
    ["rpm", { rpmLimit: 10 }, {}, "rpm_limit"],
    ["tpm", { tpmLimit: 100 }, {}, "tpm_limit"],
    ["an allowance", {}, { allowances: [{ owner: "bal_a", limit: 10 }] }, "allowance"],
  ])("%s that covers ten admits ten", async (_name, limits, more, what) => {
    const books = open(what === "balance" ? 100 : 1_000_000);
    const results = await Promise.all(
      Array.from({ length: 1_000 }, () => admit(books, 10, keyOf(limits), more)),
    );
    expect(results.filter((result) => result instanceof Reservation).length).toBe(10);
    expect(new Set(results.map(shortOf))).toEqual(new Set(["nothing", what]));
  });

  test("fifty keys that share a budget stay within it together", async () => {
    const books = open(1_000_000);
    const keys = Array.from({ length: 50 }, (_, index) =>
      keyOf({ id: `key_${index}`, rotationId: `key_${index}` }),
    );
    const budgets = [budgetOf("team", 100)];
    const results = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => admit(books, 10, keys[index % 50]!, { budgets })),
    );
    expect(results.filter((result) => result instanceof Reservation).length).toBe(10);
  });
});

test("what is refused takes nothing from anything", async () => {
  const books = open(1_000);
  const key = keyOf({ dailyLimit: 100 as NanoUsd, rpmLimit: 2 });
  expect(shortOf(await admit(books, 200, key))).toBe("daily_limit_usd");
  expect(await books.ledger.balance(key.balanceId)).toEqual({
    credited: 1_000 as NanoUsd,
    total: 1_000 as NanoUsd,
    held: ZERO_USD,
    available: 1_000 as NanoUsd,
  });
  admitted(await admit(books, 50, key));
  admitted(await admit(books, 50, key));
  expect(shortOf(await admit(books, 0, key))).toBe("rpm_limit");
});

test.each<[string, (holders: KnownHolders) => void]>([
  ["got another limit", (holders) => holders.put(keyOf({ dailyLimit: 5 as NanoUsd }))],
  ["draws from another budget", (holders) => holders.put(keyOf(), [budgetOf("other", 5)])],
  ["is charged by another price list", (holders) => holders.put(keyOf({ priceList: "partner" }))],
  ["was revoked", (holders) => holders.put(keyOf({ state: "revoked" }))],
  ["was suspended", (holders) => holders.put(keyOf(), [], "chargeback")],
  ["is being read", (holders) => holders.forget(keyOf())],
])(
  "a request whose key %s while it waited takes nothing, and is not refused by what was before",
  async (_, meanwhile) => {
    const books = open(1_000);
    const key = keyOf();
    expect(shortOf(await admit(books, 10, key, {}, meanwhile))).toBe("key");
    expect(await books.ledger.balance(key.balanceId)).toMatchObject({ held: ZERO_USD });
    expect(shortOf(await admit(books, 2_000, key, {}, meanwhile))).toBe("key");
  },
);

test("refusals come in the documented order: allowance, rates, balance, and of the caps the one that holds longest", async () => {
  const books = open(0);
  const limits = { rpmLimit: 0, tpmLimit: 0, dailyLimit: ZERO_USD, monthlyLimit: ZERO_USD };
  const budgets = [budgetOf("one", 0), budgetOf("two", 0)];
  const allowances = [{ owner: "bal_a", limit: 0 }];
  const order: string[] = [];
  const steps: [Partial<Key>, Partial<ReservationRequest>, number][] = [
    [limits, { budgets, allowances }, 0],
    [limits, { budgets }, 0],
    [{ ...limits, rpmLimit: null }, { budgets }, 0],
    [{ ...limits, rpmLimit: null, tpmLimit: null }, { budgets }, 0],
    [{ ...limits, rpmLimit: null, tpmLimit: null }, { budgets }, 100],
    [{ dailyLimit: ZERO_USD }, { budgets }, 0],
    [{}, { budgets }, 0],
  ];
  for (const [keyLimits, more, credit] of steps) {
    books.ledger.credited("bal_a" as BalanceId, credit as NanoUsd);
    order.push(shortOf(await admit(books, 1, keyOf(keyLimits), more)));
  }
  expect(order).toEqual([
    "allowance",
    "rpm_limit",
    "tpm_limit",
    "balance",
    "monthly_limit_usd",
    "daily_limit_usd",
    "budget",
  ]);
});

describe("of several caps without room, the refusal is about the one that makes room last", () => {
  const both = { dailyLimit: 100 as NanoUsd, monthlyLimit: 100 as NanoUsd };
  const total = { ...budgetOf("total", 100), window: "total" as const };

  test.each<[string, Partial<Key>, readonly Budget[], string]>([
    ["the day and the month", both, [], "monthly_limit_usd"],
    [
      "the day and a budget of the day",
      { dailyLimit: 100 as NanoUsd },
      [budgetOf("day", 100)],
      "daily_limit_usd",
    ],
    ["the month and a budget without an end", both, [budgetOf("day", 100), total], "budget total"],
  ])("%s are spent", async (_name, limits, budgets, what) => {
    const books = open(1_000);
    const reservation = admitted(await admit(books, 100, keyOf(limits), { budgets }));
    books.ledger.settle(reservation, ending(100), () => "{}");
    const short = (await admit(books, 10, keyOf(limits), { budgets })) as { what: string; name?: string };
    expect([short.what, short.name].join(" ").trim()).toBe(what);
  });

  test("the month is only held by an open request, which may end at any moment; the day is spent", async () => {
    const books = open(1_000);
    const spent = admitted(await admit(books, 100, keyOf({ dailyLimit: 100 as NanoUsd })));
    books.ledger.settle(spent, ending(100), () => "{}");
    admitted(await admit(books, 200, keyOf({ monthlyLimit: 300 as NanoUsd })));
    const limits = { dailyLimit: 100 as NanoUsd, monthlyLimit: 300 as NanoUsd };
    expect(shortOf(await admit(books, 10, keyOf(limits)))).toBe("daily_limit_usd");
  });
});

describe("settling", () => {
  test("charges the cost, gives the rest back, and can be done once", async () => {
    const books = open(100);
    const reservation = admitted(await admit(books, 80));
    const settled = books.ledger.settle(reservation, ending(30), () => "{}");
    expect(settled).toMatchObject({ charged: 30, lost: 0, held: 80 });
    expect((await books.ledger.balance("bal_a" as BalanceId)).available).toBe(70 as NanoUsd);
    expect(() => books.ledger.settle(reservation, ending(30), () => "{}")).toThrow("settled twice");
  });

  test("a cost beyond the hold is charged up to the most it may come to where everything has room, and is the gateway's loss where not", async () => {
    const most = { amount: 60 as NanoUsd, tokens: 1_000 };
    const books = open(100);
    const reservation = admitted(await admit(books, 10, keyOf(), { most }));
    expect(books.ledger.settle(reservation, ending(70), () => "{}")).toMatchObject({ charged: 60, lost: 10 });
    const second = admitted(await admit(books, 30, keyOf(), { most }));
    expect(books.ledger.settle(second, ending(41), () => "{}")).toMatchObject({ charged: 30, lost: 11 });
    expect(books.ledger.lost).toBe(21 as NanoUsd);
    expect((await books.ledger.balance("bal_a" as BalanceId)).available).toBe(10 as NanoUsd);
  });

  test("a hold that is all it may come to does not grow, however much credit there is", async () => {
    const books = open(1_000_000);
    const reservation = admitted(await admit(books, 10));
    const settled = books.ledger.settle(reservation, ending(999_999), () => "{}");
    expect(settled).toMatchObject({ charged: 10, lost: 999_989, held: 10 });
  });

  test("tokens that a host makes up do not use up the key's rate", async () => {
    const books = open(1_000);
    const key = keyOf({ tpmLimit: 100 });
    const reservation = admitted(
      await admit(books, 10, key, { most: { amount: 10 as NanoUsd, tokens: 40 } }),
    );
    books.ledger.settle(reservation, ending(10, { rateTokens: 1e9 }), () => "{}");
    admitted(await admit(books, 10, key, { rateTokens: 60 }));
  });

  test("a write-off charges nothing and is on the record", async () => {
    const books = open(100);
    const reservation = admitted(await admit(books, 10));
    const settled = books.ledger.settle(reservation, ending(4, { state: "written_off" }), () => "{}");
    expect(settled).toMatchObject({ charged: 0, writtenOff: 4 });
    expect(books.records.at(-1)).toMatchObject({
      kind: "terminal",
      state: "written_off",
      charged: 0,
      writtenOff: 4,
    });
  });

  test("a charge that could not be recorded is taken back whole", async () => {
    const books = open(100);
    const reservation = admitted(await admit(books, 80));
    const settlement = books.ledger.settle(reservation, ending(120), () => "{}");
    expect(books.ledger.lost).toBe(40 as NanoUsd);
    expect(books.ledger.takeBack(reservation, settlement, "{}")).toBe(true);
    expect(books.ledger.lost).toBe(ZERO_USD);
    expect((await books.ledger.balance("bal_a" as BalanceId)).available).toBe(100 as NanoUsd);
    expect(books.records.at(-1)).toMatchObject({ kind: "terminal", state: "failed", charged: 0 });
  });

  test("a charge whose record is on its way to the disk after all stands", async () => {
    const books = open(100, { withdraws: false });
    const reservation = admitted(await admit(books, 80));
    const settlement = books.ledger.settle(reservation, ending(70), () => "{}");
    const recorded = books.records.length;
    expect(books.ledger.takeBack(reservation, settlement, "{}")).toBe(false);
    expect((await books.ledger.balance("bal_a" as BalanceId)).available).toBe(30 as NanoUsd);
    expect(books.records).toHaveLength(recorded);
  });

  test("counts on the day and month of admission, also after midnight", async () => {
    const books = open(1_000);
    books.time.now = epochMs(Date.UTC(2026, 10, 30, 23, 59, 59));
    const key = keyOf({ dailyLimit: 100 as NanoUsd, monthlyLimit: 100 as NanoUsd });
    const reservation = admitted(await admit(books, 100, key));
    const admittedAt = books.time.now;
    books.time.now = epochMs(Date.UTC(2026, 11, 1, 0, 0, 1));
    books.ledger.settle(reservation, ending(90), () => "{}");
    expect(await books.ledger.counters.use(keyCounter("day", key.rotationId, admittedAt))).toMatchObject({
      spent: 90,
    });
    for (const window of ["day", "month"] as const) {
      const today = keyCounter(window, key.rotationId, books.time.now);
      expect(await books.ledger.counters.use(today)).toEqual({ spent: ZERO_USD, held: ZERO_USD });
    }
    admitted(await admit(books, 100, key));
  });

  test("grows after midnight only as far as the day of its admission has room", async () => {
    const books = open(1_000);
    books.time.now = epochMs(Date.UTC(2026, 10, 30, 23, 59, 59));
    const key = keyOf({ dailyLimit: 100 as NanoUsd });
    const admittedAt = books.time.now;
    const long = admitted(await admit(books, 60, key));
    const other = admitted(await admit(books, 40, key));
    books.time.now = epochMs(Date.UTC(2026, 11, 1, 0, 0, 1));
    // The key's keyCounters is now that of the new day, which has room.
    admitted(await admit(books, 10, key));
    expect(books.ledger.coversMore(long, 1 as NanoUsd)).toBe(false);
    expect(books.ledger.extend(long, 30 as NanoUsd)).toBe(false);
    books.ledger.settle(long, ending(90), () => "{}");
    books.ledger.settle(other, ending(40), () => "{}");
    expect(await books.ledger.counters.use(keyCounter("day", key.rotationId, admittedAt))).toMatchObject({
      spent: 100,
    });
  });

  test("a clock that is set back over midnight counts on the day that it then is", async () => {
    const books = open(1_000);
    const key = keyOf({ dailyLimit: 100 as NanoUsd });
    const evening = epochMs(Date.UTC(2026, 10, 21, 23, 59));
    const spend = async (at: EpochMs, amount: number) => {
      books.time.now = at;
      const reservation = await admit(books, amount, key);
      if (reservation instanceof Reservation) books.ledger.settle(reservation, ending(amount), () => "{}");
      return shortOf(reservation);
    };
    expect(await spend(evening, 90)).toBe("nothing");
    expect(await spend(epochMs(evening + 120_000), 10)).toBe("nothing");
    // Back in the evening, of which only 10 are left.
    expect(await spend(evening, 60)).toBe("daily_limit_usd");
    expect(await spend(evening, 10)).toBe("nothing");
    expect(await books.ledger.counters.use(keyCounter("day", key.rotationId, evening))).toMatchObject({
      spent: 100,
    });
  });

  test("the token rate is charged with what was really used", async () => {
    const books = open();
    const key = keyOf({ tpmLimit: 100 });
    const reservation = admitted(await admit(books, 0, key, { rateTokens: 100 }));
    expect(shortOf(await admit(books, 0, key))).toBe("tpm_limit");
    books.ledger.settle(reservation, ending(0, { rateTokens: 20 }), () => "{}");
    admitted(await admit(books, 0, key, { rateTokens: 80 }));
  });

  test("an allowance comes back when the free request was not served", async () => {
    const books = open();
    const allowances = [{ owner: "bal_a", limit: 1 }];
    const failed = admitted(await admit(books, 0, keyOf(), { allowances }));
    expect(shortOf(await admit(books, 0, keyOf(), { allowances }))).toBe("allowance");
    books.ledger.settle(failed, ending(0, { state: "failed", allowanceUsed: false }), () => "{}");
    const served = admitted(await admit(books, 0, keyOf(), { allowances }));
    books.ledger.settle(served, ending(0), () => "{}");
    expect(shortOf(await admit(books, 0, keyOf(), { allowances }))).toBe("allowance");
  });
});

test("a rotated key goes on with its predecessor's counts", async () => {
  const books = open();
  const first = keyOf({ rpmLimit: 1, dailyLimit: 50 as NanoUsd });
  admitted(await admit(books, 50, first));
  const rotated = keyOf({ id: "key_b" as KeyId, dailyLimit: 50 as NanoUsd });
  expect(shortOf(await admit(books, 1, rotated))).toBe("daily_limit_usd");
  expect(shortOf(await admit(books, 0, { ...rotated, rpmLimit: 1 }))).toBe("rpm_limit");
});

test("a hold grows while there is room on everything, and not beyond", async () => {
  const books = open(1_000);
  const budgets = [budgetOf("team", 30, "total")];
  const reservation = admitted(await admit(books, 10, keyOf(), { budgets }));
  expect(books.ledger.extend(reservation, 20 as NanoUsd)).toBe(true);
  expect(books.ledger.extend(reservation, 1 as NanoUsd)).toBe(false);
  expect(await books.ledger.counters.use(budgetCounter(budgets[0]!.id, "total", NOON))).toMatchObject({
    held: 30,
  });
});

test("a checkpoint records who serves an open stream and how far it got, and nothing of one that has ended", async () => {
  const books = open();
  const { ledger, records } = books;
  const by = { model: "a/b", host: "h", price: FREE, attempts: [], firstTokenMs: 1 };
  const streams: Reservation[] = [];
  for (const amount of [10, 20]) {
    const stream = admitted(await admit(books, amount));
    streams.push(stream);
    ledger.serves(stream, by);
    ledger.delivered(stream, 5);
  }
  const [ended, still] = records.flatMap((record) => (record.kind === "hold" ? [record.receipt] : []));
  ledger.settle(streams[0]!, ending(5), () => "{}");
  // What streams deliver after their end, such as a count that comes late, is nothing any more.
  ledger.serves(streams[0]!, by);
  ledger.delivered(streams[0]!, 9);
  const before = records.length;
  ledger.checkpoint();
  const written = records.slice(before);
  expect(written.map((record) => ("receipt" in record ? record.receipt : record.kind))).toEqual([
    still!,
    "delivered",
  ]);
  expect(written[0]).toMatchObject({ kind: "hold", served: { model: "a/b", host: "h" } });
  expect(written[1]).toEqual({ kind: "delivered", tokens: [[still!, 5]] });
  expect(JSON.stringify(written)).not.toContain(ended!);
  ledger.checkpoint();
  expect(records).toHaveLength(before + 2);
});

test("forgetting the idle loses no open hold and no sum that the store does not have yet", async () => {
  const books = open(100);
  const open1 = admitted(await admit(books, 40));
  books.time.elapsedMs = 10_000_000;
  books.ledger.forgetIdle(Number.MAX_SAFE_INTEGER, 600_000);
  expect((await books.ledger.balance("bal_a" as BalanceId)).held).toBe(40 as NanoUsd);
  const { sequence } = books.ledger.settle(open1, ending(40), () => "{}");
  books.time.elapsedMs = 20_000_000;
  books.ledger.forgetIdle(sequence - 1, 600_000);
  expect((await books.ledger.balance("bal_a" as BalanceId)).available).toBe(60 as NanoUsd);
});

describe("of several gateways that share their limits, each", () => {
  const forgetAfter = async ({ ledger, grants, time }: ReturnType<typeof openShared>, days: number) => {
    time.now = (NOON + days * DAY_MS) as EpochMs;
    time.elapsedMs += days * DAY_MS;
    // What nobody uses at two looks is given back.
    for (let round = 0; round < 2; round++) grants.returnIdle();
    await Bun.sleep(0);
    return ledger.forgetIdle(Number.MAX_SAFE_INTEGER, 600_000);
  };
  const kinds = ({ ledger }: ReturnType<typeof openShared>) =>
    [...ledger.counters.booked()].map(({ id }) => id.split(":").slice(0, -1).join(" ")).sort();

  test("forgets windows that are long over, and remembers what it spent of those that are not", async () => {
    const books = openShared();
    const budgets = [budgetOf("team", 500, "month")];
    const reservation = admitted(await admit(books, 40, keyOf(), { budgets }));
    books.ledger.settle(reservation, ending(40), () => "{}");
    // The 21st of a month: a week later it is the same month.
    await forgetAfter(books, 7);
    expect(kinds(books)).toEqual([
      "balance",
      "budget bud_team month",
      "budget bud_team total",
      "month key_a",
    ]);
    const over = await forgetAfter(books, 40);
    expect(over.map((id) => id.split(":").slice(0, -1).join(" "))).toEqual([
      "month key_a",
      "budget bud_team month",
    ]);
    expect(kinds(books)).toEqual(["balance", "budget bud_team total"]);
  });

  test("forgets whom it spent nothing of, as all that are refused", async () => {
    const books = openShared();
    expect(shortOf(await admit(books, 2_000))).toBe("balance");
    expect(kinds(books)).toEqual(["balance", "day key_a", "month key_a"]);
    await forgetAfter(books, 1);
    expect(kinds(books)).toEqual([]);
    expect(await admit(books, 40)).toBeInstanceOf(Reservation);
  });
});

test("a key above its rate is known before anything of its request is read, and an idle one is not kept for it", async () => {
  const books = open();
  const key = keyOf({ rpmLimit: 2 });
  const { ledger, time } = books;
  expect(ledger.overRate(key)).toBeNull();
  const [first, second] = [admitted(await admit(books, 1, key)), admitted(await admit(books, 1, key))];
  expect(ledger.overRate(key)).toMatchObject({ what: "rpm_limit", limit: 2, retryAfterS: 60 });
  expect(ledger.overRate({ ...key, rpmLimit: 3 })).toBeNull();
  expect(ledger.overRate({ ...key, rpmLimit: null })).toBeNull();

  const isKept = () => !(ledger.counters.of(key, [], [], NOON) instanceof Promise);
  const forgetAfter = (ms: number) => {
    time.elapsedMs += ms;
    ledger.forgetIdle(Number.MAX_SAFE_INTEGER, 600_000);
  };
  forgetAfter(59_999);
  expect(ledger.overRate(key)).not.toBeNull();
  forgetAfter(600_000);
  // Its rate is idle, but a request is open.
  expect(isKept()).toBe(true);
  for (const reservation of [first, second]) ledger.settle(reservation, ending(1), () => "{}");
  forgetAfter(600_000);
  expect(isKept()).toBe(true);
  forgetAfter(600_001);
  expect(isKept()).toBe(false);
});
