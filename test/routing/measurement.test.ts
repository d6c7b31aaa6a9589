import { describe, expect, test } from "bun:test";
import { Measurement } from "../../src/routing/measurement.ts";
import type { BalanceId } from "../../src/units/id.ts";

const customer = (number: number) => `bal_${number}` as BalanceId;

describe("a figure that requests choose by", () => {
  test("is not there before anything was measured", () => expect(new Measurement().median).toBeNull());

  test("is the median of what customers saw", () => {
    const figure = new Measurement();
    for (const [at, sample] of [100, 900, 300].entries()) figure.add(sample, customer(at), 0);
    expect(figure.median).toBe(300);
    figure.add(500, customer(3), 0);
    expect(figure.median).toBe(400);
  });

  test("gives one customer one vote, however many requests they send", () => {
    const figure = new Measurement();
    for (let other = 1; other <= 3; other++) figure.add(100 + other, customer(other), 0);
    for (let request = 0; request < 10_000; request++) figure.add(60_000, customer(0), request);
    expect(figure.median).toBeLessThan(110);
  });

  test("is not moved out of what the others saw by one of five customers, whatever they send", () => {
    const figure = new Measurement();
    for (let round = 0; round < 200; round++) {
      for (let honest = 1; honest <= 4; honest++) figure.add(95 + honest * 2, customer(honest), round * 100);
      figure.add(round % 2 === 0 ? 0 : 1e9, customer(0), round * 100);
      expect(figure.median).toBeGreaterThanOrEqual(97);
      expect(figure.median).toBeLessThanOrEqual(103);
    }
  });

  test("follows a host that has changed: nine customers' looks, or a minute's of one, are enough", () => {
    const many = new Measurement();
    const one = new Measurement();
    for (let at = 0; at < 100; at++) {
      many.add(2_000, customer(at), at);
      one.add(2_000, customer(0), at);
    }
    for (let sample = 0; sample < 9; sample++) many.add(100, customer(1_000 + sample), 10_000 + sample);
    expect(many.median).toBe(100);
    for (let sample = 1; sample <= 4; sample++) one.add(100, customer(0), sample * 15_000);
    expect(one.median).toBeLessThan(300);
  });

  test("forgets what is five minutes older than what is new", () => {
    const figure = new Measurement();
    for (let other = 1; other <= 8; other++) figure.add(9_000, customer(other), 0);
    figure.add(100, customer(0), 5 * 60_000 + 1);
    expect(figure.median).toBe(100);
  });

  test("does not take what is no figure", () => {
    const figure = new Measurement();
    for (const sample of [Number.NaN, Number.POSITIVE_INFINITY, -1]) figure.add(sample, customer(1), 0);
    expect(figure.median).toBeNull();
  });
});
