import type { ReceiptAnswer } from "../../api/receipts.ts";
import { useOwner } from "../owner.ts";
import { Loaded } from "../parts/notice.tsx";
import { ReceiptView } from "../parts/receipt-view.tsx";
import { useResource } from "../resource.ts";

export function ReceiptPage({ id }: { id: string }) {
  const { api } = useOwner();
  const receipt = useResource(
    () => api.get<ReceiptAnswer>(`v1/receipts/${encodeURIComponent(id)}`),
    [api, id],
  );
  return (
    <>
      <p class="crumb">
        <a href="#/receipts">Receipts</a>
      </p>
      <Loaded of={receipt}>
        {(data) => (
          <ReceiptView of={data}>
            <dt>Key</dt>
            <dd>
              <a href={`#/keys/${data.key_id}`} class="mono">
                {data.key_id}
              </a>
            </dd>
          </ReceiptView>
        )}
      </Loaded>
    </>
  );
}
