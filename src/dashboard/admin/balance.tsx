import { useState } from "preact/hooks";
import type { KeyAnswer } from "../answers.ts";
import type { List } from "../api.ts";
import { moment, roughUsd, usd, words } from "../format.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Choice, readLimit, TextField } from "../parts/field.tsx";
import { Figure } from "../parts/figure.tsx";
import { Head } from "../parts/frame.tsx";
import { KeyState, works } from "../parts/key-state.tsx";
import { Loaded, Note, Problem } from "../parts/notice.tsx";
import { useAction, useResource } from "../resource.ts";
import type { BalanceRow } from "./answers.ts";
import { useOperator } from "./operator.ts";

/** One balance: its money and keys, credit, and suspension. */
export function Balance({ id }: { id: string }) {
  const api = useOperator();
  const balance = useResource(() => api.get<BalanceRow>(`admin/balances/${id}`), [api, id]);
  const keys = useResource(() => api.get<List<KeyAnswer>>(`admin/balances/${id}/keys`), [api, id]);
  const [open, setOpen] = useState<"credit" | "suspend" | null>(null);
  const done = () => {
    setOpen(null);
    balance.reload();
  };
  const lift = useAction(async () => {
    await api.post(`admin/accounts/${id}/unsuspend`);
    balance.reload();
  });
  return (
    <>
      <p class="crumb">
        <a href="#/balances">Balances</a>
      </p>
      <Loaded of={balance}>
        {(data) => (
          <>
            <Head title="Balance" lead={data.id}>
              <button type="button" class="primary" onClick={() => setOpen("credit")}>
                Add credit
              </button>
              {data.suspended === null ? (
                <button type="button" class="quiet danger" onClick={() => setOpen("suspend")}>
                  Suspend
                </button>
              ) : (
                <button type="button" class="quiet" disabled={lift.busy} onClick={() => lift.run()}>
                  Lift suspension
                </button>
              )}
            </Head>
            <Problem error={lift.error} />
            {data.suspended !== null && (
              <Note tone="warn">
                <p>Suspended: {words(data.suspended)}. Every request is refused.</p>
              </Note>
            )}
            <div class="grid-3">
              <Figure label="Available" value={usd(data.available_usd)} />
              <Figure label="Held by open requests" value={usd(data.held_usd)} />
              <Figure
                label="Account"
                value={data.account_id ?? "none"}
                hint={`since ${moment(data.created_at)}`}
              />
            </div>
            {open === "credit" && <CreditDialog id={id} onClose={() => setOpen(null)} onDone={done} />}
            {open === "suspend" && <SuspendDialog id={id} onClose={() => setOpen(null)} onDone={done} />}
          </>
        )}
      </Loaded>
      <section aria-labelledby="keys">
        <h2 id="keys">Keys</h2>
        <Loaded of={keys}>
          {({ data }) => (
            <div class="card table-card">
              <div class="scroll">
                <table class="rows">
                  <thead>
                    <tr>
                      <th scope="col">Key</th>
                      <th scope="col">State</th>
                      <th scope="col" class="end">
                        This month
                      </th>
                      <th scope="col">
                        <span class="unseen">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {data.map((key) => (
                      <KeyRow key={key.id} of={key} onRevoked={keys.reload} />
                    ))}
                  </tbody>
                </table>
              </div>
            </div>
          )}
        </Loaded>
      </section>
    </>
  );
}

function KeyRow({ of, onRevoked }: { of: KeyAnswer; onRevoked: () => void }) {
  const api = useOperator();
  const [asked, setAsked] = useState(false);
  const revoke = useAction(async () => {
    await api.post(`admin/keys/${of.id}/revoke`);
    setAsked(false);
    onRevoked();
  });
  return (
    <tr>
      <td>
        {of.name ?? "Unnamed key"}
        <div class="mono soft small">{of.prefix}…</div>
      </td>
      <td>
        <KeyState of={of} />
      </td>
      <td class="end">
        {roughUsd(of.used_month_usd)}
        {of.monthly_limit_usd !== null && <span class="soft"> of {roughUsd(of.monthly_limit_usd)}</span>}
      </td>
      <td class="end">
        {works(of) && (
          <button type="button" class="link danger" onClick={() => setAsked(true)}>
            Revoke<span class="unseen"> {of.name ?? of.prefix}</span>
          </button>
        )}
        {asked && (
          <Dialog title="Revoke the key" onClose={() => setAsked(false)}>
            <p>
              <strong>{of.name ?? of.prefix}</strong> stops with its very next request, for good.
            </p>
            <Problem error={revoke.error} />
            <div class="row">
              <button
                type="button"
                class="primary danger"
                disabled={revoke.busy}
                onClick={() => revoke.run()}
              >
                Revoke now
              </button>
              <button type="button" class="quiet" onClick={() => setAsked(false)}>
                Keep it
              </button>
            </div>
          </Dialog>
        )}
      </td>
    </tr>
  );
}

interface BalanceDialogProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function CreditDialog({ id, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const [amount, setAmount] = useState("");
  const [note, setNote] = useState("");
  // Made with the dialog: sending it twice credits once.
  const [idempotencyKey] = useState(randomName);
  const add = useAction(async () => {
    const amount_usd = readLimit(amount);
    if (amount_usd === null || amount_usd === undefined)
      throw new Error("The amount must be a number of dollars.");
    await api.post("admin/credits", {
      balance_id: id,
      amount_usd,
      idempotency_key: idempotencyKey,
      ...(note.trim() === "" ? {} : { note: note.trim() }),
    });
    onDone();
  });
  return (
    <Dialog title="Add credit" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.run();
        }}
      >
        <TextField
          label="Amount in dollars"
          inputMode="decimal"
          value={amount}
          onValue={setAmount}
          required
        />
        <TextField
          label="Note"
          value={note}
          onValue={setNote}
          placeholder="Invoice 1041"
          hint="The owner of the balance sees it."
        />
        <Problem error={add.error} />
        <div class="row">
          <button type="submit" class="primary" disabled={add.busy}>
            Add credit
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Not `randomUUID`, which browsers offer on https only. */
function randomName(): string {
  return `admin-page-${[...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(36)).join("")}`;
}

function SuspendDialog({ id, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const [reason, setReason] = useState<string>(REASONS[0]);
  const suspend = useAction(async () => {
    await api.post(`admin/accounts/${id}/suspend`, { reason });
    onDone();
  });
  return (
    <Dialog title="Suspend" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          suspend.run();
        }}
      >
        <p class="soft">From the next request on, every key is refused, and the answer names the reason.</p>
        <Choice
          label="Reason"
          value={reason}
          onValue={setReason}
          options={REASONS.map((one) => [one, words(one)] as const)}
        />
        <Problem error={suspend.error} />
        <div class="row">
          <button type="submit" class="primary danger" disabled={suspend.busy}>
            Suspend now
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const REASONS = ["chargeback", "sanctions", "acceptable_use"] as const;
