import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatRecord, parseRecord } from "../../src/ledger/record.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { LedgerStore } from "../../src/store/sqlite/ledger-store.ts";
import type { BalanceId, ReceiptId } from "../../src/units/id.ts";

const db = openDatabase(":memory:");
const store = new LedgerStore(db);
const MINE = "bal_mine" as BalanceId;
const COUNT = 5_000;
const ANY = { keyId: null, model: null, state: null };

/** Receipts 0 to 4,999, of which the very first one alone is of the model `rare/one`. */
beforeAll(() => fill(store, COUNT));
afterAll(() => db.close());

function fill(into: LedgerStore, count: number, from = 0): void {
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
  into.apply(records.map((record, index) => ({ record, file: 1, bytes: index, sequence: index }) as never));
}

function all(filter: object, limit: number): { ids: string[]; pages: number } {
  const ids: string[] = [];
  let before: ReceiptId | null = null;
  let pages = 0;
  do {
    const page = store.receipts(MINE, { ...ANY, ...filter }, limit, before);
    ids.push(...page.receipts.map(({ id }) => id));
    before = page.nextBefore;
    pages++;
  } while (before !== null);
  return { ids, pages };
}

test("pages hold every receipt of the balance once, newest first, and nobody else's", () => {
  const { ids } = all({}, 100);
  expect(ids).toHaveLength((COUNT * 4) / 5);
  expect(ids.slice(0, 3)).toEqual(["rcpt_4998", "rcpt_4997", "rcpt_4996"]);
  expect(new Set(ids).size).toBe(ids.length);
});

test("what a filter finds only far back is found over several pages, each of which looks at so many receipts", () => {
  const { ids, pages } = all({ model: "rare/one" }, 100);
  expect(ids).toEqual(["rcpt_0"]);
  expect(pages).toBeGreaterThan(1);
  expect(store.receipts(MINE, { ...ANY, model: "rare/one" }, 100, null).receipts).toEqual([]);
});

test("models are found as served and as asked for; states and keys as they are", () => {
  expect(all({ model: "gateway/auto:x" }, 1_000).ids).toHaveLength((COUNT * 4) / 5);
  expect(all({ state: "failed" }, 1_000).ids).toHaveLength((COUNT * 2) / 5);
  expect(all({ state: "failed", keyId: "key_b" }, 1_000).ids).toEqual([]);
});

test("ends that are booked while a page is read shift nothing in it: the next one begins where it ended", () => {
  const folder = mkdtempSync(join(tmpdir(), "receipt-pages-"));
  const path = join(folder, "gateway.sqlite");
  const bookkeeper = new LedgerStore(openDatabase(path));
  fill(bookkeeper, COUNT);
  const pages = openDatabase(path);
  const query = pages.query.bind(pages);
  const betweenStatements = () => fill(bookkeeper, 100, COUNT);
  pages.query = ((sql: string) => {
    const statement = query(sql);
    if (sql.includes("OFFSET")) {
      const get = statement.get.bind(statement);
      statement.get = (...values) => {
        betweenStatements();
        return get(...values);
      };
    }
    return statement;
  }) as typeof query;
  const page = new LedgerStore(pages).receipts(MINE, { ...ANY, model: "rare/one" }, 100, null);
  // The 2,000th of those that were there.
  expect(page.nextBefore).toBe("rcpt_2500" as ReceiptId);
  rmSync(folder, { recursive: true });
});
