import type { BalanceAnswer } from "../../api/admin.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { OwnedReceiptAnswer } from "../../api/receipts.ts";
import { keyName } from "../parts/key-state.tsx";
import { Crumb, Loaded } from "../parts/page.tsx";
import { ReceiptView } from "../parts/receipt-view.tsx";
import { useResource } from "../resource.ts";
import { BalanceId, Person } from "./balance-link.tsx";

/** The request that a user reports: whose it is, why it failed, or what it cost. */
export function ReceiptPage({ id }: { id: string }) {
  const found = useResource(
    async (api) => {
      const receipt = await api.get<OwnedReceiptAnswer>(`admin/receipts/${encodeURIComponent(id)}`);
      const balance = api.get<BalanceAnswer>(`admin/balances/${receipt.balance_id}`);
      // A key that ended long ago may be removed, and its receipts are kept.
      const key = api.get<KeyAnswer>(`admin/keys/${receipt.key_id}`).catch(() => null);
      return { receipt, balance: await balance, key: await key };
    },
    [id],
  );
  return (
    <>
      <Crumb to="requests" name="Requests" />
      <Loaded of={found}>
        {({ receipt, balance, key }) => (
          <ReceiptView
            of={receipt}
            facts={[
              ["Account", <Person key="account" of={balance} />],
              ["Balance", <BalanceId key="balance" id={receipt.balance_id} />],
              [
                "Key",
                <a key="key" href={`#/keys/${receipt.key_id}`}>
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
