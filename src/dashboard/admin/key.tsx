import type { BalanceAnswer } from "../../api/admin.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import { useDialog } from "../parts/dialog.tsx";
import { Crumb, Facts, Head, Section } from "../parts/frame.tsx";
import { keyFacts } from "../parts/key-facts.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { KeyMeters } from "../parts/meter.tsx";
import { Loaded } from "../parts/notice.tsx";
import { ReceiptPages } from "../parts/receipt-pages.tsx";
import { RevokeDialog } from "../parts/revoke-dialog.tsx";
import { useResource } from "../resource.ts";
import { LimitsDialog } from "./key-table.tsx";
import { useOperator } from "./operator.ts";
import { BalanceLink } from "./person.tsx";
import { RoleButton } from "./role-button.tsx";

/** A key of anybody's: whose it is, what it may do and did, and what the operator can do about it. */
export function KeyPage({ id }: { id: string }) {
  const api = useOperator();
  const found = useResource(async () => {
    const key = await api.get<KeyAnswer>(`admin/keys/${encodeURIComponent(id)}`);
    return { key, balance: await api.get<BalanceAnswer>(`admin/balances/${key.balance_id}`) };
  }, [api, id]);
  const { open, show, ends } = useDialog<"limits" | "revoke">(found.reload);
  return (
    <Loaded of={found}>
      {({ key, balance }) => (
        <>
          <Crumb to={`balances/${balance.id}`} name="Balance" />
          <Head title={key.name ?? "Unnamed key"} lead={<KeyState of={key} />}>
            {works(key) && (
              <>
                <RoleButton label="Change limits" onClick={() => show("limits")} />
                <RoleButton label="Revoke" variant="quiet danger" onClick={() => show("revoke")} />
              </>
            )}
          </Head>
          <div class="grid-2">
            <section class="card" aria-label="Use">
              <h2>Spending</h2>
              <KeyMeters of={key} />
            </section>
            <section class="card" aria-label="Limits">
              <h2>Limits</h2>
              <Facts
                of={[
                  ["Balance", <BalanceLink key="balance" id={balance.id} of={balance} />],
                  ...keyFacts(key),
                ]}
              />
            </section>
          </div>
          <Section title="Requests">
            <ReceiptPages
              keysAt={`admin/balances/${key.balance_id}/keys`}
              empty="Requests that were refused before they began are not listed."
              api={api}
              path="admin/receipts"
              filters={{ key_id: key.id }}
            />
          </Section>
          {open === "limits" && <LimitsDialog of={key} {...ends} />}
          {open === "revoke" && (
            <RevokeDialog of={key} revoke={() => api.post(`admin/keys/${key.id}/revoke`)} {...ends} />
          )}
        </>
      )}
    </Loaded>
  );
}
