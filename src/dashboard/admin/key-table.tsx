import type { ConfigAnswer } from "../../api/admin.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import { type DialogEnds, useDialog } from "../parts/dialog.tsx";
import { KeyDialog } from "../parts/key-dialog.tsx";
import { Spent } from "../parts/key-list.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { RevokeDialog } from "../parts/revoke-dialog.tsx";
import { type Column, TableCard, Unseen } from "../parts/table.tsx";
import { useGet } from "../resource.ts";
import { useOperator } from "./operator.ts";
import { priceListsIn } from "./price-lists.ts";
import { RoleButton } from "./role-button.tsx";

/** Keys of somebody's, with what the operator can do about them. */
export function KeyTable({ of, onChanged }: { of: readonly KeyAnswer[]; onChanged: () => void }) {
  const actions: Column<KeyAnswer> = [
    <Unseen key="actions">Actions</Unseen>,
    "end",
    (key) => <Actions of={key} onChanged={onChanged} />,
  ];
  return <TableCard of={of} by={({ id }) => id} columns={[...COLUMNS, actions]} />;
}

const COLUMNS: readonly Column<KeyAnswer>[] = [
  [
    "Key",
    "",
    (key) => (
      <>
        <a href={`#/keys/${key.id}`}>{key.name ?? "Unnamed key"}</a>
        <div class="mono soft small unbroken">{key.prefix}…</div>
        {key.price_list !== null && <div class="soft small">Price list {key.price_list}</div>}
      </>
    ),
  ],
  ["State", "", (key) => <KeyState of={key} />],
  ["Today", "end", (key) => <Spent used={key.used_day_usd} of={key.daily_limit_usd} />],
  ["This month", "end", (key) => <Spent used={key.used_month_usd} of={key.monthly_limit_usd} />],
];

function Actions({ of, onChanged }: { of: KeyAnswer; onChanged: () => void }) {
  const api = useOperator();
  const { open, show, ends } = useDialog<"limits" | "revoke">(onChanged);
  const name = of.name ?? of.prefix;
  return (
    <>
      {works(of) && (
        <div class="row actions">
          <RoleButton label="Limits" about={`of ${name}`} variant="link" onClick={() => show("limits")} />
          <RoleButton label="Revoke" about={name} variant="link danger" onClick={() => show("revoke")} />
        </div>
      )}
      {open === "limits" && <LimitsDialog of={of} {...ends} />}
      {open === "revoke" && (
        <RevokeDialog of={of} revoke={() => api.post(`admin/keys/${of.id}/revoke`)} {...ends} />
      )}
    </>
  );
}

export function LimitsDialog({ of, ...ends }: DialogEnds & { readonly of: KeyAnswer }) {
  const api = useOperator();
  const config = useGet<ConfigAnswer>(api, "admin/config");
  const models = (config.data?.models ?? []).map(({ id }) => id);
  // Budgets are the owner's: those that the key draws from stay.
  const choices = { models, budgets: [], priceLists: priceListsIn(config.data) };
  return (
    <KeyDialog of={of} choices={choices} save={(spec) => api.patch(`admin/keys/${of.id}`, spec)} {...ends} />
  );
}
