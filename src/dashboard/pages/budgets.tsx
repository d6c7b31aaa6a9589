import { useState } from "preact/hooks";
import type { BudgetAnswer, BudgetWindow } from "../answers.ts";
import type { List } from "../api.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Dialog, DialogButtons } from "../parts/dialog.tsx";
import { Choice, Form, readLimit, TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Meter } from "../parts/meter.tsx";
import { Empty, Loaded, Problem } from "../parts/notice.tsx";
import { useAction, useResource } from "../resource.ts";

/** Named spending caps that several keys can share. */
export function Budgets() {
  const { api } = useOwner();
  const budgets = useResource(() => api.get<List<BudgetAnswer>>("v1/budgets"), [api]);
  const [editing, setEditing] = useState<BudgetAnswer | "new" | null>(null);
  const close = () => setEditing(null);
  return (
    <>
      <Head title="Budgets" lead="A cap by name, which any number of keys draw from together.">
        <button type="button" class="primary" onClick={() => setEditing("new")}>
          New budget
        </button>
      </Head>
      <Loaded of={budgets}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No budgets yet">
              <p class="soft">Create one, then pick it in the limits of a key.</p>
            </Empty>
          ) : (
            <ul class="cards">
              {data.map((budget) => (
                <li key={budget.id} class="card key-card">
                  <div class="key-names">
                    <h2>{budget.name}</h2>
                    <p class="soft small">
                      {WINDOWS[budget.window]}
                      {budget.resets_at !== null && ` · starts anew ${moment(budget.resets_at)}`}
                    </p>
                    <button type="button" class="link" onClick={() => setEditing(budget)}>
                      Change<span class="unseen"> {budget.name}</span>
                    </button>
                  </div>
                  <div class="key-meters">
                    <Meter label="Used" used={budget.used_usd} held={budget.held_usd} cap={budget.cap_usd} />
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {editing !== null && (
        <BudgetDialog
          of={editing === "new" ? null : editing}
          onClose={close}
          onDone={() => {
            close();
            budgets.reload();
          }}
        />
      )}
    </>
  );
}

const WINDOWS: Record<BudgetWindow, string> = {
  day: "each day",
  week: "each week",
  month: "each month",
  total: "once, for ever",
};

function BudgetDialog({ of, onClose, onDone }: BudgetDialogProps) {
  const { api } = useOwner();
  const [name, setName] = useState(of?.name ?? "");
  const [cap, setCap] = useState(of === null ? "" : String(of.cap_usd));
  const [window, setWindow] = useState<string>(of?.window ?? "month");
  const save = useAction(async () => {
    const cap_usd = readLimit(cap);
    if (cap_usd === null || cap_usd === undefined) throw new Error("The cap must be an amount of 0 or more.");
    if (of === null) await api.post("v1/budgets", { name, cap_usd, window });
    else await api.patch(`v1/budgets/${encodeURIComponent(of.name)}`, { cap_usd, window });
    onDone();
  });
  const drop = useAction(async () => {
    await api.delete(`v1/budgets/${encodeURIComponent(of!.name)}`);
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
          <Choice label="Counts" value={window} onValue={setWindow} options={Object.entries(WINDOWS)} />
        </div>
        <Problem error={save.error ?? drop.error} />
        <DialogButtons submit={of === null ? "Create" : "Save"} busy={save.busy} onClose={onClose}>
          {of !== null && (
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
  readonly onClose: () => void;
  readonly onDone: () => void;
}
