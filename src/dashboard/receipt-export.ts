import type { ReceiptAnswer, ReceiptPage } from "../api/receipts.ts";
import { type CsvColumns, usdCell } from "./parts/export-button.tsx";
import { tagsText } from "./tags-text.ts";

export const receiptColumns = (keyNames: ReadonlyMap<string, string>): CsvColumns<ReceiptAnswer> => ({
  created_at: (of) => of.created_at,
  id: (of) => of.id,
  state: (of) => of.state,
  error_code: (of) => of.error_code,
  key_id: (of) => of.key_id,
  key_name: (of) => keyNames.get(of.key_id),
  model_requested: (of) => of.model_requested,
  model: (of) => of.model,
  host: (of) => of.host,
  tags: (of) => tagsText(of.tags ?? {}),
  surface: (of) => of.surface,
  stream: (of) => String(of.stream),
  input: (of) => of.tokens.input,
  cache_read: (of) => of.tokens.cache_read,
  cache_write: (of) => of.tokens.cache_write,
  output: (of) => of.tokens.output,
  reasoning: (of) => of.tokens.reasoning,
  cost_usd: (of) => usdCell(of.cost_usd),
  held_usd: (of) => usdCell(of.held_usd),
  write_off_usd: (of) => usdCell(of.write_off_usd),
  first_token_ms: (of) => of.first_token_ms,
  total_ms: (of) => of.total_ms,
});

/** Receipts from the newest on, page by page; of more than `MAX_EXPORTED`, the newest. */
export async function exportedReceipts(
  fetchPage: (before: string | null) => Promise<ReceiptPage>,
  progress: (read: number) => void,
): Promise<readonly ReceiptAnswer[]> {
  const rows: ReceiptAnswer[] = [];
  let before: string | null = null;
  do {
    const page: ReceiptPage = await fetchPage(before);
    rows.push(...page.data);
    progress(rows.length);
    before = page.next_before;
  } while (before !== null && rows.length < MAX_EXPORTED);
  return rows;
}

/** A file that a spreadsheet still opens; `GET /v1/receipts` has all. */
export const MAX_EXPORTED = 20_000;
