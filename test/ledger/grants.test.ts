import { expect, test } from "bun:test";
import type { Statement } from "../../src/ledger/authority.ts";
import { Counter, type CounterId } from "../../src/ledger/counter.ts";
import { Grants } from "../../src/ledger/grants.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";

const LIMIT = 1_000 as NanoUsd;
const AMOUNT = 100 as NanoUsd;

/** A node that has been granted nothing yet, of a limit that others hold all of. */
function house(answers: (statement: Statement, grants: Grants) => void) {
  const clock = new ManualClock();
  const counter = new Counter("balance:bal_1" as CounterId);
  counter.granted = 0 as NanoUsd;
  const grants: Grants = new Grants("n", 1, clock, (statement) => answers(statement, grants));
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5) {
      clock.advance(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { grants, counter, pass };
}

const nothing = ({ counter, number }: Statement) => ({
  counter,
  number,
  granted: 0 as NanoUsd,
  elsewhere: LIMIT,
  free: 0,
  recalled: true,
});

test("who is told that others were asked to give back, and then hears no more, is short of it", async () => {
  let told = 0;
  const { grants, counter, pass } = house((statement, to) => {
    told += 1;
    if (told <= 3) setImmediate(() => to.receive(nothing(statement)));
  });
  const answer = grants.ask(counter, AMOUNT, LIMIT);
  await pass(1_100);
  expect(await answer).toBe("short");
  expect(told).toBeGreaterThan(3);
});

test("who hears nothing at all does not know", async () => {
  const { grants, counter, pass } = house(() => {});
  const answer = grants.ask(counter, AMOUNT, LIMIT);
  await pass(1_100);
  expect(await answer).toBe("unanswered");
});
