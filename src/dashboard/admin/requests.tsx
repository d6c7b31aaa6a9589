import type { ConfigAnswer, HostAnswer } from "../../api/admin.ts";
import { Head } from "../parts/frame.tsx";
import { ReceiptBrowser } from "../parts/receipt-browser.tsx";
import { useGet, useList } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** Everybody's receipts, and the way to the one that somebody reports. */
export function Requests() {
  const api = useOperator();
  const config = useGet<ConfigAnswer>(api, "admin/config");
  const hosts = useList<HostAnswer>(api, "admin/hosts");
  return (
    <>
      <Head
        title="Requests"
        lead="Receipts of all balances. Requests that were refused before they began are not listed."
      />
      <ReceiptBrowser
        api={api}
        path="admin/receipts"
        models={(config.data?.models ?? []).map(({ id }) => id)}
        hosts={(hosts.data ?? []).map(({ id }) => id)}
        keysAt={null}
        empty="No request has been made yet."
      />
    </>
  );
}
