import { expect, test } from "bun:test";
import type { Payment } from "../../src/payments/payment.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import type { Authorization, SignedPayment } from "../../src/payments/rails/x402/authorization.ts";
import type { Chain, Movement } from "../../src/payments/rails/x402/chain.ts";
import type { Address, X402Network } from "../../src/payments/rails/x402/network.ts";
import { orderOf } from "../../src/payments/rails/x402/next-step.ts";
import { X402Rail } from "../../src/payments/rails/x402/x402.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { SqlPaymentStore } from "../../src/store/payments/payment-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { NETWORK as SIMULATED } from "../sim/simulated-chain.ts";

const BALANCE: BalanceId = "bal_1";
const NETWORK: X402Network = { ...SIMULATED, confirmations: 1, finalizedAbove: 1e12 as NanoUsd, waitMs: 0 };
const AUTHORIZATION: Authorization = {
  from: `0x${"c".repeat(40)}`,
  to: NETWORK.payTo,
  value: "2000000",
  validAfter: "0",
  validBefore: String(Math.floor(Date.now() / 1_000) + 300),
  nonce: `0x${"1".repeat(64)}`,
};
const SIGNED: SignedPayment = {
  accepted: {
    scheme: "exact",
    network: NETWORK.network,
    asset: NETWORK.asset,
    payTo: NETWORK.payTo,
    amount: "2000000",
  },
  authorization: AUTHORIZATION,
  signature: "0x00",
};
/** The account that transfers are sent from. */
const OURS: Address = `0x${"d".repeat(40)}`;
const ORDER = {
  balanceId: BALANCE,
  keyId: "key_1" as KeyId,
  amount: 2e9 as NanoUsd,
  isInline: false,
  idempotencyKey: null,
  isOwners: true,
  caps: [],
};

/** Gateways on one store, before a chain that does as the test says. */
async function open() {
  const db = openDatabase(":memory:");
  db.run("INSERT INTO balances (id, created_at) VALUES (?, 1)", [BALANCE]);
  const store = new SqlPaymentStore(new SqliteDatabase(db), systemClock);
  const world = {
    movement: { kind: "unused" } as Movement,
    head: { latest: 9, time: 0, finalized: 1, finalizedTime: 0 },
    sent: 0,
    /** Transactions that have failed in a block. */
    mined: new Set<string>(),
    /** Questions about the chain's head. */
    requests: 0,
    /** Why the token would not carry the transfer out. */
    refusal: async (): Promise<string | null> => null,
    isHit: async () => false,
    suspend: async () => {},
  };
  const chain = {
    token: async () => ({ name: "T", version: "1", decimals: 6, form: "bytes" }),
    async head() {
      world.requests += 1;
      return world.head;
    },
    movement: async () => world.movement,
    unusedAt: async () => world.movement.kind === "unused",
    refusal: () => world.refusal(),
    fate: async (transaction) => (world.mined.has(transaction) ? "mined" : "unknown"),
  } as Partial<Chain> as Chain;
  const settle = async () => {
    world.sent += 1;
    return { transaction: `0x${world.sent}` };
  };
  const gateway = async () => {
    const rail = new X402Rail({
      networks: [NETWORK],
      open: async () => ({ chain, settler: { settle, hasSent: async (sender) => sender === OURS } }),
      store,
      debit: () => Promise.reject(new Error("nothing is taken back")),
      sanctions: { isHit: () => world.isHit(), refresh: async () => {} },
      suspend: () => world.suspend(),
      pace: PAYMENT_PACE,
      clock: systemClock,
      random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
      log() {},
    });
    await rail.prepare();
    return rail;
  };
  const only = async () =>
    (await store.list({ balanceId: BALANCE, keyId: null, state: null }, 2, null))[0] as Payment;
  return { store, world, gateway, only };
}

test("a gateway does not wait for a payment that another one has seen end", async () => {
  const { world, gateway, only } = await open();
  const [one, other] = [await gateway(), await gateway()];
  await one.take(SIGNED, ORDER);
  expect(await one.pending(BALANCE)).toBe((await only()).id);
  const { value, to } = AUTHORIZATION;
  world.movement = { kind: "moved", transaction: "0x1", sender: OURS, block: 9, to, value };
  expect(await other.poll(await only())).toMatchObject({ state: "credited" });
  await one.prepare();
  expect(await one.pending(BALANCE)).toBeNull();
});

test("one payment that is presented many times at once is looked up once", async () => {
  const { world, gateway } = await open();
  const rail = await gateway();
  const presented = () => Promise.all(Array.from({ length: 60 }, () => rail.take(SIGNED, ORDER)));
  const first = await presented();
  // Before it is recorded, and to see whether it has moved.
  expect([world.requests, world.sent]).toEqual([2, 1]);
  expect(new Set(first.map((taken) => taken.kind === "paid" && taken.payment.id)).size).toBe(1);
  await presented();
  expect([world.requests, world.sent]).toEqual([3, 1]);
  world.refusal = async () => "no";
  const other = { ...SIGNED, authorization: { ...AUTHORIZATION, nonce: `0x${"2".repeat(64)}` as const } };
  const wrong = await Promise.all([1, 2].map(() => rail.take(other, ORDER)));
  expect(wrong.map(({ kind }) => kind)).toEqual(["refused", "refused"]);
});

