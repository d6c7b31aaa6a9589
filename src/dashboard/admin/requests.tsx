import type { HostAnswer } from "../../api/admin.ts";
import { Head } from "../parts/page.tsx";
import { ReceiptBrowser } from "../parts/receipt-browser.tsx";
import { useList } from "../resource.ts";
import { useKeyChoices } from "./key-columns.tsx";

/** Everybody's receipts, and the way to the one that somebody reports. */
export function Requests() {
  const { models } = useKeyChoices();
  const hosts = useList<HostAnswer>("admin/hosts");
  return (
    <>
      <Head
        title="Requests"
        lead="Receipts of all balances. Requests that were refused before they began are not listed."
      />
      <ReceiptBrowser
        path="admin/receipts"
        models={models}
        hosts={(hosts.data ?? []).map(({ id }) => id)}
        keysAt={null}
        empty="No request has been made yet."
      />
    </>
  );
}
