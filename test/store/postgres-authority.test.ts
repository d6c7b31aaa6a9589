import { expect, test } from "bun:test";
import type { Grant, Statement } from "../../src/ledger/authority.ts";
import type { CounterId } from "../../src/ledger/counter.ts";
import type { Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { postgresAuthority } from "../../src/store/ledger/grants.ts";
import { ZERO_USD } from "../../src/units/usd.ts";
import { gate } from "../fakes/gate.ts";

const COUNTERS = 300;
const ROUNDS = 20;

const statement = (counter: number, number: number): Statement => ({
  ledger: "n",
  epoch: 1,
  number,
  counter: `balance:bal_${counter}` as CounterId,
  used: ZERO_USD,
  needed: ZERO_USD,
  requested: ZERO_USD,
  limit: ZERO_USD,
  answeredInquiry: 0,
  inquiry: 0,
});

test("what is stated again and again while PostgreSQL hangs is settled once, as it was stated last", async () => {
  const outage = gate();
  let batches = 0;
  const postgres = {
    async transaction(): Promise<Grant[]> {
      batches += 1;
      await outage.passed;
      return Array.from({ length: 256 }, () => ({}) as Grant);
    },
    log() {},
  };
  const authority = postgresAuthority(new PostgresDatabase(postgres as unknown as Postgres));
  const answers: Promise<Grant>[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (let counter = 0; counter < COUNTERS; counter++)
      answers.push(authority.settle(statement(counter, round * COUNTERS + counter)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  outage.open();
  await Promise.all(answers);
  // One that was under way, and then every counter once.
  expect(batches).toBeLessThanOrEqual(1 + Math.ceil(COUNTERS / 256));
});
