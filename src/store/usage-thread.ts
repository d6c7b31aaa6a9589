import { Database } from "bun:sqlite";
import type { UsageAnswer, UsageQuestion } from "./usage.ts";
import { sumUsage, type UsageRow } from "./usage-sums.ts";

/** Reads and adds up receipts, off the event loop: see usage.ts. */
declare const self: Worker;

let db: Database | null = null;

self.onmessage = ({ data: question }: MessageEvent<UsageQuestion>) => {
  try {
    db ??= new Database(question.path, { readonly: true });
    self.postMessage({ id: question.id, sums: answer(db, question) } satisfies UsageAnswer);
  } catch (error) {
    self.postMessage({ id: question.id, problem: String(error) } satisfies UsageAnswer);
  }
};

function answer(books: Database, { balanceId, keyId, since, stretchMs }: UsageQuestion) {
  // The newest only, through an index that ends in the sequence: how long this takes does not grow with the books.
  const newest =
    balanceId === null
      ? "SELECT * FROM ends WHERE ?1 IS NULL ORDER BY seq DESC"
      : "SELECT * FROM ends WHERE balance_id = ?1 ORDER BY seq DESC";
  const rows = books
    .query<UsageRow, [string | null, string | null, number]>(
      `SELECT at, state, charged, body FROM (${newest} LIMIT ${MAX_ROWS + 1})
       WHERE (?2 IS NULL OR key_id = ?2) AND at >= ?3`,
    )
    .iterate(balanceId, keyId, since);
  return sumUsage(rows, stretchMs, MAX_ROWS);
}

/** Receipts that one answer looks at: half a second of this thread. */
const MAX_ROWS = 50_000;
