import { Confirm } from "../parts/dialog.tsx";
import type { BalanceDialogProps } from "./balance-dialog.ts";
import { useOperator } from "./operator.ts";

/** Takes a claimed balance out of its account, whenever the claim was. */
export function DetachDialog({ of: { id, account_id }, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const detach = async () => {
    await api.post(`admin/accounts/${account_id}/detach`, { balance_id: id });
    onDone();
  };
  return (
    <Confirm title="Detach from its account" yes="Detach now" no="Leave it" act={detach} onClose={onClose}>
      <p>
        The sessions of <span class="mono">{account_id}</span> can do nothing with this balance any more. The
        recovery secret that it was claimed with opens it again. All keys and recovery secrets that derive
        from the claim end.
      </p>
    </Confirm>
  );
}
