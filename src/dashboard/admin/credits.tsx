import { useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { CreditAnswer } from "../../api/credits.ts";
import { randomName, usd } from "../format.ts";
import { CreditTable } from "../parts/credit-table.tsx";
import { Dialog, DialogButtons } from "../parts/dialog.tsx";
import { Choice, Form, readAmount, TextField } from "../parts/field.tsx";
import { Problem } from "../parts/notice.tsx";
import { useAction, useResource } from "../resource.ts";
import { type BalanceDialogProps, noted } from "./balance-dialog.ts";
import { useOperator } from "./operator.ts";

/** What a balance was credited, and what was taken back; nothing where there was neither. */
export function BalanceCredits({ id, round }: { id: string; round: number }) {
  const api = useOperator();
  const credits = useResource(
    () => api.get<List<CreditAnswer>>(`admin/balances/${id}/credits?limit=200`),
    [api, id, round],
  );
  if (credits.data === null || credits.data.data.length === 0) return <Problem error={credits.error} />;
  return (
    <section aria-labelledby="credits">
      <h2 id="credits">Credit</h2>
      <CreditTable of={credits.data} />
    </section>
  );
}

export function CreditDialog({ of: { id }, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const [amount, setAmount] = useState("");
  const [note, setNote] = useState("");
  // Made with the dialog: sending it twice credits once.
  const [idempotencyKey] = useState(() => randomName("admin-page"));
  const add = useAction(async () => {
    await api.post("admin/credits", {
      balance_id: id,
      amount_usd: readAmount(amount),
      idempotency_key: idempotencyKey,
      ...noted(note),
    });
    onDone();
  });
  return (
    <Dialog title="Add credit" onClose={onClose}>
      <Form onSubmit={add.run}>
        <AmountField value={amount} onValue={setAmount} />
        <NoteField value={note} onValue={setNote} placeholder="Invoice 1041" />
        <Problem error={add.error} />
        <DialogButtons submit="Add credit" busy={add.busy} onClose={onClose} />
      </Form>
    </Dialog>
  );
}

export function DebitDialog({ of: { id, available_usd }, onClose, onDone }: BalanceDialogProps) {
  const api = useOperator();
  const [howMuch, setHowMuch] = useState<string>("some");
  const [amount, setAmount] = useState("");
  const [note, setNote] = useState("");
  const [idempotencyKey] = useState(() => randomName("admin-page"));
  const take = useAction(async () => {
    await api.post("admin/debits", {
      balance_id: id,
      amount_usd: howMuch === "all" ? "all" : readAmount(amount),
      idempotency_key: idempotencyKey,
      ...noted(note),
    });
    onDone();
  });
  return (
    <Dialog title="Take credit back" onClose={onClose}>
      <Form onSubmit={take.run}>
        <p class="soft">
          {usd(available_usd)} can be taken back now. What is spent or held by open requests stays.
        </p>
        <Choice
          label="How much"
          value={howMuch}
          onValue={setHowMuch}
          options={[
            ["some", "an amount"],
            ["all", "all that is available"],
          ]}
        />
        {howMuch === "some" && <AmountField value={amount} onValue={setAmount} />}
        <NoteField value={note} onValue={setNote} placeholder="Refund of invoice 1041" />
        <Problem error={take.error} />
        <DialogButtons submit="Take back" busy={take.busy} danger onClose={onClose} />
      </Form>
    </Dialog>
  );
}

interface TypedFieldProps {
  readonly value: string;
  readonly onValue: (value: string) => void;
}

const AmountField = (typed: TypedFieldProps) => (
  <TextField label="Amount in dollars" inputMode="decimal" required {...typed} />
);

const NoteField = (typed: TypedFieldProps & { readonly placeholder: string }) => (
  <TextField label="Note" hint="The owner of the balance sees this note." {...typed} />
);
