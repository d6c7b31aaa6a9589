import { expect, test } from "bun:test";
import { refused } from "../../src/errors/refusal.ts";
import { setUp } from "../../src/keys/creation.ts";
import { Keyring } from "../../src/keys/keyring.ts";
import { revoke } from "../../src/keys/rotation.ts";
import { PostgresKeyStore } from "../../src/store/postgres/key-store.ts";
import { migratePostgres, Postgres } from "../../src/store/postgres/postgres.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { systemClock } from "../../src/units/clock.ts";
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
    const store = new PostgresKeyStore(postgres, systemClock, async () => {});
    const limits = { rpmLimit: 60, tpmLimit: null, dailyLimit: null, monthlyLimit: null };
    const desk = {
      store,
      keyring: new Keyring(store),
      clock: systemClock,
      random: systemRandom,
      settings: () => ({ defaults: { accountless: limits, account: limits }, graceMs: 1, contact: null }),
      credit: () => 0 as NanoUsd,
    };
    const make = async () => {
      const made = await setUp(desk, {});
      if (refused(made)) throw new Error(made.message);
      return made.key;
    };
    const [live, ended] = [await make(), await make()];
    await revoke(desk, ended.id);
    // So that only its ended key could be removed.
    await postgres.query((sql) => sql`UPDATE balances SET suspended = 'fraud' WHERE id = ${ended.balanceId}`);
    const granted = (amount: number) =>
      postgres.query(
        (sql) => sql`INSERT INTO grants (counter, node, granted, used, number)
          SELECT 'free_rpm:' || lineage, 'another', ${amount}::bigint, 0, 1 FROM keys
          ON CONFLICT (node, counter) DO UPDATE SET granted = excluded.granted`,
      );
    const remove = async () => {
      const start = { createdAt: 0 as EpochMs, id: "" };
      const later = (systemClock.now() + 1_000) as EpochMs;
      const { keys, balances } = await store.removeUnused(later, start, () => false);
      return { keys: keys.map(({ hash }) => hash).toSorted(), balances };
    };
    await granted(5);
    expect(await remove()).toEqual({ keys: [], balances: [] });
    await granted(0);
    const keys = [live.hash, ended.hash].toSorted();
    expect(await remove()).toEqual({ keys, balances: [live.balanceId] });
    await postgres.close();
  });
});
