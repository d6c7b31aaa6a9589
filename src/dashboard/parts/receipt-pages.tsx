import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ReceiptPage } from "../../api/receipts.ts";
import { count } from "../format.ts";
import { exportedReceipts, MAX_EXPORTED, RECEIPT_COLUMNS } from "../receipt-export.ts";
import { useAction, useResource } from "../resource.ts";
import { ExportButton } from "./export-button.tsx";
import { Empty, Loaded, Problem } from "./notice.tsx";
import { ReceiptTable } from "./receipt-table.tsx";

/** Receipts, newest first, a page at a time. What is asked for is told by `key`: another one begins anew. */
export function ReceiptPages({ ask, keyNames, empty }: ReceiptPagesProps) {
  const first = useResource(() => ask(null, SHOWN), []);
  const [more, setMore] = useState<readonly ReceiptPage[]>([]);
  const next = useAction(async (before: string) => setMore([...more, await ask(before, SHOWN)]));
  return (
    <Loaded of={first}>
      {(page) => {
        const pages = [page, ...more];
        const rows = pages.flatMap(({ data }) => data);
        const { next_before } = pages.at(-1)!;
        return (
          <>
            {rows.length === 0 && next_before === null ? (
              <Empty title="No receipts here yet">{empty}</Empty>
            ) : (
              <ReceiptTable rows={rows} keyNames={keyNames} />
            )}
            <Problem error={next.error} />
            <div class="row">
              {next_before !== null && (
                <button
                  type="button"
                  class="quiet"
                  disabled={next.busy}
                  onClick={() => next.run(next_before)}
                >
                  Show older
                </button>
              )}
              {rows.length > 0 && (
                <ExportButton
                  label="these receipts"
                  file={`receipts-${new Date().toISOString().slice(0, 10)}`}
                  columns={RECEIPT_COLUMNS}
                  rows={(progress) =>
                    exportedReceipts((before) => ask(before, ASKED_AT_ONCE), keyNames, progress)
                  }
                />
              )}
              {next_before !== null && (
                <span class="hint">The file has the newest {count(MAX_EXPORTED)} at most.</span>
              )}
            </div>
          </>
        );
      }}
    </Loaded>
  );
}

const SHOWN = 20;
/** As many as the API answers with at most. */
const ASKED_AT_ONCE = 100;

interface ReceiptPagesProps {
  readonly ask: (before: string | null, limit: number) => Promise<ReceiptPage>;
  /** By id; of the keys that are known. */
  readonly keyNames: ReadonlyMap<string, string>;
  readonly empty?: ComponentChildren;
}
