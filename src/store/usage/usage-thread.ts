import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import { sql } from "../database/database.ts";
import { keyActivity } from "./key-activity.ts";
import { endOf, postgresReceipts, type ReceiptSource, sqliteReceipts } from "./receipt-source.ts";
import { spendingOf } from "./spending.ts";
import type { UsageQuestion, UsageResult, UsageScope, UsageThreadAnswer } from "./usage.ts";
import { sumUsage, type UsageRow, type UsageSums } from "./usage-sums.ts";

/** Reads and adds up receipts, off the event loop: see usage.ts. */
declare const self: Worker;

let source: ReceiptSource | null = null;

self.onmessage = async ({ data: question }: MessageEvent<UsageQuestion>) => {
  try {
    self.postMessage({ id: question.id, sums: await answer(question) } satisfies UsageThreadAnswer);
  } catch (error) {
    const unreachable = error instanceof StoreUnreachable;
    const problem = unreachable ? error.message : String(error);
    self.postMessage({ id: question.id, problem, unreachable } satisfies UsageThreadAnswer);
  }
};

async function answer({ path, ...query }: UsageQuestion): Promise<UsageResult> {
  source ??= path.includes("://") ? postgresReceipts(path) : sqliteReceipts(path);
  switch (query.kind) {
    case "keys":
      return keyActivity(source, query.of);
    case "sums":
      return sumsOf(source, query.of);
    case "spending":
      return spendingOf(source, query.of);
  }
}

async function sumsOf({ db, newest, unread, each }: ReceiptSource, of: UsageScope): Promise<UsageSums> {
  const { balanceId, keyId, run = null, since, until = null } = of;
  const filter = sql`at >= ${since} AND at < ${endOf(until)} AND ${keyId === null ? sql`TRUE` : sql`key_id = ${keyId}`}
    AND ${run === null ? sql`TRUE` : sql`${db.member("run")} = ${run}`}`;
  const receipts = { balanceId, until, filter, most: MAX_ROWS + 1 };
  const found = newest(sql`at, key_id, state, charged, body`, receipts);
  const rows = await each<UsageRow>(
    sql`SELECT at, key_id AS "keyId", state, charged, body FROM (${found}) AS receipts`,
  );
  const sums = sumUsage(rows, of, MAX_ROWS);
  const behind = unread(receipts);
  const [last] = behind === null ? [] : await db.rows<Pick<UsageRow, "at">>(behind);
  return last !== undefined && last.at >= since ? { ...sums, truncated: true } : sums;
}

/** Receipts that one answer looks at: half a second of this thread. */
const MAX_ROWS = 50_000;
