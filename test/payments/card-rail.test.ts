import { describe, expect, test } from "bun:test";
import { type Debit, taken } from "../../src/ledger/credit.ts";
import { JUST_CREATED, type Payment } from "../../src/payments/payment.ts";
import type { PaymentStore } from "../../src/payments/payment-store.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import { newOrder, orderOf, orderText } from "../../src/payments/rails/stripe/card-order.ts";
import { CardRail } from "../../src/payments/rails/stripe/card-rail.ts";
import {
  type Cents,
  type Checkout,
  type CheckoutDispute,
  totalOf,
} from "../../src/payments/rails/stripe/checkout.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { BalanceId, PaymentId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { until } from "../fakes/until.ts";
import { MemoryPayments } from "./memory-payments.ts";

const USD = 1e9;
const BALANCE = "bal_1" as BalanceId;
const ID = "pay_1" as PaymentId;
const AMOUNT = (10 * USD) as NanoUsd;

class Crash extends Error {}

/** One payment of $10 for $10.61, Stripe as it says it is, and a balance that somebody spends from. */
class World {
  readonly payments = new MemoryPayments();
  readonly suspensions: string[] = [];
  private readonly debits = new Map<string, NanoUsd>();
  spent = 0;
  now = 0;
  /** How many effects still happen before the process dies, and whether the last one does. */
  life: { left: number; lastHappens: boolean } | null = null;
  checkout: Checkout = {
    session: "cs_1",
    url: "https://checkout.example",
    expiresAt: 0 as EpochMs,
    state: "open",
    total: 1_061 as Cents,
    currency: "usd",
    intent: null,
    payer: null,
    refunded: 0 as Cents,
    disputes: [],
  };
  /** Stripe's answer on its way. */
  answered = async (checkout: Checkout): Promise<Checkout> => checkout;
  suspending = async (): Promise<void> => {};
  debiting = async (): Promise<void> => {};
  readonly rail = new CardRail({
    api: {
      open: async () => this.checkout,
      checkout: () => this.answered(this.checkout),
      paymentOf: async () => ID,
      refund: async () => {},
      event: async () => null,
      takenBack: async () => [],
    },
    store: {
      change: (...change) => this.effect(() => this.payments.change(...change)),
      list: (...of) => this.payments.list(...of),
    } as Partial<PaymentStore> as PaymentStore,
    pace: PAYMENT_PACE,
    clock: { now: () => this.now as EpochMs },
    random: systemRandom,
    fee: { percent: 2.9, fixed: 300_000_000 as NanoUsd },
    onFault() {},
    debit: (debit) =>
      this.effect(async () => {
        await this.debiting();
        return this.debit(debit);
      }),
    suspend: (_, note) =>
      this.effect(async () => {
        await this.suspending();
        this.suspensions.push(note);
      }),
    lift: () => this.effect(async () => void this.suspensions.splice(0)),
    returnUrl: () => "https://gateway.example",
  });

  constructor() {
    this.payments.put({
      ...JUST_CREATED,
      id: ID,
      rail: "card",
      external: ID,
      balanceId: BALANCE,
      keyId: null,
      amount: AMOUNT,
      payer: null,
      order: orderText(newOrder(1_061 as Cents, "https://gateway.example")),
      idempotencyKey: null,
      isInline: false,
      gas: 0,
      createdAt: 0 as EpochMs,
      changedAt: 0 as EpochMs,
      nextPollAt: 0 as EpochMs,
    });
  }

  get payment(): Payment {
    return this.payments.get(ID);
  }

  get available(): number {
    let total = this.payments.credited - this.spent;
    for (const amount of this.debits.values()) total -= amount;
    return total;
  }

  /** Stripe is as said from now on, and the payment is looked at. */
  async sees(news: Partial<Checkout>): Promise<void> {
    this.checkout = { ...this.checkout, ...news };
    await this.rail.poll(this.payment);
  }

  disputes(id: string, outcome: CheckoutDispute["outcome"], cents = 1_061): Promise<void> {
    const others = this.checkout.disputes.filter((one) => one.id !== id);
    return this.sees({ disputes: [...others, dispute(id, outcome, cents)] });
  }

