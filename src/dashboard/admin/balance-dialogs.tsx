import type { BalanceAnswer } from "../../api/admin.ts";
import { words } from "../format.ts";
import { Confirm, FormDialog } from "../parts/dialog.tsx";
import { Choice, noted, TextField, useField } from "../parts/field.tsx";
import { useApi } from "../resource.ts";

export function SuspendDialog({ of: { id, account_id } }: { of: BalanceAnswer }) {
  const api = useApi();
  const subject = useField(account_id ?? id);
  const reason = useField(REASONS[0]!);
  const note = useField("");
  const suspend = () =>
    api.post(`admin/accounts/${subject.value}/suspend`, { reason: reason.value, ...noted(note.value) });
  return (
    <FormDialog title="Suspend" submit="Suspend now" danger act={suspend}>
      <p class="soft">Every request from now on is refused, and the error names the reason.</p>
      {account_id !== null && (
        <Choice
          label="What to suspend"
          options={[
            [account_id, "the whole account"],
            [id, "this balance alone"],
          ]}
          {...subject}
        />
      )}
      <Choice label="Reason" options={REASONS} nameOf={words} {...reason} />
      <TextField label="Note" hint="For your records: the owner sees only the reason." {...note} />
    </FormDialog>
  );
}

const REASONS = ["chargeback", "sanctions", "acceptable_use"];

/** Takes a claimed balance out of its account, whenever the claim was. */
export function DetachDialog({ of: { id, account_id } }: { of: BalanceAnswer }) {
  const api = useApi();
  const detach = () => api.post(`admin/accounts/${account_id}/detach`, { balance_id: id });
  return (
    <Confirm title="Detach from its account" yes="Detach now" no="Leave it" act={detach}>
      <p>
        The sessions of <span class="mono">{account_id}</span> can do nothing with this balance any more. The
        recovery secret that it was claimed with opens it again. All keys and recovery secrets that derive
        from the claim end.
      </p>
    </Confirm>
  );
}

/** The prices that a customer is charged; `names` are the configuration's price lists. */
export function PriceListDialog({ of: { id, price_list }, names }: PriceListDialogProps) {
  const api = useApi();
  const chosen = useField(price_list ?? "");
  const all = new Set([...names, ...(price_list === null ? [] : [price_list])]);
  const save = () => api.patch(`admin/balances/${id}`, { price_list: chosen.value || null });
  return (
    <FormDialog title="Price list" submit="Save" act={save}>
      <Choice label="Charged by" all="the models' own prices" options={[...all]} {...chosen} />
      <p class="hint">
        Applies to requests that start from now on. A key with a price list of its own keeps that one.
      </p>
    </FormDialog>
  );
}

interface PriceListDialogProps {
  readonly of: BalanceAnswer;
  readonly names: readonly string[];
}
