import { afterAll, beforeAll, expect, test } from "bun:test";
import { rounds } from "../rounds.ts";
import { type Answers, type Fleet, inParallel } from "./contention.ts";

/** The same for whatever store several processes share. */
export function testContention(start: () => Promise<Fleet>): void {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await start();
  }, 600_000);
  afterAll(() => fleet.stop(), 600_000);

  /** Nothing else was answered. */
  function expectOnly({ statuses }: Answers, ...expected: string[]): void {
    expect(Object.keys(statuses).filter((one) => !expected.includes(one))).toEqual([]);
  }

  async function expectBooksInOrder(): Promise<void> {
    for (const audit of await fleet.audits()) expect(audit).toMatchObject({ drift_nano: "0" });
  }

  for (const keys of KEYS) {
    test(
      `requests of ${keys} new keys are served or refused by the full budget that they share`,
      async () => {
        const perRound = Math.min(keys, REQUESTS);
        for (let round = 0; round < ROUNDS; ) {
          const { owner } = await fleet.balance();
          await fleet.change("POST", "/v1/budgets", { name: "team", cap_usd: 0.05, window: "day" }, owner);
          const all = await fleet.newKeys(owner, keys, "team");
          for (let from = 0; from + perRound <= keys && round < ROUNDS; from += perRound, round++) {
            const cap_usd = 0.05 * (1 + from / perRound);
            await fleet.change("PATCH", "/v1/budgets/team", { cap_usd }, owner);
            const answers = await fleet.send(REQUESTS, 60, (n) => ({ key: all[from + (n % perRound)]! }));
            report(`${keys} keys`, round, answers);
            expectOnly(answers, "200", "429 budget_exhausted");
            expect(answers.statuses["200"]).toBeGreaterThan(70);
          }
        }
        await expectBooksInOrder();
      },
      LIMIT_MS,
    );
  }

  for (const runs of RUNS) {
    test(
      `${runs} runs that start together are served, up to the 1,000 that a balance may have`,
      async () => {
        for (let round = 0; round < ROUNDS; round++) {
          const { key } = await fleet.balance();
          const answers = await fleet.send(runs, Math.min(runs, 1_000), (n) => ({ key, run: `n${n}` }));
          report(`${runs} runs`, round, answers);
          expectOnly(answers, "200", "429 rate_limited");
          // Requests that start in the same moment do not see each other.
          expect(answers.statuses["200"]).toBeGreaterThanOrEqual(Math.min(runs, 1_000));
          expect(answers.statuses["200"]).toBeLessThan(1_100);
        }
        await expectBooksInOrder();
      },
      LIMIT_MS,
    );
  }

  test(
    "requests that each lower the limits of one run are served, or refused with a time to retry",
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const { key } = await fleet.balance();
        const answers = await fleet.send(200, 50, (n) => ({ key, run: `lower; calls=${100_000 - n}` }));
        report("lowered", round, answers);
        expectOnly(answers, "200", "429 budget_exhausted", "429 rate_limited");
        expect(answers.statuses["200"]).toBeGreaterThan(0);
      }
    },
    LIMIT_MS,
  );

  test(
    "a hundred requests at once, of which a cap fits some, are served or refused by that cap",
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const first = await fleet.balance();
        const ofRun = await fleet.send(100, 100, () => ({ key: first.key, run: "small; usd=0.01" }));
        report("run's cap", round, ofRun);
        expectOnly(ofRun, "200", "429 budget_exhausted");
        const second = await fleet.balance();
        await fleet.change("PATCH", `/v1/keys/${second.id}`, { daily_limit_usd: 0.01 }, second.owner);
        const ofDay = await fleet.send(100, 100, () => ({ key: second.key }));
        report("day's cap", round, ofDay);
        expectOnly(ofDay, "200", "429 budget_exhausted");
        const poor = await fleet.balance(0.01);
        const ofBalance = await fleet.send(100, 100, () => ({ key: poor.key }));
        report("balance", round, ofBalance);
        expectOnly(ofBalance, "200", "402 insufficient_credit");
      }
      await expectBooksInOrder();
    },
    LIMIT_MS,
  );

  test(
    "budgets that an owner makes and changes at once are all made and changed",
    async () => {
      const { owner } = await fleet.balance();
      const bodyOf = (n: number) => ({ name: `b${n}`, cap_usd: 1, window: "day" });
      await inParallel(
        100,
        50,
        async (n) => void (await fleet.change("POST", "/v1/budgets", bodyOf(n), owner, n)),
      );
      await inParallel(
        100,
        50,
        async (n) => void (await fleet.change("PATCH", `/v1/budgets/b${n}`, { cap_usd: 2 }, owner, n)),
      );
      const { json } = await fleet.change("GET", "/v1/budgets", undefined, owner);
      expect(json.data.length + (json.has_more ? 1 : 0)).toBeGreaterThan(0);
    },
    LIMIT_MS,
  );

  test(
    "a refused request costs the gateways little more than one that is served",
    async () => {
      const served = await fleet.balance();
      await fleet.send(200, 60, () => ({ key: served.key }));
      const full = await fleet.balance();
      await fleet.change("POST", "/v1/budgets", { name: "team", cap_usd: 0.005, window: "day" }, full.owner);
      const keys = await fleet.newKeys(full.owner, 100, "team");
      await fleet.send(200, 60, (n) => ({ key: keys[n % keys.length]! }));
      const one = await fleet.send(REQUESTS, 60, () => ({ key: served.key }));
      const other = await fleet.send(REQUESTS, 60, (n) => ({ key: keys[n % keys.length]! }));
      report("served", 0, one);
      report("refused", 0, other);
      expectOnly(one, "200");
      expect(other.statuses["429 budget_exhausted"]).toBeGreaterThan(REQUESTS * 0.9);
      // CPU time of a few hundred requests says little: it counts where there are enough of them.
      if (ROUNDS === MAX_ROUNDS) expect(other.cpuUs).toBeLessThan(one.cpuUs * 3);
    },
    LIMIT_MS,
  );
}

/** Where there are several rounds, what each came to is printed. */
function report(what: string, round: number, { statuses, cpuUs }: Answers): void {
  if (ROUNDS > 1)
    console.log(`${what}, round ${round + 1}: ${JSON.stringify(statuses)}, ${Math.round(cpuUs)} µs`);
}

const MAX_ROUNDS = 20;
const ROUNDS = rounds(1, 1, MAX_ROUNDS);
const REQUESTS = rounds(400, 400, 1_500);
const IS_THOROUGH = rounds(0, 0, 1) === 1;
const KEYS = IS_THOROUGH ? [800, 5_000] : [200];
const RUNS = IS_THOROUGH ? [900, 5_000] : [200];
const LIMIT_MS = rounds(600_000, 600_000, 2 * 3_600_000);
