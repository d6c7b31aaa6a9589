import type { ConfigAnswer } from "../../api/admin.ts";
import { FormDialog } from "../parts/dialog.tsx";
import { Choice, useField } from "../parts/field.tsx";
import { useGet } from "../resource.ts";
import type { BalanceDialogProps } from "./balance-dialog.ts";
import { useOperator } from "./operator.ts";
import { priceListsIn } from "./price-lists.ts";

/** The prices that a customer is charged. */
export function PriceListDialog({ of: { id, price_list }, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const config = useGet<ConfigAnswer>(api, "admin/config");
  const chosen = useField(price_list ?? "");
  const names = new Set([...priceListsIn(config.data), ...(price_list === null ? [] : [price_list])]);
  const save = async () => {
    await api.patch(`admin/balances/${id}`, { price_list: chosen.value === "" ? null : chosen.value });
    onDone();
  };
  return (
    <FormDialog title="Price list" submit="Save" act={save} onClose={onClose}>
      <Choice
        label="Charged by"
        options={[["", "the models' own prices"], ...[...names].map((name) => [name, name] as const)]}
        {...chosen}
      />
      <p class="hint">
        Applies to requests that start from now on. A key with a price list of its own keeps that one.
      </p>
    </FormDialog>
  );
}
