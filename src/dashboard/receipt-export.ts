import type { ReceiptAnswer, ReceiptPage } from "../api/receipts.ts";
import type { Cell } from "../units/csv.ts";
import { usdCell } from "./parts/export-button.tsx";

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

/** Receipts from the newest on, page by page; of more than `MAX_EXPORTED`, the newest. */
export async function exportedReceipts(
  ask: (before: string | null) => Promise<ReceiptPage>,
  keyNames: ReadonlyMap<string, string>,
  progress: (read: number) => void,
): Promise<readonly (readonly Cell[])[]> {
  const rows: (readonly Cell[])[] = [];
  let before: string | null = null;
  do {
    const page: ReceiptPage = await ask(before);
    for (const receipt of page.data) rows.push(cellsOf(receipt, keyNames));
    progress(rows.length);
    before = page.next_before;
  } while (before !== null && rows.length < MAX_EXPORTED);
  return rows;
}

/** A file that a spreadsheet still opens; `GET /v1/receipts` has all. */
export const MAX_EXPORTED = 20_000;

const cellsOf = (of: ReceiptAnswer, keyNames: ReadonlyMap<string, string>): readonly Cell[] => [
  of.created_at,
  of.id,
  of.state,
  of.error_code,
  of.key_id,
  keyNames.get(of.key_id) ?? null,
  of.model_requested,
  of.model,
  of.host,
  of.surface,
  String(of.stream),
  of.tokens.input,
  of.tokens.cache_read,
  of.tokens.cache_write,
  of.tokens.output,
  of.tokens.reasoning,
  usdCell(of.cost_usd),
  usdCell(of.held_usd),
  usdCell(of.write_off_usd),
  of.first_token_ms,
  of.total_ms,
];
