import type { KeyAnswer } from "../../api/keys.ts";
import type { ReceiptAnswer } from "../../api/receipts.ts";
import { keyName } from "../parts/key-state.tsx";
import { Crumb, Loaded } from "../parts/page.tsx";
import { ReceiptView } from "../parts/receipt-view.tsx";
import { useResource } from "../resource.ts";

export function ReceiptPage({ id }: { id: string }) {
  const found = useResource(
    async (api) => {
      const receipt = await api.get<ReceiptAnswer>(`v1/receipts/${encodeURIComponent(id)}`);
      // A key that ended long ago may be removed, and its receipts are kept.
      const key = await api.get<KeyAnswer>(`v1/keys/${receipt.key_id}`).catch(() => null);
      return { receipt, key };
    },
    [id],
  );
  return (
    <>
      <Crumb to="receipts" name="Receipts" />
      <Loaded of={found}>
        {({ receipt, key }) => (
          <ReceiptView
            of={receipt}
            facts={[
              [
                "Key",
                <a key="key" href={`#/keys/${receipt.key_id}`} class={key === null ? "mono" : ""}>
                  {key === null ? receipt.key_id : keyName(key)}
                </a>,
              ],
            ]}
          />
        )}
      </Loaded>
    </>
  );
}
