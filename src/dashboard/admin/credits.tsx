import { useState } from "preact/hooks";
import type { BalanceAnswer } from "../../api/admin.ts";
import type { CreditAnswer } from "../../api/credits.ts";
import type { List } from "../../api/schema.ts";
import { randomName, usd } from "../format.ts";
import { CreditTable } from "../parts/credit-table.tsx";
import { FormDialog } from "../parts/dialog.tsx";
import { Choice, noted, readAmount, TextField, useField } from "../parts/field.tsx";
import { Problem, Section } from "../parts/page.tsx";
import { useApi, useResource } from "../resource.ts";

/** What a balance was credited, and what was taken back; nothing where there was neither. */
export function BalanceCredits({ id, round }: { id: string; round: number }) {
  const path = `admin/balances/${id}/credits?limit=200`;
  const { data, error } = useResource((api) => api.get<List<CreditAnswer>>(path), [path, round]);
  if (data === null || data.data.length === 0) return <Problem error={error} />;
  return (
    <Section title="Credit">
      <CreditTable of={data} />
    </Section>
  );
}

export function CreditDialog({ of: { id } }: { of: BalanceAnswer }) {
  const entry = useEntry(id, "admin/credits");
  return (
    <FormDialog title="Add credit" submit="Add credit" act={() => entry.send()}>
      <TextField {...AMOUNT} {...entry.amount} />
      <TextField {...NOTE} placeholder="Invoice 1041" {...entry.note} />
    </FormDialog>
  );
}

export function DebitDialog({ of: { id, available_usd } }: { of: BalanceAnswer }) {
  const howMuch = useField<"some" | "all">("some");
  const entry = useEntry(id, "admin/debits");
  const take = () => entry.send(howMuch.value === "all" ? "all" : undefined);
  return (
    <FormDialog title="Take credit back" submit="Take back" danger act={take}>
      <p class="soft">
        {usd(available_usd)} can be taken back now. What is spent or held by open requests stays.
      </p>
      <Choice
        label="How much"
        options={[
          ["some", "an amount"],
          ["all", "all that is available"],
        ]}
        {...howMuch}
      />
      {howMuch.value === "some" && <TextField {...AMOUNT} {...entry.amount} />}
      <TextField {...NOTE} placeholder="Refund of invoice 1041" {...entry.note} />
    </FormDialog>
  );
}

const AMOUNT = { label: "Amount in dollars", inputMode: "decimal", required: true } as const;
const NOTE = { label: "Note", hint: "The owner of the balance sees this note." };

/** What both dialogs ask for, and the way to the books. */
function useEntry(balance_id: string, path: string) {
  const api = useApi();
  const amount = useField("");
  const note = useField("");
  // Made with the dialog: sending it twice credits once.
  const [idempotency_key] = useState(() => randomName("admin-page"));
  const send = async (all?: "all") => {
    const amount_usd = all ?? readAmount(amount.value);
    await api.post(path, { balance_id, amount_usd, idempotency_key, ...noted(note.value) });
  };
  return { amount, note, send };
}
