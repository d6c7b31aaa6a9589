import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { allowanceCounter, balanceCounter, keyCounter } from "../../src/ledger/counter.ts";
import type { TerminalRecord } from "../../src/ledger/record.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { ANY_RECEIPT } from "../../src/store/ledger/receipts.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import { HOURLY, Retention, slicesOf } from "../../src/store/retention.ts";
import { DAY_MS, type EpochMs, epochMs, HOUR_MS } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { enterCredit } from "./enter-credit.ts";

const START = epochMs(Date.UTC(2026, 0, 20));
const KEY = "key_a" as KeyId;
const BALANCES = ["bal_a", "bal_b"] as BalanceId[];

/**
 * One request an hour: so many days of them, of two balances in turn; every seventh is written off, every
 * fifth free.
 */
function ends(days: number): TerminalRecord[] {
  return Array.from({ length: days * 24 }, (_, index): TerminalRecord => {
    const at = (START + index * 3_600_000) as EpochMs;
    const balance = BALANCES[index % 2]!;
    const writtenOff = index % 7 === 0;
    return {
      kind: "terminal",
      receipt: `rcpt_${index}` as ReceiptId,
      state: writtenOff ? "written_off" : "settled",
      at,
      balance,
      key: KEY,
      charged: (writtenOff ? 0 : 1_000 + index) as NanoUsd,
      writtenOff: (writtenOff ? 77 : 0) as NanoUsd,
      lost: (index % 11) as NanoUsd,
      counters: [balanceCounter(balance), keyCounter("day", KEY, at), keyCounter("month", KEY, at)],
      allowances: index % 5 === 0 ? [allowanceCounter("someone", at)] : [],
      body: JSON.stringify({ id: `rcpt_${index}` }),
    };
  });
}

const batch = (records: readonly TerminalRecord[], file = 1) =>
  records.map((record, index) => ({ record, sequence: index + 1, file, bytes: index + 1 }));

function booked(records: readonly TerminalRecord[], path = ":memory:") {
  const db = openDatabase(path);
  const store = new SqliteLedgerStore(new SqliteDatabase(db));
  for (const balanceId of BALANCES) {
    const credit = { balanceId, amount: 1e12 as NanoUsd, note: null, at: START };
    enterCredit(db, { ...credit, idempotencyKey: balanceId });
  }
  void store.ship(null, null, batch(records));
  return { db, store };
}

/** What an accountant reads, by kind. */
const entries = (db: ReturnType<typeof openDatabase>) =>
  db
    .query<{ kind: string; amount: number }, []>(
      "SELECT kind, sum(amount) AS amount FROM entries GROUP BY kind",
    )
    .all();

async function count(store: SqliteLedgerStore): Promise<number> {
  const pages = BALANCES.map((balance) => store.receipts(balance, ANY_RECEIPT, 10_000, null));
  return (await Promise.all(pages)).reduce((sum, { receipts }) => sum + receipts.length, 0);
}

async function foldAll(store: SqliteLedgerStore, before: EpochMs, between = async () => {}): Promise<number> {
  let deleted = 0;
  for (;;) {
    const some = await store.fold(before);
    if (some === 0) return deleted;
    deleted += some;
    await between();
  }
}

describe("receipts that are deleted", () => {
  const records = ends(90);
  const before = (START + 60 * DAY_MS) as EpochMs;

  test("take nothing with them that sums are made of: after each slice the books come out the same", async () => {
    const { db, store } = booked(records);
    const [audit, accountant] = [await store.audit(), entries(db)];
    const spent = () =>
      records
        .flatMap(({ counters, allowances }) => [...counters, ...allowances])
        .map((id) => store.spent(id));
    const spentBefore = spent();
    let slices = 0;
    const deleted = await foldAll(store, before, async () => {
      slices += 1;
      expect(await store.audit()).toEqual(audit);
    });
    expect(deleted).toBe(60 * 24);
    expect(slices).toBeGreaterThan(5);
    expect(audit.drifts).toEqual([]);
    expect(entries(db)).toEqual(accountant);
    expect(spent()).toEqual(spentBefore);
    expect(await store.receipt("rcpt_0")).toBeNull();
    expect(await store.receipt(`rcpt_${60 * 24}` as ReceiptId)).not.toBeNull();
    expect(await count(store)).toBe(30 * 24);
  });

  test("are kept as sums by balance and month", async () => {
    const { db, store } = booked(records);
    await foldAll(store, before);
    const january = records.filter(({ at, balance }) => at < Date.UTC(2026, 1, 1) && balance === "bal_a");
    expect(db.query("SELECT * FROM folded WHERE balance_id = 'bal_a' ORDER BY month LIMIT 1").get()).toEqual({
      balance_id: "bal_a",
      month: Date.UTC(2026, 0, 1),
      receipts: january.length,
      charged: january.reduce((sum, { charged }) => sum + charged, 0),
      written_off: january.reduce((sum, { writtenOff }) => sum + writtenOff, 0),
      lost: january.reduce((sum, { lost }) => sum + lost, 0),
    });
  });

  test("are not booked again by a journal that is read again, not even by a batch that stood in two files", async () => {
    const db = openDatabase(":memory:");
    const store = new SqliteLedgerStore(new SqliteDatabase(db));
    await store.ship(null, null, [...batch(records.slice(0, 10), 1), ...batch(records.slice(10, 20), 2)]);
    expect(await store.reached()).toEqual(
      new Map([
        [1, 10],
        [2, 10],
      ]),
    );
  });

  test("are all there, or all summed up, when the database fails in the middle of a slice", async () => {
    const { db, store } = booked(records);
    const audit = await store.audit();
    db.run(`CREATE TRIGGER fault BEFORE DELETE ON ends WHEN old.receipt = 'rcpt_40'
      BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END`);
    await expect(store.fold(before)).rejects.toThrow("disk I/O error");
    expect(await count(store)).toBe(records.length);
    expect(await store.audit()).toEqual(audit);
    expect(db.query("SELECT * FROM folded").all()).toEqual([]);
    db.run("DROP TRIGGER fault");
    expect(await foldAll(store, before)).toBe(60 * 24);
    expect(await store.audit()).toEqual(audit);
  });

  test("are found behind some of a clock that was ahead", async () => {
    const ahead = ends(3).map((end, index) => ({
      ...end,
      receipt: `rcpt_ahead_${index}` as ReceiptId,
      at: (end.at + 9_000 * DAY_MS) as EpochMs,
    }));
    const { store } = booked([...ahead, ...records]);
    expect(await foldAll(store, before)).toBe(60 * 24);
    expect(await store.receipt("rcpt_ahead_0")).not.toBeNull();
  });
});

