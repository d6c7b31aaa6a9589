import { useState } from "preact/hooks";
import type { BudgetAnswer, BudgetWindow } from "../../api/budgets.ts";
import type { Api } from "../api.ts";
import { useAction } from "../resource.ts";
import { Dialog, DialogButtons } from "./dialog.tsx";
import { Choice, Form, readLimit, TextField } from "./field.tsx";
import { Problem } from "./notice.tsx";

/** How often a cap counts from nothing again. */
export const WINDOWS: Record<BudgetWindow, string> = {
  day: "per day",
  week: "per week",
  month: "per month",
  total: "in total",
};

/** Makes a budget, or changes one: of the owner's, or of anybody's where the operator is asked to. */
export function BudgetDialog({ of, api, path, canDelete = true, onClose, onDone }: BudgetDialogProps) {
  const [name, setName] = useState(of?.name ?? "");
  const [cap, setCap] = useState(of === null ? "" : String(of.cap_usd));
  const [window, setWindow] = useState<string>(of?.window ?? "month");
  const save = useAction(async () => {
    const cap_usd = readLimit(cap);
    if (cap_usd === null || cap_usd === undefined) throw new Error("The cap must be an amount of 0 or more.");
    if (of === null) await api.post(path, { name, cap_usd, window });
    else await api.patch(`${path}/${encodeURIComponent(of.name)}`, { cap_usd, window });
    onDone();
  });
  const drop = useAction(async () => {
    await api.delete(`${path}/${encodeURIComponent(of!.name)}`);
    onDone();
  });
  return (
    <Dialog title={of === null ? "New budget" : `Budget ${of.name}`} onClose={onClose}>
      <Form onSubmit={save.run}>
        {of === null && (
          <TextField
            label="Name"
            value={name}
            onValue={setName}
            required
            hint="Letters, digits, dots, dashes and underscores."
          />
        )}
        <div class="columns">
          <TextField label="Cap in dollars" inputMode="decimal" value={cap} onValue={setCap} required />
          <Choice label="Window" value={window} onValue={setWindow} options={Object.entries(WINDOWS)} />
        </div>
        <Problem error={save.error ?? drop.error} />
        <DialogButtons submit={of === null ? "Create" : "Save"} busy={save.busy} onClose={onClose}>
          {of !== null && canDelete && (
            <button type="button" class="quiet danger" disabled={drop.busy} onClick={() => drop.run()}>
              Delete
            </button>
          )}
        </DialogButtons>
      </Form>
    </Dialog>
  );
}

interface BudgetDialogProps {
  /** Null for a new one. */
  readonly of: BudgetAnswer | null;
  readonly api: Api;
  /** Of the list that it is in. */
  readonly path: string;
  readonly canDelete?: boolean;
  readonly onClose: () => void;
  readonly onDone: () => void;
}
