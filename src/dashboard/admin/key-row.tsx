import { useState } from "preact/hooks";
import type { ConfigAnswer } from "../../api/admin.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import { roughUsd } from "../format.ts";
import { Dialog } from "../parts/dialog.tsx";
import { KeyForm } from "../parts/key-form.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { Loaded } from "../parts/notice.tsx";
import { RevokeDialog } from "../parts/revoke-dialog.tsx";
import { useResource } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** A key of somebody's, with what the operator can do about it. */
export function KeyRow({ of, onChanged }: { of: KeyAnswer; onChanged: () => void }) {
  const api = useOperator();
  const [open, setOpen] = useState<"limits" | "revoke" | null>(null);
  const close = () => setOpen(null);
  const done = () => {
    close();
    onChanged();
  };
  return (
    <tr>
      <td>
        {of.name ?? "Unnamed key"}
        <div class="mono soft small unbroken">{of.prefix}…</div>
        <div class="narrow-only">
          <KeyState of={of} />
        </div>
      </td>
      <td class="wide-only">
        <KeyState of={of} />
      </td>
      <td class="end wide-only">
        {roughUsd(of.used_day_usd)}
        {of.daily_limit_usd !== null && <span class="soft"> of {roughUsd(of.daily_limit_usd)}</span>}
      </td>
      <td class="end">
        {roughUsd(of.used_month_usd)}
        {of.monthly_limit_usd !== null && <span class="soft"> of {roughUsd(of.monthly_limit_usd)}</span>}
      </td>
      <td class="end">
        {works(of) && (
          <div class="row actions">
            <button type="button" class="link" onClick={() => setOpen("limits")}>
              Limits<span class="unseen"> of {of.name ?? of.prefix}</span>
            </button>
            <button type="button" class="link danger" onClick={() => setOpen("revoke")}>
              Revoke<span class="unseen"> {of.name ?? of.prefix}</span>
            </button>
          </div>
        )}
        {open === "limits" && <LimitsDialog of={of} onClose={close} onDone={done} />}
        {open === "revoke" && (
          <RevokeDialog
            of={of}
            revoke={() => api.post(`admin/keys/${of.id}/revoke`)}
            onClose={close}
            onRevoked={done}
          />
        )}
      </td>
    </tr>
  );
}

interface KeyDialogProps {
  readonly of: KeyAnswer;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function LimitsDialog({ of, onClose, onDone }: KeyDialogProps) {
  const api = useOperator();
  const config = useResource(() => api.get<ConfigAnswer>("admin/config"), [api]);
  return (
    <Dialog title="Change limits" onClose={onClose}>
      <Loaded of={config}>
        {({ models }) => (
          <KeyForm
            of={of}
            submit="Save"
            // Budgets are the owner's: those that the key draws from stay.
            choices={{ models: models.map(({ id }) => id), budgets: [] }}
            onCancel={onClose}
            onSubmit={async (spec) => {
              await api.patch(`admin/keys/${of.id}`, spec);
              onDone();
            }}
          />
        )}
      </Loaded>
    </Dialog>
  );
}
