import { afterAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { readRows } from "../../src/store/export/export-file.ts";
import { SqlExportStore } from "../../src/store/export/export-store.ts";
import { PostgresLedgerStore } from "../../src/store/ledger/postgres-ledger-store.ts";
import { epochMs, systemClock } from "../../src/units/clock.ts";
import { until } from "../fakes/until.ts";
import { end } from "../store/end-record.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("an export from PostgreSQL", (cluster) => {
  const open: { close(): Promise<unknown> }[] = [];
  afterAll(async () => {
    for (const one of open) await one.close();
  });

  async function fixture() {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 30_000 }, systemClock);
    const others = new SQL(url, { max: 4 });
    open.push(postgres, others);
    await migratePostgres(postgres);
    return { postgres, others, store: new SqlExportStore(new PostgresDatabase(postgres)) };
  }

  const insert = (sql: SQL, name: string) => sql`
    INSERT INTO ends (receipt, at, node, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body)
    VALUES (${name}, 1000, 'n', 'bal_1', 'key_1', 'settled', 1, 0, 0, '', '', ${`{"id":"${name}"}`})`;

  const receipts = async (store: SqlExportStore) => {
    const through = await store.settledThrough("receipts");
    if (through === null) return null;
    return (await readRows(store, systemClock, "receipts", { after: 0, through })).map(
      ({ line }) => JSON.parse(line).id,
    );
  };

  test("waits for transactions that took an earlier number and have not committed: none is passed over", async () => {
    const { others, store } = await fixture();
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: inserted, resolve: onInserted } = Promise.withResolvers<void>();
    const slow = others.begin(async (sql) => {
      await insert(sql, "rcpt_first");
      onInserted();
      await mayCommit;
    });
    await inserted;
    await insert(others, "rcpt_second");
    let exported: string[] | null | undefined;
    const reading = receipts(store).then((found) => {
      exported = found;
    });
    await Bun.sleep(200);
    expect(exported).toBeUndefined();
    commit();
    await slow;
    await reading;
    expect(exported).toEqual(["rcpt_first", "rcpt_second"]);
  }, 60_000);

  test("nodes that book at once, some of whose transactions fail, and a reader that follows them: each receipt once, in order", async () => {
    const { others, store } = await fixture();
    let isOver = false;
    const writers = Array.from({ length: 3 }, async (_, node) => {
      for (let batch = 0; batch < 40; batch++) {
        const work = others.begin(async (sql) => {
          for (let at = 0; at < 3; at++) await insert(sql, `rcpt_${node}_${batch}_${at}`);
          if ((batch + node) % 7 === 0) throw new Error("rolled back");
        });
        await work.catch(() => {});
      }
    });
    const seen: string[] = [];
    let after = 0;
    const follow = async () => {
      const through = await store.settledThrough("receipts");
      if (through === null) return;
      const rows = await readRows(store, systemClock, "receipts", { after, through });
      for (const { line } of rows) seen.push(JSON.parse(line).id);
      after = rows.at(-1)?.number ?? after;
    };
    const following = until(async () => {
      const wasOver = isOver;
      await follow();
      return wasOver;
    });
    await Promise.all(writers);
    isOver = true;
    await following;
    const booked = await others`SELECT receipt FROM ends ORDER BY seq`;
    expect(seen).toEqual(booked.map(({ receipt }: { receipt: string }) => receipt));
    expect(seen.length).toBeGreaterThan(250);
  }, 120_000);

  test("receipts from before numbers were taken are numbered and exported", async () => {
    const { others, store } = await fixture();
    for (const name of ["rcpt_a", "rcpt_b"]) await insert(others, name);
    await others`UPDATE ends SET seq = NULL`;
    await insert(others, "rcpt_c");
    expect((await receipts(store))!.sort()).toEqual(["rcpt_a", "rcpt_b", "rcpt_c"]);
  }, 60_000);

  test("retention leaves what the target lacks", async () => {
    const { postgres, store } = await fixture();
    const ledger = new PostgresLedgerStore(new PostgresDatabase(postgres));
    const at = epochMs(Date.now() - 100 * 86_400_000);
    const before = epochMs(Date.now() - 90 * 86_400_000);
    await ledger.ship(
      "n",
      null,
      [1, 2, 3].map((name) => ({ record: { ...end(name), at }, sequence: 1, file: 1, bytes: name })),
    );
    await store.configure("file:/export", epochMs(Date.now()));
    expect(await ledger.fold(before)).toBe(0);
    const claim = (await store.claim("file:/export", epochMs(Date.now()), epochMs(Date.now() + 60_000)))!;
    const file = { kind: "receipts", last: 0, file: { last: 2, rows: 2 }, until: claim.dueAt } as const;
    await store.finish((await store.begin(claim, file))!, file);
    expect(await ledger.fold(before)).toBe(2);
    await store.configure(null, epochMs(Date.now()));
    expect(await ledger.fold(before)).toBe(1);
  }, 60_000);
});
