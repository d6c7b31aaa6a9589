import type { ReceiptAnswer, ReceiptPage } from "../../api/receipts.ts";
import { type Api, type Query, withQuery } from "../api.ts";
import { tagsText } from "../format.ts";
import { readKeyNames } from "./key-state.tsx";

/** What the file has of each. */
export const RECEIPT_COLUMNS = [
  "created_at",
  "id",
  "state",
  "error_code",
  "key_id",
  "key_name",
  "model_requested",
  "model",
  "host",
  "tags",
  "surface",
  "stream",
  "input",
  "cache_read",
  "cache_write",
  "output",
  "reasoning",
  "cost_usd",
  "held_usd",
  "write_off_usd",
  "first_token_ms",
  "total_ms",
] as const;

/**
 * Receipts from the newest on, page by page; of more than `MAX_EXPORTED`, the newest. Keys have names where they are
 * listed: `keysAt` is null where they are everybody's.
 */
export async function exportedReceipts(
  api: Api,
  path: string,
  filters: Query,
  keysAt: string | null,
  progress: (read: number) => void,
) {
  const receipts: ReceiptAnswer[] = [];
  let before: string | null = "";
  do {
    const query = { ...filters, limit: RECEIPTS_PER_PAGE, before };
    const page: ReceiptPage = await api.get(withQuery(path, query));
    receipts.push(...page.data);
    progress(receipts.length);
    before = page.next_before;
  } while (before !== null && receipts.length < MAX_EXPORTED);
  const ids = [...new Set(receipts.map(({ key_id }) => key_id))];
  const names = keysAt === null ? null : await readKeyNames(api, keysAt, ids);
  return receipts.map((one) => ({
    ...one,
    ...one.tokens,
    key_name: names?.get(one.key_id),
    tags: tagsText(one.tags ?? {}),
  }));
}

/** A file that a spreadsheet still opens; `GET /v1/receipts` has all. */
export const MAX_EXPORTED = 20_000;
/** As many as the API answers with at most. */
const RECEIPTS_PER_PAGE = "100";
