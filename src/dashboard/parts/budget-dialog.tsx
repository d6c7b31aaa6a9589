import { useContext } from "preact/hooks";
import type { BudgetAnswer, BudgetWindow } from "../../api/budgets.ts";
import { roughUsd } from "../format.ts";
import { useApi } from "../resource.ts";
import { DialogEnds } from "./button.tsx";
import { ConfirmButton, FormDialog } from "./dialog.tsx";
import { Choice, readAmount, TextField, useField } from "./field.tsx";

/** How often a cap counts from nothing again. */
const WINDOWS: Record<BudgetWindow, string> = {
  day: "per day",
  week: "per week",
  month: "per month",
  total: "in total",
};

/** How often it does, and for whom. */
export const windowText = ({ window, per }: Pick<BudgetAnswer, "window" | "per">): string =>
  per === null ? WINDOWS[window] : `${WINDOWS[window]}, for each ${per.slice(PER.length)}`;

const PER = "tag:";

/** Makes a budget, or changes one: of the owner's, or of anybody's where the operator is asked to. */
export function BudgetDialog({ of, path, canDelete = true }: BudgetDialogProps) {
  const api = useApi();
  const { done } = useContext(DialogEnds);
  const name = useField(of?.name ?? "");
  const cap = useField(of === null ? "" : String(of.cap_usd));
  const window = useField<BudgetWindow>(of?.window ?? "month");
  const tag = useField("");
  const own = `${path}/${encodeURIComponent(of?.name ?? "")}`;
  const save = async () => {
    const cap_usd = readAmount(cap.value, "The cap must be an amount of 0 or more.");
    const limit = { cap_usd, window: window.value };
    const per = tag.value.trim() === "" ? {} : { per: `${PER}${tag.value.trim()}` };
    if (of === null) await api.post(path, { name: name.value, ...limit, ...per });
    else await api.patch(own, limit);
  };
  return (
    <FormDialog
      title={of === null ? "New budget" : `Budget ${of.name}`}
      submit={of === null ? "Create" : "Save"}
      act={save}
      buttons={
        of !== null &&
        canDelete && (
          <ConfirmButton
            label="Delete"
            title={`Delete the budget ${of.name}`}
            yes="Delete now"
            no="Keep it"
            act={() => api.delete(own)}
            onDone={done}
          >
            <p>
              Its cap of {roughUsd(of.cap_usd)} {windowText(of)} no longer applies, and what was used of it is
              no longer shown. Keys and receipts stay.
            </p>
          </ConfirmButton>
        )
      }
    >
      {of === null && (
        <TextField label="Name" required hint="Letters, digits, dots, dashes and underscores." {...name} />
      )}
      <div class="columns">
        <TextField label="Cap in dollars" inputMode="decimal" required {...cap} />
        {(of === null || of.per === null) && (
          <Choice label="Window" options={Object.entries(WINDOWS)} {...window} />
        )}
      </div>
      {of === null && (
        <TextField
          label="For each value of the tag"
          hint="Such as user: each value of that tag in x-gateway-tags has the cap for itself. Empty: all requests share it."
          {...tag}
        />
      )}
    </FormDialog>
  );
}

interface BudgetDialogProps {
  /** Null for a new one. */
  readonly of: BudgetAnswer | null;
  /** The path of its list. */
  readonly path: string;
  readonly canDelete?: boolean;
}
