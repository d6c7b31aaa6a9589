import { afterEach, beforeEach, expect, test } from "bun:test";
import { JUST_CREATED, type Payment } from "../../src/payments/payment.ts";
import type { PaymentAudit, PaymentStore } from "../../src/payments/payment-store.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import { MAX_NANO_USD, type NanoUsd } from "../../src/units/usd.ts";

const usd = (amount: number) => (amount * 1_000_000_000) as NanoUsd;
const A = "bal_a" as BalanceId;
const B = "bal_b" as BalanceId;
export const NOW = 1_000_000 as EpochMs;

/** A store of either kind with two balances, `bal_a` and `bal_b`. */
export interface PaymentBench {
  readonly store: PaymentStore & PaymentAudit;
  /** Enters a debit of so much in the books of `bal_a`, so many milliseconds ago. */
  debit(idempotencyKey: string, amount: NanoUsd, agoMs: number): Promise<unknown>;
  /** What the store's books say. */
  credited(balance: BalanceId): Promise<number>;
  close(): Promise<void>;
}

export const payment = (name: string, changes: Partial<Payment> = {}): Payment => ({
  ...JUST_CREATED,
  id: `pay_${name}`,
  rail: "x402",
  external: `eip155:1/0xa/0xb/${name}`,
  balanceId: A,
  keyId: "key_1" as KeyId,
  amount: usd(5),
  payer: "0xb",
  order: "{}",
  idempotencyKey: null,
  isInline: false,
  gas: 0,
  createdAt: NOW,
  changedAt: NOW,
  nextPollAt: NOW,
  ...changes,
});

