import { expect, test } from "bun:test";
import { setUp } from "../../src/customers/keys/creation.ts";
import { Keyring } from "../../src/customers/keys/keyring.ts";
import { OPERATOR } from "../../src/customers/keys/root.ts";
import { revoke } from "../../src/customers/keys/rotation.ts";
import { allowanceCounter, balanceCounter, rateCounter } from "../../src/ledger/counter.ts";
import { SqlKeyStore } from "../../src/store/customers/key-store.ts";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { systemClock } from "../../src/units/clock.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import { systemRandom } from "../../src/units/random.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { unusedCases } from "../gateway/unused-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("balances and keys that nobody uses", (cluster) => {
  unusedCases(async () => `store: ${await cluster.database()}`);

  test("stay while another node may serve them, whose ends are not in the store yet", async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 2, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    const store = new SqlKeyStore(new PostgresDatabase(postgres), systemClock);
    const limits = { rpmLimit: 60, tpmLimit: null, dailyLimit: null, monthlyLimit: null };
    const deps = {
      store,
      keyring: new Keyring(store),
      clock: systemClock,
      random: systemRandom,
      settings: () => ({ defaults: { accountless: limits, account: limits }, graceMs: 1, contact: null }),
      spendable: { of: () => 0 as NanoUsd },
    };
    const make = async () => {
      const made = await setUp(deps, {});
      if (refused(made)) throw new Error(made.message);
      return made.key;
    };
    const [live, ended] = [await make(), await make()];
    await revoke(deps, ended.id, OPERATOR);
    // So that only its ended key could be removed.
    await postgres.query((sql) => sql`UPDATE balances SET suspended = 'fraud' WHERE id = ${ended.balanceId}`);
    const grant = (counter: string, amount: number) =>
      postgres.query(
        (sql) => sql`INSERT INTO grants (counter, node, granted, used, number)
          VALUES (${counter}, 'another', ${amount}, 0, 1)
          ON CONFLICT (node, counter) DO UPDATE SET granted = excluded.granted`,
      );
    // Every counter that an open request of the key may hold, or held within the last minute.
    const heldBy = ({ balanceId, rotationId }: typeof live) => [
      balanceCounter(balanceId),
      allowanceCounter(balanceId, systemClock.now()),
      allowanceCounter(balanceId, (systemClock.now() - 86_400_000) as EpochMs),
      rateCounter("rpm", rotationId),
      rateCounter("free_rpm", rotationId),
    ];
    const remove = async () => {
      const start = { createdAt: 0 as EpochMs, id: "" };
      const later = (systemClock.now() + 1_000) as EpochMs;
      const { keys, balances } = await store.removeUnused(later, start, {
        isInUse: () => false,
        forget() {},
      });
      return { keys: keys.map(({ hash }) => hash).toSorted(), balances };
    };
    // A change of another balance meanwhile is not waited for.
    const used = await make();
    await postgres.query(
      (sql) =>
        sql`INSERT INTO credits (idempotency_key, at, balance_id, amount) VALUES ('one', 1, ${used.balanceId}, 1)`,
    );
    const other = new Bun.SQL(url, { max: 1 });
    const released = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const changing = other.begin(async (sql) => {
      await sql`SELECT id FROM balances WHERE id = ${used.balanceId} FOR UPDATE`;
      locked.resolve();
      await released.promise;
    });
    await locked.promise;
    for (const [at] of heldBy(live).entries()) {
      const counters = [heldBy(live)[at]!, heldBy(ended)[at]!];
      for (const counter of counters) await grant(counter, 5);
      expect(await remove()).toEqual({ keys: [], balances: [] });
      for (const counter of counters) await grant(counter, 0);
    }
    const keys = [live.hash, ended.hash].toSorted();
    expect(await remove()).toEqual({ keys, balances: [live.balanceId] });
    released.resolve();
    await changing;
    await other.close();
    await postgres.close();
  });
});