describe("a process that is killed while it deletes", () => {
  const folder = mkdtempSync(join(tmpdir(), "folding-"));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("leaves books without drift, wherever it was, and the next one goes on", async () => {
    const path = join(folder, "gateway.sqlite");
    const records = ends(120);
    const { db, store } = booked(records, path);
    const audit = await store.audit();
    const before = START + 100 * DAY_MS;
    for (let slices = 1; slices <= 5; slices++) {
      const child = Bun.spawn([process.execPath, join(import.meta.dir, "folding.ts"), path, String(before)], {
        stdout: "pipe",
      });
      let logged = 0;
      for await (const _ of child.stdout) if (++logged === slices) break;
      child.kill("SIGKILL");
      await child.exited;
      expect(await store.audit()).toEqual(audit);
    }
    expect(await count(store)).toBeLessThan(records.length);
    await foldAll(store, before as EpochMs);
    expect(await count(store)).toBe(20 * 24);
    expect(await store.audit()).toEqual(audit);
    db.close();
  });
});

describe("retention", () => {
  function fixture(keepDays: number | null) {
    const clock = new ManualClock(START);
    const requested: number[] = [];
    const reported: (number | string)[] = [];
    const kept = { keepDays, slices: [] as (number | Error)[] };
    const retention = new Retention({
      clock,
      keepDays: () => kept.keepDays,
      deleteSlice: slicesOf("receipts", async (before) => {
        requested.push((clock.now() - before) / DAY_MS);
        const some = kept.slices.shift() ?? 0;
        if (some instanceof Error) throw some;
        return some;
      }),
      onDeleted: ({ receipts }) => reported.push(receipts!),
      pace: HOURLY,
      onFault: (error) => reported.push(String(error)),
    });
    const pass = async (ms: number) => {
      // Each slice is awaited before the timer of the next is set.
      for (let left = ms; left > 0; left -= 1_000) {
        clock.advance(1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    return { clock, requested, reported, kept, retention, pass };
  }

  test("deletes slice after slice while there is something, says how many went, and looks again after an hour", async () => {
    const { requested, reported, kept, pass } = fixture(31);
    kept.slices.push(64, 64, 10);
    await pass(70_000);
    expect(requested).toEqual([31, 31, 31, 31]);
    expect(reported).toEqual([138]);
    await pass(HOUR_MS);
    expect(requested).toHaveLength(5);
    expect(reported).toEqual([138]);
  });

  test("deletes nothing unless configured, and heeds a change of the setting", async () => {
    const { requested, kept, pass } = fixture(null);
    await pass(3 * HOUR_MS);
    expect(requested).toEqual([]);
    kept.keepDays = 400;
    await pass(HOUR_MS);
    expect(requested).toEqual([400]);
  });

  test("a database that refuses is asked again an hour later", async () => {
    const { requested, reported, kept, pass } = fixture(31);
    kept.slices.push(64, new Error("disk is full"), 5);
    await pass(70_000);
    expect(reported).toEqual(["Error: disk is full", 64]);
    await pass(HOUR_MS);
    expect(reported).toEqual(["Error: disk is full", 64, 5]);
    expect(requested).toHaveLength(4);
  });

  test("ends with the gateway", async () => {
    const { clock, requested, retention, pass } = fixture(31);
    await retention.stop();
    await pass(2 * HOUR_MS);
    expect(requested).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});

test("an accountant reads what was taken back as an amount that leaves the balance", async () => {
  const { db, store } = booked([]);
  const [balanceId] = BALANCES;
  const entry = { balanceId: balanceId!, amount: 4e11 as NanoUsd, note: null, at: START };
  await store.debit({ ...entry, idempotencyKey: "back" });
  expect(entries(db)).toEqual([
    { kind: "credit", amount: 1e12 * BALANCES.length },
    { kind: "debit", amount: 4e11 },
  ]);
  const audit = await store.audit();
  expect([audit.credits, audit.drifts]).toEqual([BigInt(1e12 * BALANCES.length - 4e11), []]);
  db.close();
});