/** What holds for payments, whichever store keeps them. */
export function paymentCases(open: () => Promise<PaymentBench>): void {
  let bench: PaymentBench;
  let store: PaymentBench["store"];
  beforeEach(async () => {
    bench = await open();
    ({ store } = bench);
  });
  afterEach(() => bench.close());

  test("the first to record an authorization has it, whatever is added later", async () => {
    const first = payment("1", { order: '{"a":"ü"}' });
    expect(await store.add(first, [])).toEqual({ kind: "added", payment: first });
    const other = payment("2", { external: first.external, balanceId: B });
    expect(await store.add(other, [])).toEqual({ kind: "known", payment: first });
    const sameAgain = await Promise.all(
      [3, 4, 5].map((n) => store.add(payment(`${n}`, { external: "x" }), [])),
    );
    expect(sameAgain.map(({ kind }) => kind).toSorted()).toEqual(["added", "known", "known"]);
    expect(await store.byExternal("x402", first.external)).toEqual(first);
    expect(await store.byExternal("card", first.external)).toBeNull();
    expect(await store.find("pay_none")).toBeNull();
  });

  test("an idempotency key is one payment of its balance, until that came to nothing", async () => {
    const keyed = (name: string, more: Partial<Payment> = {}) =>
      payment(name, { idempotencyKey: "k", ...more });
    await store.add(keyed("1"), []);
    expect(await store.add(keyed("2"), [])).toMatchObject({ kind: "known", payment: { id: "pay_1" } });
    expect(await store.add(keyed("3", { balanceId: B }), [])).toMatchObject({ kind: "added" });
    await store.change("pay_1", () => ({ state: "failed", nextPollAt: null }));
    expect(await store.add(keyed("4"), [])).toMatchObject({ kind: "added" });
  });

  test("what is paid within a time is capped, for a balance and for a key's requests", async () => {
    const since = (NOW - 1) as EpochMs;
    const day = { of: "balance", limit: usd(10), since } as const;
    const hour = { of: "key", limit: usd(7), since } as const;
    const kinds: string[] = [];
    const add = async (name: string, more: Partial<Payment>) =>
      kinds.push((await store.add(payment(name, more), more.isInline === true ? [day, hour] : [day])).kind);
    await add("old", { createdAt: 5 as EpochMs });
    await add("failed", { state: "failed" });
    await add("elsewhere", { balanceId: B });
    await add("first", {});
    await add("inline", { isInline: true, amount: usd(4) });
    await add("over the hour", { isInline: true, amount: usd(4) });
    await add("over the day", { amount: usd(2) });
    await add("within both", { isInline: true, amount: usd(1) });
    expect(kinds).toEqual(["added", "added", "added", "added", "added", "capped", "capped", "added"]);
    expect(await store.add(payment("more"), [day])).toEqual({ kind: "capped", cap: day });
  });

  test("of one payer, so many may be under way at a time, into whichever balances", async () => {
    const two = { of: "payer", most: 2 } as const;
    const add = (name: string, more: Partial<Payment> = {}) => store.add(payment(name, more), [two]);
    const atOnce = await Promise.all(
      ["1", "2", "3", "4"].map((name, n) => add(name, { balanceId: n % 2 === 0 ? A : B })),
    );
    expect(atOnce.map(({ kind }) => kind).toSorted()).toEqual(["added", "added", "capped", "capped"]);
    expect(atOnce).toContainEqual({ kind: "capped", cap: two });
    expect(await add("another's", { payer: "0xc" })).toMatchObject({ kind: "added" });
    const added = atOnce.flatMap((one) => (one.kind === "added" ? [one.payment] : []));
    expect(await add("again", { external: added[0]!.external })).toMatchObject({ kind: "known" });
    await store.change(added[0]!.id, () => ({ state: "submitted" }));
    expect(await add("5")).toMatchObject({ kind: "capped" });
    await store.change(added[0]!.id, () => ({ state: "confirming" }));
    expect(await add("6")).toMatchObject({ kind: "added" });
  });

  test("who has wasted gas is refused until that is long enough ago", async () => {
    const cap = { of: "payer gas", since: NOW } as const;
    const add = (name: string, more: Partial<Payment> = {}) => store.add(payment(name, more), [cap]);
    await add("1");
    expect(await add("2")).toMatchObject({ kind: "added" });
    await store.change("pay_1", () => ({ gas: 9, wastedAt: NOW }));
    expect(await add("3")).toMatchObject({ kind: "added" });
    await store.change("pay_1", () => ({ state: "failed", gas: 12, wastedAt: (NOW + 1) as EpochMs }));
    expect(await add("4", { balanceId: B })).toEqual({ kind: "capped", cap });
    expect(await add("another's", { payer: "0xc" })).toMatchObject({ kind: "added" });
    expect(await add("on a card", { rail: "card" })).toMatchObject({ kind: "added" });
  });

  test("gas that payments may waste is capped for a network, with what was wasted since", async () => {
    const cap = { of: "network gas", network: "eip155:1", most: 900, since: NOW } as const;
    const add = (name: string, more: Partial<Payment> = {}) =>
      store.add(payment(name, { payer: name, gas: 300, ...more }), [cap]);
    await store.add(payment("elsewhere", { gas: 300, external: "eip155:10/0xa/0xb/1" }), []);
    const atOnce = await Promise.all(
      ["1", "2", "3", "4", "5"].map((name, n) => add(name, { balanceId: n % 2 === 0 ? A : B })),
    );
    expect(atOnce.filter(({ kind }) => kind === "capped")).toEqual([
      { kind: "capped", cap },
      { kind: "capped", cap },
    ]);
    expect(await add("plain", { gas: 0 })).toMatchObject({ kind: "added" });
    const [one, other] = atOnce.flatMap((added) => (added.kind === "added" ? [added.payment.id] : []));
    await store.change(one!, () => ({ state: "credited" }));
    expect(await add("6")).toMatchObject({ kind: "added" });
    await store.change(other!, () => ({ gas: 290, wastedAt: (NOW + 1) as EpochMs }));
    expect(await add("7")).toMatchObject({ kind: "capped" });
    expect(await add("8", { gas: 10 })).toMatchObject({ kind: "added" });
    await store.change(other!, () => ({ wastedAt: NOW }));
    expect(await add("9", { gas: 290 })).toMatchObject({ kind: "added" });
  });

  test("of one balance, so many that were not needed are watched at a time", async () => {
    const two = { of: "unused", most: 2 } as const;
    const add = (name: string, more: Partial<Payment> = {}) =>
      store.add(payment(name, { state: "unused", ...more }), [two]);
    const kinds = (await Promise.all(["1", "2", "3"].map((name) => add(name)))).map(({ kind }) => kind);
    expect(kinds.toSorted()).toEqual(["added", "added", "capped"]);
    expect(await add("elsewhere", { balanceId: B })).toMatchObject({ kind: "added" });
    const [watched] = await store.list({ balanceId: A, keyId: null, state: "unused" }, 1, null);
    await store.change(watched!.id, () => ({ nextPollAt: null }));
    expect(await add("4")).toMatchObject({ kind: "added" });
  });

  test("of one balance, so many wait for a card at a time", async () => {
    const two = { of: "page", most: 2 } as const;
    const add = (name: string, more: Partial<Payment> = {}) =>
      store.add(payment(name, { rail: "card", ...more }), [two]);
    await store.add(payment("by a wallet"), []);
    const added = await Promise.all(["1", "2", "3"].map((name) => add(name)));
    expect(added.map(({ kind }) => kind).toSorted()).toEqual(["added", "added", "capped"]);
    expect(await add("elsewhere", { balanceId: B })).toMatchObject({ kind: "added" });
    const [open] = added.flatMap((one) => (one.kind === "added" ? [one.payment] : []));
    await store.change(open!.id, () => ({ state: "expired", nextPollAt: null }));
    expect(await add("4")).toMatchObject({ kind: "added" });
  });

  test("a payment is credited with its state, once, however often and in whatever order that is reported", async () => {
    await store.add(payment("1"), []);
    const credit = () =>
      store.change("pay_1", ({ state }) =>
        state === "credited" ? null : { state: "credited", nextPollAt: null, credit: { amount: usd(5) } },
      );
    const done = await Promise.all([credit(), credit(), credit()]);
    expect(done.map(({ state, credited }) => [state, credited])).toEqual(Array(3).fill(["credited", usd(5)]));
    expect(await bench.credited(A)).toBe(usd(5));
    // Late news of what it was before.
    expect(await store.change("pay_1", () => ({ state: "submitted", reason: "late" }))).toEqual(done[0]!);
    const back = await store.change("pay_1", () => ({ state: "refunded", debited: usd(3), lost: usd(2) }));
    expect(back).toMatchObject({ state: "refunded", credited: usd(2), lost: usd(2) });
    expect(await store.find("pay_1")).toEqual(back);
  });

  test("one that says another credit than its entries come to is found, a debit of the last minute aside", async () => {
    for (const name of ["1", "2", "3", "10"]) await store.add(payment(name), []);
    for (const name of ["1", "2", "10"] as const)
      await store.change(`pay_${name}`, () => ({ state: "credited", credit: { amount: usd(5) } }));
    const won = { amount: usd(1), purpose: "more:1" } as const;
    await store.change("pay_1", () => ({ credit: won }));
    expect(await store.drifts()).toEqual([]);
    await bench.debit("payment:pay_2:back:1", usd(2), 1_000);
    expect(await store.drifts()).toEqual([]);
    await store.change("pay_2", () => ({ debited: usd(2) }));
    expect(await store.drifts()).toEqual([]);
    // Taken back, and never noted; noted, and never taken back; of no payment at all.
    await bench.debit("payment:pay_1:back:1", usd(3), 61_000);
    await store.change("pay_10", () => ({ state: "failed", debited: usd(4) }));
    await bench.debit("payment:pay_none", usd(1), 61_000);
    await bench.debit("PAYMENT:pay_3", usd(1), 61_000);
    const drifts = (await store.drifts()).map(({ payment, driftNano }) => [payment, Number(driftNano)]);
    expect(drifts.toSorted()).toEqual([
      ["pay_1", usd(3)],
      ["pay_10", usd(4)],
      ["pay_none", usd(1)],
    ]);
  });

  test("one that is settled and not what it should be is found", async () => {
    for (const name of ["1", "2", "3"]) await store.add(payment(name, { nextPollAt: null }), []);
    const credit = { amount: usd(5) };
    await store.change("pay_1", () => ({ state: "credited", credit, shouldBe: usd(5) }));
    await store.change("pay_2", () => ({ state: "credited", credit, shouldBe: usd(4) }));
    expect(await store.drifts()).toEqual([{ payment: "pay_2", driftNano: BigInt(usd(1)) }]);
    await store.change("pay_2", () => ({ lost: usd(1) }));
    expect(await store.drifts()).toEqual([]);
    await store.change("pay_1", () => ({ shouldBe: usd(6), nextPollAt: NOW }));
    expect(await store.drifts()).toEqual([]);
  });

  test("what the balance cannot hold waits for the operator", async () => {
    await store.add(payment("1"), []);
    await store.add(payment("2"), []);
    const credit = (id: Payment["id"], amount: NanoUsd) =>
      store.change(id, () => ({ state: "credited", credit: { amount } }));
    await credit("pay_1", MAX_NANO_USD);
    const much = await credit("pay_2", usd(5));
    expect(much).toMatchObject({ state: "held", credited: 0, reason: expect.stringContaining("exactly") });
    expect(await bench.credited(A)).toBe(MAX_NANO_USD);
  });

  test("who claims what is due has it for a while, and what is final is never due", async () => {
    await store.add(payment("1", { nextPollAt: (NOW - 2) as EpochMs }), []);
    await store.add(payment("2", { nextPollAt: (NOW - 1) as EpochMs }), []);
    await store.add(payment("later", { nextPollAt: (NOW + 1) as EpochMs }), []);
    await store.add(payment("final", { nextPollAt: null }), []);
    const claim = (now: number, until: number, limit = 10) =>
      store.claim(now as EpochMs, until as EpochMs, limit);
    const claims = await Promise.all([claim(NOW, NOW + 9, 1), claim(NOW, NOW + 9)]);
    expect(
      claims
        .flat()
        .map(({ id }) => id as string)
        .toSorted(),
    ).toEqual(["pay_1", "pay_2"]);
    expect(await claim(NOW, NOW + 9)).toEqual([]);
    expect((await claim(NOW + 9, NOW + 20)).map(({ id }) => id as string).toSorted()).toEqual([
      "pay_1",
      "pay_2",
      "pay_later",
    ]);
  });

  test("they are listed newest first, in pages, for a balance, a key or a state", async () => {
    for (const [name, more] of [
      ["1", {}],
      ["2", { keyId: null }],
      ["3", { balanceId: B, state: "held" }],
      ["4", {}],
    ] as const) {
      await store.add(payment(name, { ...more, createdAt: (NOW + Number(name)) as EpochMs }), []);
    }
    const all = { balanceId: null, keyId: null, state: null };
    const names = async (
      filter: Partial<typeof all> | object,
      limit = 10,
      before: `pay_${string}` | null = null,
    ) => (await store.list({ ...all, ...filter }, limit, before)).map(({ id }) => id.slice(4)).join("");
    expect(await names({})).toBe("4321");
    expect(await names({ balanceId: A })).toBe("421");
    expect(await names({ balanceId: A, keyId: "key_1" })).toBe("41");
    expect(await names({ state: "held" })).toBe("3");
    expect(await names({}, 2)).toBe("43");
    expect(await names({}, 2, "pay_3")).toBe("21");
  });
}
