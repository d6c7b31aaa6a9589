import { afterAll, expect, test } from "bun:test";
import { balanceCounter, type CounterId, keyCounter } from "../../src/ledger/counter.ts";
import type { TerminalRecord } from "../../src/ledger/record.ts";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { PostgresLedgerStore } from "../../src/store/ledger/postgres-ledger-store.ts";
import { DAY_MS, type EpochMs, epochMs, systemClock } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { describeOnPostgres } from "./fixture.ts";

const START = epochMs(Date.UTC(2026, 0, 20));
const KEY = "key_a" as KeyId;
const BALANCES = ["bal_a", "bal_b", "bal_c"] as BalanceId[];
const COUNT = 2_400;
/** Day 60 of 100. */
const OLD = (START + 60 * DAY_MS) as EpochMs;
const OLD_COUNT = 60 * 24;
const FILE = 4;

const RECORDS = Array.from({ length: COUNT }, (_, index): TerminalRecord => {
  const at = (START + index * 3_600_000) as EpochMs;
  const balance = BALANCES[index % 3]!;
  return {
    kind: "terminal",
    receipt: `rcpt_${index}` as ReceiptId,
    state: "settled",
    at,
    balance,
    key: KEY,
    charged: (1_000 + index) as NanoUsd,
    writtenOff: (index % 7) as NanoUsd,
    lost: (index % 11) as NanoUsd,
    counters: [balanceCounter(balance), keyCounter("day", KEY, at)],
    allowances: [`allowance:someone:${index % 9}` as CounterId],
    body: "{}",
  };
});
const BATCH = RECORDS.map((record, index) => ({
  record,
  sequence: index + 1,
  file: index < COUNT / 2 ? FILE : FILE + 1,
  bytes: index + 1,
}));

describeOnPostgres("receipts that are deleted from PostgreSQL", (cluster) => {
  const open: Postgres[] = [];
  afterAll(async () => {
    for (const postgres of open) await postgres.close();
  });

  function connect(url: string): { postgres: Postgres; store: PostgresLedgerStore } {
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 30_000 }, systemClock);
    open.push(postgres);
    return { postgres, store: new PostgresLedgerStore(new PostgresDatabase(postgres)) };
  }

  async function booked(): Promise<{ url: string; postgres: Postgres; store: PostgresLedgerStore }> {
    const url = await cluster.database();
    const { postgres, store } = connect(url);
    await migratePostgres(postgres);
    await store.ship("n", null, BATCH);
    return { url, postgres, store };
  }
  const left = async (postgres: Postgres): Promise<number> => {
    const [row] = await postgres.query<{ count: string }>((sql) => sql`SELECT count(*) FROM ends`);
    return Number(row!.count);
  };

  test("leave every sum as it was, after each slice", async () => {
    const { postgres, store } = await booked();
    const audit = await store.audit();
    expect(audit.drifts).toEqual([]);
    let deleted = 0;
    for (;;) {
      const some = await store.fold(OLD);
      expect(await store.audit()).toEqual(audit);
      if (some === 0) break;
      deleted += some;
    }
    expect(deleted).toBe(OLD_COUNT);
    expect(await left(postgres)).toBe(COUNT - OLD_COUNT);
    expect(await store.receipt("rcpt_0")).toBeNull();
  });

  test("are not charged again by a node that ships its journal again, whether or not it arrived the first time", async () => {
    const { postgres, store } = await booked();
    const audit = await store.audit();
    while ((await store.fold(OLD)) > 0);
    for (let from = 0; from < COUNT; from += 500) await store.ship("n", null, BATCH.slice(from, from + 500));
    expect(await store.audit()).toEqual(audit);
    expect(await left(postgres)).toBe(COUNT - OLD_COUNT);
  });

  test("do not keep an old end out that was never shipped", async () => {
    const { store } = await booked();
    while ((await store.fold(OLD)) > 0);
    const { charges } = await store.audit();
    const late = { ...RECORDS[0]!, receipt: "rcpt_late" as ReceiptId, charged: 5 as NanoUsd };
    await store.ship("n", null, [{ record: late, sequence: 1, file: FILE + 1, bytes: COUNT + 1 }]);
    await store.ship("other", null, [
      { record: { ...late, receipt: "rcpt_others" as ReceiptId }, sequence: 1, file: FILE, bytes: 1 },
    ]);
    const audit = await store.audit();
    expect(audit.charges - charges).toBe(10n);
    expect(audit.drifts).toEqual([]);
  });

  test("stay while a hold of theirs is left, which would be ended a second time", async () => {
    const { postgres, store } = await booked();
    const { receipt } = RECORDS[7]!;
    await postgres.query(
      (sql) =>
        sql`INSERT INTO holds (receipt, node, held, delivered, record) VALUES (${receipt}, 'n', 1, 0, '{}')`,
    );
    while ((await store.fold(OLD)) > 0);
    expect(await left(postgres)).toBe(COUNT - OLD_COUNT + 1);
    expect(await store.receipt(receipt)).not.toBeNull();
  });

  test("are deleted once, by several nodes at the same time, while ends arrive and a node is killed", async () => {
    const { url, postgres, store } = await booked();
    const audit = await store.audit();
    const nodes = [1, 2, 3].map(() => connect(url));
    const folding = nodes.map(async (node) => {
      let deleted = 0;
      for (let idle = 0; idle < 3; ) {
        const some = await node.store.fold(OLD).catch(() => 0);
        deleted += some;
        idle = some === 0 ? idle + 1 : 0;
      }
      return deleted;
    });
    await postgres.query(
      (sql) => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%SKIP LOCKED%'`,
    );
    for (let index = 0; index < 20; index++) {
      const record = { ...RECORDS[0]!, receipt: `rcpt_new_${index}` as ReceiptId, at: (OLD + 1) as EpochMs };
      await store.ship("other", null, [{ record, sequence: 1, file: 1, bytes: index + 1 }]);
    }
    await Promise.all(folding);
    while ((await store.fold(OLD)) > 0);
    const after = await store.audit();
    expect(after.drifts).toEqual([]);
    expect(after.charges).toBe(audit.charges + 20n * BigInt(RECORDS[0]!.charged));
    expect(await left(postgres)).toBe(COUNT - OLD_COUNT + 20);
  });
});
