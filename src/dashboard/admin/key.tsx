import type { BalanceAnswer } from "../../api/admin.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import { KeyCards, keyFacts } from "../parts/key-facts.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { Crumb, Head, Loaded, Section } from "../parts/page.tsx";
import { ReceiptPages } from "../parts/receipt-pages.tsx";
import { useResource } from "../resource.ts";
import { BalanceLink } from "./balance-link.tsx";
import { LimitsDialog, RevokeKey, useKeyChoices } from "./key-columns.tsx";
import { RoleButton } from "./role-button.tsx";

/** A key of anybody's: whose it is, what it may do and did, and what the operator can do about it. */
export function KeyPage({ id }: { id: string }) {
  const choices = useKeyChoices();
  const found = useResource(
    async (api) => {
      const key = await api.get<KeyAnswer>(`admin/keys/${encodeURIComponent(id)}`);
      return { key, balance: await api.get<BalanceAnswer>(`admin/balances/${key.balance_id}`) };
    },
    [id],
  );
  return (
    <Loaded of={found}>
      {({ key, balance }) => (
        <>
          <Crumb to={`balances/${balance.id}`} name="Balance" />
          <Head title={key.name ?? "Unnamed key"} lead={<KeyState of={key} />}>
            {works(key) && (
              <>
                <RoleButton
                  label="Change limits"
                  dialog={<LimitsDialog of={key} choices={choices} />}
                  onDone={found.reload}
                />
                <RevokeKey of={key} variant="quiet danger" onDone={found.reload} />
              </>
            )}
          </Head>
          <KeyCards
            of={key}
            facts={[
              ["Balance", <BalanceLink key="balance" id={balance.id} of={balance} />],
              ...keyFacts(key),
            ]}
          />
          <Section title="Requests">
            <ReceiptPages
              keysAt={`admin/balances/${key.balance_id}/keys`}
              empty="Requests that were refused before they began are not listed."
              path="admin/receipts"
              filters={{ key_id: key.id }}
            />
          </Section>
        </>
      )}
    </Loaded>
  );
}