  private debit({ idempotencyKey, amount, balanceId, at, note }: Debit) {
    const before = this.debits.get(idempotencyKey);
    const took =
      before ?? taken(amount, { available: this.available, unspent: this.available })?.amount ?? null;
    if (took === null) return { available: this.available as NanoUsd };
    this.debits.set(idempotencyKey, took);
    return { balanceId, idempotencyKey, note, at, amount: -took as NanoUsd };
  }

  private async effect<R>(happen: () => Promise<R>): Promise<R> {
    if (this.life === null) return happen();
    this.life.left -= 1;
    if (this.life.left > 0) return happen();
    if (this.life.left === 0 && this.life.lastHappens) await happen();
    throw new Crash();
  }
}

const dispute = (id: string, outcome: CheckoutDispute["outcome"], cents = 1_061): CheckoutDispute => ({
  id,
  outcome,
  amount: cents as Cents,
});

const PAID = { state: "paid", intent: "pi_1", payer: "visa …4242" } as const;

const says = ({ payment, available, suspensions }: World) => ({
  state: payment.state,
  amount: payment.amount / USD,
  available: available / USD,
  credited: payment.credited / USD,
  lost: payment.lost / USD,
  suspended: suspensions.length > 0,
});

const STORIES: readonly [string, (world: World) => Promise<unknown>, object][] = [
  ["is open", (world) => world.sees({}), { state: "created", available: 0, credited: 0 }],
  ["is left", (world) => world.sees({ state: "expired" }), { state: "expired", available: 0, credited: 0 }],
  ["is paid", (world) => world.sees(PAID), { state: "credited", available: 10, credited: 10 }],
  [
    "is paid another amount than was asked for",
    (world) => world.sees({ ...PAID, total: 900 as Cents }),
    { state: "held", amount: 8.39, available: 0, credited: 0 },
  ],
  [
    "is paid another amount than was asked for, and refunded whole",
    async (world) => {
      await world.sees({ ...PAID, total: 900 as Cents });
      await world.sees({ refunded: 900 as Cents });
    },
    { state: "refunded", available: 0, credited: 0 },
  ],
  [
    "is paid in another currency",
    (world) => world.sees({ ...PAID, currency: "jpy" }),
    { state: "held", available: 0, credited: 0 },
  ],
  [
    "is refunded whole by the operator at Stripe",
    (world) => world.sees({ ...PAID, refunded: 1_061 as Cents }),
    { state: "refunded", available: 0, credited: 0 },
  ],
  [
    "is refunded in two parts, and then the rest",
    async (world) => {
      for (const refunded of [300, 500, 1_061]) await world.sees({ ...PAID, refunded: refunded as Cents });
    },
    { state: "refunded", available: 0, credited: 0 },
  ],
  [
    "is refunded in part",
    (world) => world.sees({ ...PAID, refunded: 300 as Cents }),
    { state: "credited", available: 7, credited: 7 },
  ],
  [
    "is refunded after all was spent",
    async (world) => {
      await world.sees(PAID);
      world.spent = AMOUNT;
      await world.sees({ refunded: 1_061 as Cents });
    },
    { state: "refunded", available: 0, credited: 10, lost: 10 },
  ],
  ...(
    [
      ["none", 0],
      ["part", 4],
      ["all", 10],
    ] as const
  ).flatMap(([what, usd]): [string, (world: World) => Promise<unknown>, object][] => {
    const spent = async (world: World) => {
      await world.sees(PAID);
      world.spent = usd * USD;
      await world.disputes("dp_1", "open");
    };
    const taken = { available: 0, credited: usd, lost: usd };
    return [
      [`is disputed with ${what} of it spent`, spent, { ...taken, state: "disputed", suspended: true }],
      [
        `is disputed with ${what} of it spent, and lost`,
        async (world) => {
          await spent(world);
          await world.disputes("dp_1", "lost");
        },
        { ...taken, state: "charged_back", suspended: true },
      ],
      [
        `is disputed with ${what} of it spent, and won`,
        async (world) => {
          await spent(world);
          await world.disputes("dp_1", "won");
        },
        { state: "credited", available: 10 - usd, credited: 10 },
      ],
    ];
  }),
  [
    "is disputed and lost before anybody here knows of it",
    async (world) => {
      await world.sees({ ...PAID, disputes: [dispute("dp_1", "lost")] });
    },
    { state: "charged_back", available: 0, credited: 0, suspended: true },
  ],
  [
    "was disputed and won before anybody here knew of it",
    (world) => world.sees({ ...PAID, disputes: [dispute("dp_1", "won")] }),
    { state: "credited", available: 10, credited: 10 },
  ],
  [
    "is lost, and won by an appeal",
    async (world) => {
      await world.sees(PAID);
      for (const outcome of ["open", "lost", "won"] as const) await world.disputes("dp_1", outcome);
    },
    { state: "credited", available: 10, credited: 10 },
  ],
  [
    "is refunded in part when all was spent, and disputed when there is credit again",
    async (world) => {
      await world.sees(PAID);
      world.spent = AMOUNT;
      await world.sees({ refunded: 400 as Cents });
      world.spent = 0;
      await world.disputes("dp_1", "open");
    },
    { state: "disputed", available: 4, credited: 4, lost: 4, suspended: true },
  ],
  [
    "is refunded after a dispute was won, before anybody here knows that it was",
    async (world) => {
      await world.sees(PAID);
      await world.disputes("dp_1", "open");
      await world.sees({ disputes: [dispute("dp_1", "won")], refunded: 1_061 as Cents });
    },
    { state: "refunded", available: 0, credited: 0 },
  ],
  [
    "is won and disputed once more",
    async (world) => {
      await world.sees(PAID);
      for (const outcome of ["open", "won"] as const) await world.disputes("dp_1", outcome);
      await world.disputes("dp_2", "open");
    },
    { state: "disputed", available: 0, credited: 0, suspended: true },
  ],
  ...(["open", "lost", "won"] as const).map(
    (outcome): [string, (world: World) => Promise<unknown>, object] => [
      `is disputed once more before anybody here knows that the first dispute was won; the second is ${outcome}`,
      async (world) => {
        await world.sees(PAID);
        world.spent = 4 * USD;
        await world.disputes("dp_1", "open");
        await world.sees({ disputes: [dispute("dp_1", "won"), dispute("dp_2", "open")] });
        await world.disputes("dp_2", outcome);
      },
      outcome === "won"
        ? { state: "credited", available: 6, credited: 10 }
        : {
            ...{ available: 0, credited: 4, lost: 4, suspended: true },
            state: outcome === "open" ? "disputed" : "charged_back",
          },
    ],
  ),
  [
    "is disputed twice at a time, of which one is lost and the other is won",
    async (world) => {
      await world.sees(PAID);
      for (const id of ["dp_1", "dp_2"]) await world.disputes(id, "open");
      await world.disputes("dp_1", "won");
      await world.disputes("dp_2", "lost");
    },
    { state: "charged_back", available: 0, credited: 0, suspended: true },
  ],
  [
    "is lost, disputed once more, and won by both an appeal and the second",
    async (world) => {
      await world.sees(PAID);
      for (const outcome of ["open", "lost"] as const) await world.disputes("dp_1", outcome);
      await world.disputes("dp_2", "open");
      await world.disputes("dp_1", "won");
      await world.disputes("dp_2", "won");
    },
    { state: "credited", available: 10, credited: 10 },
  ],
  [
    "is refunded in part while it is disputed, and won",
    async (world) => {
      await world.sees(PAID);
      await world.disputes("dp_1", "open");
      await world.sees({ refunded: 400 as Cents });
      await world.disputes("dp_1", "won");
    },
    { state: "credited", available: 6, credited: 6 },
  ],
  [
    "is refunded in part while it is disputed, won, and refunded whole",
    async (world) => {
      await world.sees(PAID);
      await world.disputes("dp_1", "open");
      await world.sees({ refunded: 400 as Cents });
      await world.disputes("dp_1", "won");
      await world.sees({ refunded: 1_061 as Cents });
    },
    { state: "refunded", available: 0, credited: 0 },
  ],
  [
    "is won, refunded in part and disputed again before anybody here knows of it, and won again",
    async (world) => {
      await world.sees(PAID);
      await world.disputes("dp_1", "open");
      const disputes = [dispute("dp_1", "won"), dispute("dp_2", "open")];
      await world.sees({ disputes, refunded: 400 as Cents });
      await world.disputes("dp_2", "won");
    },
    { state: "credited", available: 6, credited: 6 },
  ],
  [
    "is refunded whole while it is disputed",
    async (world) => {
      await world.sees(PAID);
      await world.disputes("dp_1", "open");
      await world.sees({ refunded: 1_061 as Cents });
    },
    { state: "disputed", available: 0, credited: 0, suspended: true },
  ],
  [
    "is refunded whole while it is disputed, and won",
    async (world) => {
      await world.sees(PAID);
      await world.disputes("dp_1", "open");
      await world.sees({ refunded: 1_061 as Cents });
      await world.disputes("dp_1", "won");
    },
    { state: "refunded", available: 0, credited: 0 },
  ],
  [
    "is refunded whole, disputed all the same, and lost",
    async (world) => {
      await world.sees({ ...PAID, refunded: 1_061 as Cents });
      await world.disputes("dp_1", "open");
      await world.disputes("dp_1", "lost");
    },
    { state: "charged_back", available: 0, credited: 0, suspended: true },
  ],
  [
    "is refunded, and the refund fails at the bank",
    async (world) => {
      await world.sees({ ...PAID, refunded: 1_061 as Cents });
      await world.sees({ refunded: 0 as Cents });
    },
    { state: "credited", available: 10, credited: 10 },
  ],
  [
    "is disputed over a part, and lost",
    async (world) => {
      await world.sees(PAID);
      for (const outcome of ["open", "lost"] as const) await world.disputes("dp_1", outcome, 400);
    },
    { state: "charged_back", available: 6, credited: 6, suspended: true },
  ],
  [
    "is disputed over two parts, of which one is lost and the other is won",
    async (world) => {
      await world.sees(PAID);
      for (const id of ["dp_1", "dp_2"]) await world.disputes(id, "open", 300);
      await world.disputes("dp_1", "lost", 300);
      await world.disputes("dp_2", "won", 300);
    },
    { state: "charged_back", available: 7, credited: 7, suspended: true },
  ],
  [
    "is refunded in part and then disputed over all of it: no more than its credit is taken back",
    async (world) => {
      await world.sees({ ...PAID, refunded: 400 as Cents });
      world.payments.credited += 10 * USD;
      await world.disputes("dp_1", "open");
    },
    { state: "disputed", available: 10, credited: 0, suspended: true },
  ],
  [
    "is disputed when all was spent, lost, and won by an appeal: it has been spent once",
    async (world) => {
      await world.sees(PAID);
      world.spent = AMOUNT;
      for (const outcome of ["open", "lost", "won"] as const) await world.disputes("dp_1", outcome);
    },
    { state: "credited", available: 0, credited: 10 },
  ],
];

