import { expect, test } from "bun:test";
import { offeredAmounts, whyNot } from "../../src/payments/amounts.ts";
import { advanced, PAYMENT_STATES, type PaymentState } from "../../src/payments/payment.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { payment } from "../store/payment-cases.ts";

const usd = (amount: number) => Math.round(amount * 1_000_000_000) as NanoUsd;
const AMOUNTS = { min: usd(1), suggested: usd(5), max: usd(50), maxPerDay: usd(100) };

test("the suggestion is offered first, then the least that covers what is lacking, in whole cents", () => {
  const offers = [0.002, 0.5, 1, 1.001, 4.999, 5, 7.123, 50, 50.001].map((lacking) =>
    offeredAmounts(usd(lacking), AMOUNTS).map((amount) => amount / 1e9),
  );
  expect(offers).toEqual([[5, 1], [5, 1], [5, 1], [5, 1.01], [5], [5], [7.13], [50], []]);
});

test("an amount is a whole number of cents, within the operator's limits", () => {
  const why = [1, 50, 0.99, 50.01, 1.005].map((amount) => whyNot(usd(amount), AMOUNTS));
  expect(why).toEqual([
    null,
    null,
    "must be from $1.00 to $50.00; it is $0.99",
    "must be from $1.00 to $50.00; it is $50.01",
    "must be a whole number of cents; it is $1.005",
  ]);
});

test("a payment moves from each state to these, and no other", () => {
  const reached = (from: PaymentState) =>
    PAYMENT_STATES.filter(
      (state) => advanced(payment("1", { state: from }), { state }, 1 as EpochMs) !== null,
    );
  expect(
    Object.fromEntries(PAYMENT_STATES.map((state) => [state, reached(state).toSorted().join(" ")])),
  ).toEqual({
    created: "confirming created credited expired failed held rejected submitted unused",
    submitted: "confirming credited failed held submitted",
    confirming: "confirming credited failed held submitted",
    credited: "charged_back credited disputed failed held refunded",
    expired: "confirming credited expired held",
    failed: "failed held",
    unused: "confirming credited failed held rejected submitted unused",
    rejected: "held rejected",
    held: "charged_back credited disputed held refunded",
    refunded: "charged_back credited disputed held refunded",
    disputed: "charged_back credited disputed held refunded",
    charged_back: "charged_back credited disputed held refunded",
  });
});
