import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatRecord, parseRecord } from "../../src/ledger/record.ts";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { ANY_RECEIPT, type ReceiptFilter, type StoredReceiptPage } from "../../src/store/ledger/receipts.ts";
import { SqliteLedgerStore } from "../../src/store/ledger/sqlite-ledger-store.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { type BalanceId, newReceiptId, type ReceiptId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";

const db = openDatabase(":memory:");
const store = new SqliteLedgerStore(new SqliteDatabase(db));
const MINE = "bal_mine" as BalanceId;
const COUNT = 5_000;

/** Receipts 0 to 4,999, of which the very first one alone is of the model `rare/one`. */
beforeAll(() => fill(store, COUNT));
afterAll(() => db.close());

function fill(into: SqliteLedgerStore, count: number, from = 0): void {
  const records = Array.from({ length: count }, (_, at) => {
    const index = from + at;
    const body = JSON.stringify({
      model: index === 0 ? "rare/one" : "common/one",
      model_requested: "gateway/auto:x",
    });
    return parseRecord(
      formatRecord({
        kind: "terminal",
        receipt: `rcpt_${index}`,
        state: index % 2 === 0 ? "settled" : "failed",
        at: index,
        balance: index % 5 === 4 ? "bal_theirs" : MINE,
        key: "key_a",
        charged: 0,
        writtenOff: 0,
        lost: 0,
        counters: [],
        allowances: [],
        body,
      } as never),
    );
  });
  const batch = records.map((record, index) => ({ record, file: 1, bytes: index, sequence: index }));
  void into.ship(null, null, batch as never);
}

async function all(filter: object, limit: number): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = [];
  let before: ReceiptId | null = null;
  let pages = 0;
  do {
    const page: StoredReceiptPage = await store.receipts(MINE, { ...ANY_RECEIPT, ...filter }, limit, before);
    ids.push(...page.receipts.map(({ id }) => id));
    before = page.nextBefore;
    pages++;
  } while (before !== null);
  return { ids, pages };
}

test("pages hold every receipt of the balance once, newest first, and nobody else's", async () => {
  const { ids } = await all({}, 100);
  expect(ids).toHaveLength((COUNT * 4) / 5);
  expect(ids.slice(0, 3)).toEqual(["rcpt_4998", "rcpt_4997", "rcpt_4996"]);
  expect(new Set(ids).size).toBe(ids.length);
});

test("what a filter finds only far back is found over several pages, each of which looks at so many receipts", async () => {
  const { ids, pages } = await all({ model: "rare/one" }, 100);
  expect(ids).toEqual(["rcpt_0"]);
  expect(pages).toBeGreaterThan(1);
  const first = await store.receipts(MINE, { ...ANY_RECEIPT, model: "rare/one" }, 100, null);
  expect(first.receipts).toEqual([]);
});

test("models are found as served and as asked for; states and keys as they are", async () => {
  expect((await all({ model: "gateway/auto:x" }, 1_000)).ids).toHaveLength((COUNT * 4) / 5);
  expect((await all({ state: "failed" }, 1_000)).ids).toHaveLength((COUNT * 2) / 5);
  expect((await all({ state: "failed", keyId: "key_b" }, 1_000)).ids).toEqual([]);
});

test("ends that are booked while a page is read shift nothing in it: the next one begins where it ended", async () => {
  const folder = mkdtempSync(join(tmpdir(), "receipt-pages-"));
  const path = join(folder, "gateway.sqlite");
  const bookkeeper = new SqliteLedgerStore(new SqliteDatabase(openDatabase(path)));
  fill(bookkeeper, COUNT);
  const pages = openDatabase(path);
  const prepare = pages.prepare.bind(pages);
  let times = 0;
  pages.prepare = ((sql: string) => {
    const statement = prepare(sql);
    if (sql.includes("count(*) OVER ()")) {
      const all = statement.all.bind(statement);
      statement.all = (...values) => {
        times += 1;
        fill(bookkeeper, 100, COUNT);
        return all(...values);
      };
    }
    return statement;
  }) as typeof prepare;
  const reader = new SqliteLedgerStore(new SqliteDatabase(pages));
  const page = await reader.receipts(MINE, { ...ANY_RECEIPT, model: "rare/one" }, 100, null);
  expect(times).toBe(1);
  // The 2,000th of those that were there.
  expect(page.nextBefore).toBe("rcpt_2500" as ReceiptId);
  rmSync(folder, { recursive: true });
});