describe("a card payment", () => {
  for (const [what, happens, expected] of STORIES) {
    const whole = { lost: 0, suspended: false, ...expected };
    test(`that ${what}`, async () => {
      const world = new World();
      await happens(world);
      expect(says(world)).toMatchObject(whole);
      // Polled again, by the process that received the same news twice.
      for (let again = 0; again < 3; again++) await world.sees({});
      expect(says(world)).toMatchObject(whole);
      expect(world.payments.credited).toBeLessThanOrEqual(2 * AMOUNT);
    });

    test(`that ${what}, by a process that dies at every step`, async () => {
      for (const lastHappens of [false, true]) {
        for (let dies = 1; dies < 25; dies++) {
          const world = new World();
          const read = world.rail.poll.bind(world.rail);
          world.life = { left: dies, lastHappens };
          world.rail.poll = async (payment) => {
            try {
              return await read(payment);
            } catch (error) {
              if (!(error instanceof Crash)) throw error;
              world.life = null;
              return read(world.payment);
            }
          };
          await happens(world);
          expect({ dies, lastHappens, ...says(world) }).toMatchObject(whole);
        }
      }
    });
  }

  test("that the operator refunds, by a process that dies at every step, is taken back once if it is disputed then", async () => {
    for (const lastHappens of [false, true]) {
      for (let dies = 1; dies < 6; dies++) {
        const world = new World();
        await world.sees(PAID);
        world.payments.credited += 20 * USD;
        world.life = { left: dies, lastHappens };
        await world.rail.refund(world.payment).catch(() => {});
        world.life = null;
        world.now += 30_000;
        await world.disputes("dp_1", "lost");
        await world.sees({});
        const is = { state: "charged_back", available: 20, credited: 0, lost: 0 };
        expect({ dies, lastHappens, ...says(world) }).toMatchObject(is);
      }
    }
  });

  test.each([
    ["credited once there is room", 20, "credited", { state: "credited", available: 10, credited: 10 }],
    ["held as long as there is none", 5, "credited", { state: "held", available: 0, credited: 0 }],
    ["refunded", 5, "refunded", { state: "refunded", available: 0, credited: 0 }],
  ] as const)(
    "that the balance cannot hold is %s when the operator decides so",
    async (_, room, as, expected) => {
      const world = new World();
      world.payments.room = 5 * USD;
      await world.sees(PAID);
      expect(says(world)).toMatchObject({ state: "held", available: 0, credited: 0 });
      world.payments.room = room * USD;
      if (as === "refunded") world.checkout = { ...world.checkout, refunded: 1_061 as Cents };
      await world.rail.resolve(world.payment, as, null);
      expect(says(world)).toMatchObject(expected);
      await world.sees({});
      expect(says(world)).toMatchObject(expected);
    },
  );

  test("whose page was opened in the last moment is credited although nobody reports that it was paid", async () => {
    const world = new World();
    const { payment } = world;
    world.now = 31 * 60_000;
    // Another process asked Stripe for the page before; its answer is on its way.
    await world.rail.poll(payment);
    expect(world.payment.state).toBe("expired");
    const opened = orderText({ ...orderOf(payment), session: "cs_1" });
    await world.payments.change(ID, () => ({ order: opened }));
    world.checkout = { ...world.checkout, ...PAID };
    world.now = world.payment.nextPollAt ?? Number.POSITIVE_INFINITY;
    expect(world.now).toBe(60 * 60_000);
    await world.rail.poll(world.payment);
    expect(says(world)).toMatchObject({ state: "credited", available: 10 });
  });

  test("whose page was opened while somebody looked for one does not expire", async () => {
    const world = new World();
    const before = world.payment;
    await world.sees({});
    world.now = 31 * 60_000;
    expect((await world.rail.poll(before)).state).toBe("created");
  });

  test("that never got a page expires, and is looked at once more when that would have run out", async () => {
    const world = new World();
    for (const [at, next] of [
      [31, 60],
      [60, null],
    ] as const) {
      world.now = at * 60_000;
      await world.rail.poll(world.payment);
      expect(world.payment).toMatchObject({ state: "expired", nextPollAt: next && next * 60_000 });
    }
  });

  test("that two processes refund, one refused and one served once there is credit again, is refunded", async () => {
    const world = new World();
    await world.sees(PAID);
    world.spent = AMOUNT;
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const waits = [first.promise, second.promise];
    world.debiting = async () => waits.shift();
    const refused = world.rail.refund(world.payment);
    await until(() => waits.length === 1);
    world.now += PAYMENT_PACE.leaseMs;
    const watched = world.rail.poll(world.payment);
    await until(() => waits.length === 0);
    first.resolve();
    expect(await refused).toMatchObject({ available: 0 });
    world.spent = 0;
    second.resolve();
    await watched;
    await world.sees({ refunded: 1_061 as Cents });
    expect(says(world)).toMatchObject({ state: "refunded", available: 0, credited: 0, lost: 0 });
  });

  test("that is refunded at Stripe while the operator's refund is refused is looked at again", async () => {
    const world = new World();
    await world.sees(PAID);
    world.spent = AMOUNT;
    const before = world.payment;
    const late = Promise.withResolvers<void>();
    world.debiting = () => late.promise;
    const refused = world.rail.refund(before);
    world.checkout = { ...world.checkout, refunded: 1_061 as Cents };
    await world.rail.poll(before);
    late.resolve();
    expect(await refused).toMatchObject({ available: 0 });
    expect(world.payment.nextPollAt).toBe(world.now as EpochMs);
    await world.sees({});
    expect(says(world)).toMatchObject({ state: "refunded", credited: 10, lost: 10 });
  });

  test.each([
    ["refused", AMOUNT, { state: "refunded", credited: 10, lost: 10 }],
    ["made", 0, { state: "refunded", credited: 0, lost: 0 }],
  ])(
    "that is refunded at Stripe, whose answer comes once the operator's refund was %s, is looked at again",
    async (_, spent, expected) => {
      const world = new World();
      await world.sees(PAID);
      world.spent = spent;
      const before = world.payment;
      const [debited, requested, late] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
      world.debiting = () => debited!.promise;
      const refunding = world.rail.refund(before);
      world.checkout = { ...world.checkout, refunded: 1_061 as Cents };
      const atOnce = world.answered;
      world.answered = (checkout) => {
        requested!.resolve();
        return late!.promise.then(() => checkout);
      };
      const read = world.rail.poll(before);
      await requested!.promise;
      world.answered = atOnce;
      // The operator's process dies once its refund is decided.
      if (spent === 0) world.life = { left: 1, lastHappens: true };
      debited!.resolve();
      await refunding.catch(() => {});
      world.life = null;
      late!.resolve();
      await read;
      expect(world.payment.nextPollAt).not.toBe(null);
      world.now = world.payment.nextPollAt!;
      await world.sees({});
      expect(says(world)).toMatchObject(expected);
    },
  );

  test("that is won while somebody is answered who asked before stays won", async () => {
    const world = new World();
    await world.sees(PAID);
    const [requested, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const atOnce = world.answered;
    world.answered = (checkout) => {
      requested.resolve();
      return late.promise.then(() => checkout);
    };
    const slow = world.disputes("dp_1", "open");
    await requested.promise;
    world.answered = atOnce;
    await world.disputes("dp_1", "won");
    late.resolve();
    await slow;
    expect(says(world)).toMatchObject({ state: "credited", available: 10, credited: 10, suspended: false });
  });

  test("that is won before somebody has suspended for its dispute is not suspended for longer than their lease", async () => {
    const world = new World();
    await world.sees(PAID);
    const [started, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    world.suspending = () => {
      started.resolve();
      return late.promise;
    };
    const slow = world.disputes("dp_1", "open");
    await started.promise;
    await world.disputes("dp_1", "won");
    late.resolve();
    await slow;
    expect(says(world)).toMatchObject({ state: "credited", suspended: true });
    world.now = world.payment.nextPollAt!;
    expect(world.now).toBe(PAYMENT_PACE.leaseMs);
    await world.sees({});
    expect(says(world)).toMatchObject({ state: "credited", available: 10, suspended: false });
    expect(world.payment.nextPollAt).toBe(null);
  });

  test("of a balance of which another one is disputed stays suspended when it is won", async () => {
    const world = new World();
    await world.sees(PAID);
    await world.disputes("dp_1", "open");
    world.payments.put({ ...world.payment, id: "pay_2" as PaymentId });
    await world.disputes("dp_1", "won");
    expect(says(world)).toMatchObject({ state: "credited", suspended: true });
  });
});

test.each([
  [10, 2.9, 0.3, 1_061],
  [1, 2.9, 0.3, 134],
  [500, 2.9, 0.3, 51_525],
  [10, 0, 0, 1_000],
])("$%d with a fee of %d %% and $%d is charged as %d cents", (usd, percent, fixed, cents) => {
  const fee = { percent, fixed: (fixed * USD) as NanoUsd };
  expect(totalOf((usd * USD) as NanoUsd, fee)).toBe(cents as Cents);
});
