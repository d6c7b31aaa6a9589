import { afterEach, expect, test } from "bun:test";
import type { Payment, PaymentChange } from "../../src/payments/payment.ts";
import { advanced } from "../../src/payments/payment.ts";
import type { PaymentStore } from "../../src/payments/payment-store.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import { PaymentWatch } from "../../src/payments/rails/payment-watch.ts";
import { epochMs } from "../../src/units/clock.ts";
import { ManualClock } from "../fakes/clock.ts";
import { until } from "../fakes/until.ts";

const clock = new ManualClock();
let watch: PaymentWatch | null = null;
afterEach(() => watch?.stop());

/** A watch of one payment, whose rail does as `poll` says. */
function watching(poll: (change: (change: PaymentChange) => void) => void) {
  let payment = { id: "pay_1", rail: "x402", state: "submitted", credited: 0, lost: 0 } as unknown as Payment;
  const change = (change: PaymentChange) => {
    payment = advanced(payment, change, clock.now())!;
  };
  change({ nextPollAt: clock.now() });
  const store = {
    claim: async (now, untilAt) => {
      if (payment.nextPollAt === null || payment.nextPollAt > now) return [];
      change({ nextPollAt: untilAt });
      return [payment];
    },
    change: async (_, decide) => {
      const decided = decide(payment);
      if (decided !== null) change(decided);
      return payment;
    },
  } as Partial<PaymentStore> as PaymentStore;
  let polls = 0;
  const rail = {
    name: "x402" as const,
    poll: async () => {
      polls += 1;
      poll(change);
    },
  };
  watch = new PaymentWatch(store, [rail], PAYMENT_PACE, clock, () => {});
  return { polls: () => polls, nextPollAt: () => payment.nextPollAt };
}

test("a payment whose node failed once is polled again at the pace of the watch", async () => {
  const { polls, nextPollAt } = watching(() => {
    throw new Error("the node is away");
  });
  clock.advance(1);
  await until(() => polls() === 1 && clock.pending > 0);
  expect(nextPollAt()).toBe(epochMs(clock.now() + PAYMENT_PACE.watchMs));
  clock.advance(PAYMENT_PACE.watchMs);
  await until(() => polls() === 2);
});

test("a poll that fails after it wrote when to poll next leaves that as it is", async () => {
  const later = epochMs(clock.now() + 60_000);
  const { polls, nextPollAt } = watching((change) => {
    change({ nextPollAt: later });
    throw new Error("the node is away");
  });
  clock.advance(1);
  await until(() => polls() === 1 && clock.pending > 0);
  expect(nextPollAt()).toBe(later);
});