describe("filters", () => {
  const HOUR = 3_600_000;
  const START = Date.UTC(2026, 0, 1) as EpochMs;
  const timed = new SqliteLedgerStore(new SqliteDatabase(openDatabase(":memory:")));
  /** One an hour, for 300 days; a tenth failed at the host `b`, and each costs a nano-dollar more than the last. */
  const COUNT_TIMED = 7_200;
  const idAt = (index: number) =>
    newReceiptId((START + index * HOUR) as EpochMs, (bytes) => new Uint8Array(bytes));
  beforeAll(() => {
    const records = Array.from({ length: COUNT_TIMED }, (_, index) => {
      const failed = index % 10 === 0;
      return {
        kind: "terminal",
        receipt: idAt(index),
        state: failed ? "failed" : "settled",
        at: START + index * HOUR,
        balance: index % 2 === 0 ? MINE : "bal_theirs",
        key: "key_a",
        charged: index,
        writtenOff: 0,
        lost: 0,
        counters: [],
        allowances: [],
        body: JSON.stringify({
          model: "a/m",
          host: failed ? "b" : "a",
          error_code: failed ? "upstream_error" : null,
        }),
      };
    });
    void timed.ship(
      null,
      null,
      records.map((record, index) => ({
        record: parseRecord(formatRecord(record as never)),
        file: 1,
        bytes: index,
        sequence: index,
      })) as never,
    );
  });

  async function found(filter: Partial<ReceiptFilter>, balance: BalanceId | null = MINE) {
    const ids: ReceiptId[] = [];
    let pages = 0;
    let before: ReceiptId | null = null;
    do {
      const page: StoredReceiptPage = await timed.receipts(
        balance,
        { ...ANY_RECEIPT, ...filter },
        500,
        before,
      );
      ids.push(...page.receipts.map(({ id }) => id));
      before = page.nextBefore;
      pages++;
    } while (before !== null);
    return { ids, pages };
  }
  const at = (index: number) => (START + index * HOUR) as EpochMs;

  test("a time range far back is found at once, to the millisecond", async () => {
    const { ids, pages } = await found({ since: at(100), until: at(104) });
    expect(ids).toEqual([idAt(102), idAt(100)]);
    expect(pages).toBe(1);
    expect((await found({ since: at(100), until: at(104) }, null)).ids).toEqual(
      [103, 102, 101, 100].map(idAt),
    );
  });

  test("since a moment ago, older pages are not read", async () => {
    expect((await found({}, null)).pages).toBeGreaterThan(4);
    expect(await found({ since: at(COUNT_TIMED - 4) }, null)).toMatchObject({ pages: 2, ids: { length: 4 } });
  });

  test.each<[string, Partial<ReceiptFilter>, number]>([
    ["host", { host: "b" }, COUNT_TIMED / 10],
    ["error", { error: "upstream_error" }, COUNT_TIMED / 10],
    ["another error", { error: "model_unavailable" }, 0],
    ["cost", { leastCost: (COUNT_TIMED - 10) as NanoUsd }, 5],
    ["all of them", { host: "b", state: "failed", leastCost: (COUNT_TIMED - 20) as NanoUsd }, 2],
  ])("by %s", async (_, filter, count) => {
    expect((await found(filter)).ids).toHaveLength(count);
  });

  test("everybody's are in pages as a balance's are", async () => {
    const { ids } = await found({}, null);
    expect(ids).toHaveLength(COUNT_TIMED);
    expect(new Set(ids).size).toBe(COUNT_TIMED);
  });
});
