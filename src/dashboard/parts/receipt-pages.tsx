import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ReceiptPage } from "../../api/receipts.ts";
import { useAction, useResource } from "../resource.ts";
import { Empty, Loaded, Problem } from "./notice.tsx";
import { ReceiptTable } from "./receipt-table.tsx";

/** Receipts, newest first, a page at a time. What is asked for is told by `key`: another one begins anew. */
export function ReceiptPages({ ask, keyNames, empty }: ReceiptPagesProps) {
  const first = useResource(() => ask(null), []);
  const [more, setMore] = useState<readonly ReceiptPage[]>([]);
  const next = useAction(async (before: string) => setMore([...more, await ask(before)]));
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
            {next_before !== null && (
              <button type="button" class="quiet" disabled={next.busy} onClick={() => next.run(next_before)}>
                Show older
              </button>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

interface ReceiptPagesProps {
  readonly ask: (before: string | null) => Promise<ReceiptPage>;
  /** By id; of the keys that are known. */
  readonly keyNames: ReadonlyMap<string, string>;
  readonly empty?: ComponentChildren;
}
