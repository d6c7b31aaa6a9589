import type { OwnedReceiptAnswer } from "../../api/receipts.ts";
import { Loaded } from "../parts/notice.tsx";
import { ReceiptView } from "../parts/receipt-view.tsx";
import { useResource } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** The request that a user reports: why it failed, or what it cost. */
export function ReceiptPage({ id }: { id: string }) {
  const api = useOperator();
  const receipt = useResource(
    () => api.get<OwnedReceiptAnswer>(`admin/receipts/${encodeURIComponent(id)}`),
    [api, id],
  );
  return (
    <>
      <p class="crumb">
        <a href="#/balances">Balances</a>
      </p>
      <Loaded of={receipt}>
        {(data) => (
          <ReceiptView of={data}>
            <dt>Balance</dt>
            <dd>
              <a href={`#/balances/${data.balance_id}`} class="mono">
                {data.balance_id}
              </a>
            </dd>
            <dt>Key</dt>
            <dd class="mono">{data.key_id}</dd>
          </ReceiptView>
        )}
      </Loaded>
    </>
  );
}
