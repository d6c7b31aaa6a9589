import type { EntryAnswer } from "../../api/catalog.ts";
import type { UsageAnswer } from "../../api/usage.ts";
import { Head } from "../parts/page.tsx";
import { ReceiptBrowser } from "../parts/receipt-browser.tsx";
import { useGet, useList } from "../resource.ts";

/** What became of every request, newest first. */
export function Receipts() {
  const models = useList<EntryAnswer>("v1/catalog");
  // Owners know hosts by what has served them.
  const usage = useGet<UsageAnswer>("v1/usage?period=month");
  return (
    <>
      <Head
        title="Receipts"
        lead="Each request has a receipt: the model that was requested, the host that served it, and the cost."
      />
      <ReceiptBrowser
        path="v1/receipts"
        models={(models.data ?? []).map(({ id }) => id)}
        hosts={[...new Set((usage.data?.routes ?? []).map(({ host }) => host))]}
        keysAt="v1/keys"
        empty={
          <>
            Send a request, for instance from the <a href="#/playground">playground</a>.
          </>
        }
      />
    </>
  );
}