test("a transfer that was carried out while it was to be sent again is credited, with no word of a refusal", async () => {
  const { world, gateway, only } = await open();
  const [one, other] = [await gateway(), await gateway()];
  await one.take(SIGNED, ORDER);
  const { value, to } = AUTHORIZATION;
  world.refusal = async () => {
    world.movement = { kind: "moved", transaction: "0x1", sender: OURS, block: 1, to, value };
    await other.poll(await only());
    return "authorization is used";
  };
  const sent = orderOf(await only());
  const due = { ...(await only()), order: JSON.stringify({ ...sent, sentAt: 0 }) };
  expect(await one.poll(due)).toMatchObject({ state: "credited", reason: null, nextPollAt: null });
});

test("a transfer that fails on the chain however often it is sent costs gas three times", async () => {
  const { world, gateway, only } = await open();
  const rail = await gateway();
  await rail.take(SIGNED, ORDER);
  const later = async () => {
    const payment = await only();
    await rail.poll({ ...payment, order: JSON.stringify({ ...orderOf(payment), sentAt: 0 }) });
  };
  // The facilitator has lost it, or lied: that costs nothing.
  for (let lost = 0; lost < 4; lost++) await later();
  expect(world.sent).toBe(5);
  for (let failed = 0; failed < 6; failed++) {
    world.mined.add(`0x${world.sent}`);
    await later();
  }
  expect(world.sent).toBe(7);
  expect(await only()).toMatchObject({ state: "submitted", reason: expect.stringContaining("Attempts: 3") });
});

test("who is on a sanctions list is suspended also where that fails at first", async () => {
  const { world, gateway, only } = await open();
  const rail = await gateway();
  world.isHit = async () => true;
  let suspended = 0;
  world.suspend = async () => {
    if (++suspended === 1) throw new Error("the store is away");
  };
  expect(await rail.take(SIGNED, ORDER)).toMatchObject({ kind: "paid", payment: { state: "created" } });
  expect((await only()).nextPollAt).not.toBeNull();
  expect(await rail.poll(await only())).toMatchObject({ state: "rejected" });
  expect([suspended, world.sent]).toEqual([2, 0]);
});

test("what was turned down elsewhere while its payer was screened is not sent", async () => {
  const { store, world, gateway, only } = await open();
  world.isHit = async () => {
    await store.change((await only()).id, () => ({ state: "rejected", nextPollAt: null }));
    return false;
  };
  const rail = await gateway();
  expect(await rail.take(SIGNED, ORDER)).toEqual({ kind: "rejected", isSuspended: true });
  expect(world.sent).toBe(0);
  expect(await only()).toMatchObject({ state: "rejected", nextPollAt: null });
});

const moved = (value: string): Movement => ({
  ...{ kind: "moved", transaction: "0x2", sender: OURS, block: 9, to: NETWORK.payTo },
  value,
});
const OVER = { latest: 99, time: 2 ** 40, finalized: 98, finalizedTime: 2 ** 40 };

test.each([true, false])(
  "what a payer who was turned down sends by hand is held; still on the list: %p",
  async (stays) => {
    const { world, gateway, only } = await open();
    const rail = await gateway();
    world.isHit = async () => true;
    expect(await rail.take(SIGNED, ORDER)).toEqual({ kind: "rejected", isSuspended: true });
    expect(await rail.poll(await only())).toMatchObject({
      state: "rejected",
      nextPollAt: expect.any(Number),
    });
    world.isHit = async () => stays;
    world.movement = moved("2000000");
    expect(await rail.poll(await only())).toMatchObject({ state: "held", transaction: "0x2", credited: 0 });
  },
);

test.each([
  ["ran out", { kind: "unused" }],
  ["was canceled", { kind: "canceled" }],
  ["went elsewhere", { ...moved("1"), to: NETWORK.asset }],
] as [string, Movement][])("what was turned down is no longer watched once it %s", async (_, movement) => {
  const { world, gateway, only } = await open();
  const rail = await gateway();
  world.isHit = async () => true;
  await rail.take(SIGNED, ORDER);
  Object.assign(world, { movement, head: OVER });
  expect(await rail.poll(await only())).toMatchObject({ state: "rejected", nextPollAt: null });
});

test("a transfer of another amount is held as a payment of what arrived", async () => {
  const { world, gateway, only } = await open();
  const rail = await gateway();
  await rail.take(SIGNED, ORDER);
  world.movement = moved("500000");
  const held = await rail.poll(await only());
  expect(held).toMatchObject({ state: "held", amount: 5e8 });
  expect(held.reason).toContain("$2.00");
  expect(await only()).toEqual(held);
});

test("the idempotency key of a card payment is not one of a payment by x402", async () => {
  const { store, gateway, only } = await open();
  const rail = await gateway();
  await rail.take(SIGNED, { ...ORDER, idempotencyKey: "k" });
  const byCard = { ...(await only()), id: "pay_2", rail: "card", external: "pay_2" } as const;
  await store.add({ ...byCard, idempotencyKey: "card" }, []);
  const nonce = `0x${"2".repeat(64)}` as const;
  const another = { ...SIGNED, authorization: { ...AUTHORIZATION, nonce } };
  expect(await rail.take(another, { ...ORDER, idempotencyKey: "card" })).toEqual({ kind: "used key" });
});
