import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../src/store/database/sqlite.ts";
import { MAX_CHARTS, UsageReader, type UsageScope } from "../../src/store/usage/usage.ts";
import { DAY_MS, epochMs } from "../../src/units/clock.ts";
import { type BalanceId, firstReceiptId, type KeyId } from "../../src/units/id.ts";

/** A balance that ended 50,001 requests today, all by one key, and three yesterday by another. */
const TODAY = epochMs(20_000 * DAY_MS);
const YESTERDAY = epochMs(TODAY - DAY_MS);
const folder = mkdtempSync(join(tmpdir(), "usage-"));
const path = join(folder, "gateway.sqlite");
const db = openDatabase(path);
const body = JSON.stringify({
  model: "a/m",
  model_requested: "a/m",
  host: "h",
  attempts: [],
  tokens: { input: 3, cache_read: 0, cache_write: 0, output: 4 },
  first_token_ms: null,
});
function book(count: number, at: number, key: string): void {
  db.run(
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
      INSERT INTO ends (receipt, at, balance_id, key_id, state, charged, written_off, lost, counters, allowances, body)
      SELECT ?2 || ?4 || n, ?3, 'bal_1', ?4, 'settled', 10, 0, 0, '', '', ?5 FROM n`,
    [count, firstReceiptId(epochMs(at)), at, key, body],
  );
}
book(3, YESTERDAY, "key_quiet");
book(50_001, TODAY + DAY_MS / 2, "key_busy");
const reader = new UsageReader(path, MAX_CHARTS);
afterAll(() => {
  reader.stop();
  db.close();
  rmSync(folder, { recursive: true });
});

const usageOf = async (scope: Partial<UsageScope>) => {
  const of = { balanceId: "bal_1" as BalanceId, keyId: null, since: YESTERDAY, stretchMs: DAY_MS };
  const { keys, truncated } = (await reader.sums({ ...of, ...scope }))!;
  return { requests: keys.map(({ keyId, requests }) => [keyId, requests]), truncated };
};

test("a day is counted although more receipts than are looked at came after it", async () => {
  const yesterday = { requests: [["key_quiet", 3]], truncated: false };
  expect(await usageOf({ until: TODAY })).toEqual(yesterday);
  expect(await usageOf({ until: TODAY, balanceId: null })).toEqual(yesterday);
});

test("a key's usage says that not all was counted where another key's receipts were in the way", async () => {
  expect(await usageOf({ keyId: "key_quiet" as KeyId })).toEqual({ requests: [], truncated: true });
  expect(await usageOf({})).toEqual({ requests: [["key_busy", 50_000]], truncated: true });
});

test("what began before the period is not missing from it", async () => {
  expect(await usageOf({ since: epochMs(TODAY + DAY_MS) })).toEqual({ requests: [], truncated: false });
});
