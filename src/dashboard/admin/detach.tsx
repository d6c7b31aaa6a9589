import { Dialog } from "../parts/dialog.tsx";
import { Problem } from "../parts/notice.tsx";
import { useAction } from "../resource.ts";
import type { BalanceDialogProps } from "./balance-dialog.ts";
import { useOperator } from "./operator.ts";

/** Takes a claimed balance out of its account, whenever the claim was. */
export function DetachDialog({ of: { id, account_id }, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const detach = useAction(async () => {
    await api.post(`admin/accounts/${account_id}/detach`, { balance_id: id });
    onDone();
  });
  return (
    <Dialog title="Detach from its account" onClose={onClose}>
      <p>
        The sessions of <span class="mono">{account_id}</span> can do nothing with this balance any more. The
        recovery secret that it was claimed with opens it again. Keys that they made end.
      </p>
      <Problem error={detach.error} />
      <div class="row">
        <button type="button" class="primary danger" disabled={detach.busy} onClick={() => detach.run()}>
          Detach now
        </button>
        <button type="button" class="quiet" onClick={onClose}>
          Leave it
        </button>
      </div>
    </Dialog>
  );
}
