import type { ComponentChildren } from "preact";
import type { ReceiptAnswer } from "../../api/receipts.ts";
import type { Query } from "../api.ts";
import { count } from "../format.ts";
import { useApi } from "../resource.ts";
import { Button } from "./button.tsx";
import { ExportButton } from "./export-button.tsx";
import { usePages } from "./list.tsx";
import { Empty, Loaded, Problem } from "./page.tsx";
import { exportedReceipts, MAX_EXPORTED, RECEIPT_COLUMNS } from "./receipt-export.ts";
import { ReceiptTable } from "./receipt-table.tsx";

/** Receipts, newest first, a page at a time. Where the filters may change, they are its `key`: others begin again. */
export function ReceiptPages({ path, filters, keysAt, empty }: ReceiptPagesProps) {
  const api = useApi();
  const receipts = usePages<ReceiptAnswer>(path, { ...filters, limit: SHOWN });
  const { hasMore, next } = receipts;
  return (
    <Loaded of={receipts}>
      {(rows) => (
        <>
          {rows.length === 0 && !hasMore ? (
            <Empty title="No receipts here yet">{empty}</Empty>
          ) : (
            <ReceiptTable rows={rows} keysAt={keysAt} />
          )}
          <Problem error={next.error} />
          <div class="row">
            {hasMore && <Button label="Show older" action={next} />}
            {rows.length > 0 && (
              <ExportButton
                label="these receipts"
                file={`receipts-${new Date().toISOString().slice(0, 10)}`}
                columns={RECEIPT_COLUMNS}
                rows={(progress) => exportedReceipts(api, path, filters, keysAt, progress)}
              />
            )}
            {hasMore && <span class="hint">The file has the newest {count(MAX_EXPORTED)} at most.</span>}
          </div>
        </>
      )}
    </Loaded>
  );
}

const SHOWN = "20";

export interface ReceiptPagesProps {
  readonly path: string;
  readonly filters: Query;
  /** Where the keys of the receipts are listed; null where they are everybody's. */
  readonly keysAt: string | null;
  readonly empty: ComponentChildren;
}
