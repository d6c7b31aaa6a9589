import type { ComponentChildren } from "preact";
import type { ReceiptAnswer } from "../../api/receipts.ts";
import type { Api } from "../api.ts";
import { count } from "../format.ts";
import { exportedReceipts, MAX_EXPORTED, receiptColumns } from "../receipt-export.ts";
import { Button } from "./button.tsx";
import { ExportButton } from "./export-button.tsx";
import { readKeyNames, useKeyNames } from "./key-state.tsx";
import { Empty, Loaded, Problem } from "./notice.tsx";
import { usePages } from "./pages.tsx";
import { ReceiptTable } from "./receipt-table.tsx";

/** Receipts, newest first, a page at a time. Where the filters may change, they are its `key`: others begin again. */
export function ReceiptPages({ api, path, filters, keysAt, empty }: ReceiptPagesProps) {
  const query = Object.entries(filters).filter(([, value]) => value !== "");
  const pathOf = (limit: number, more: [string, string][] = []) =>
    `${path}?${new URLSearchParams([...query, ["limit", String(limit)], ...more])}`;
  const receipts = usePages<ReceiptAnswer>(api, pathOf(SHOWN));
  const { hasMore, next } = receipts;
  const shownKeys = (receipts.data ?? []).map(({ key_id }) => key_id);
  const keyNames = useKeyNames(api, keysAt, shownKeys);
  const namesInFile = new Map<string, string>();
  const exported = async (progress: (read: number) => void) => {
    const rows = await exportedReceipts(
      (before) => api.get(pathOf(RECEIPTS_PER_PAGE, before === null ? [] : [["before", before]])),
      progress,
    );
    const ids = [...new Set(rows.map(({ key_id }) => key_id))];
    const names = keysAt === null ? [] : await readKeyNames(api, keysAt, ids);
    for (const [id, name] of names) namesInFile.set(id, name);
    return rows;
  };
  return (
    <Loaded of={receipts}>
      {(rows) => (
        <>
          {rows.length === 0 && !hasMore ? (
            <Empty title="No receipts here yet">{empty}</Empty>
          ) : (
            <ReceiptTable rows={rows} keyNames={keyNames} />
          )}
          <Problem error={next.error} />
          <div class="row">
            {hasMore && <Button label="Show older" action={next} />}
            {rows.length > 0 && (
              <ExportButton
                label="these receipts"
                file={`receipts-${new Date().toISOString().slice(0, 10)}`}
                columns={receiptColumns(namesInFile)}
                rows={exported}
              />
            )}
            {hasMore && <span class="hint">The file has the newest {count(MAX_EXPORTED)} at most.</span>}
          </div>
        </>
      )}
    </Loaded>
  );
}

const SHOWN = 20;
/** As many as the API answers with at most. */
const RECEIPTS_PER_PAGE = 100;

export interface ReceiptPagesProps {
  readonly api: Api;
  readonly path: string;
  /** Query parameters; empty ones are left out. */
  readonly filters: Readonly<Record<string, string>>;
  /** Where the keys of the receipts are listed; null where they are everybody's. */
  readonly keysAt: string | null;
  readonly empty: ComponentChildren;
}
