import { useState } from "preact/hooks";
import { useOwner } from "../owner.ts";
import { Button } from "./button.tsx";
import { FormDialog } from "./dialog.tsx";
import { TextField, useField } from "./field.tsx";
import { Section } from "./frame.tsx";

/** Ends an account, or a balance without one, for good. */
export function Deletion() {
  const { by, api, me, leave } = useOwner();
  const [asking, setAsking] = useState(false);
  const typed = useField("");
  const isAccount = by === "session";
  const id = isAccount ? me.account!.id : me.balance_id;
  const what = isAccount ? "account" : "balance";
  const end = async () => {
    await api.delete("v1/me", { confirm: typed.value.trim() });
    leave();
  };
  const close = () => setAsking(false);
  // Only a session of its account deletes what belongs to one.
  if (!isAccount && me.account?.confirmed === true) return null;
  return (
    <Section title={`Delete the ${what}`} class="card stack">
      <p class="soft">
        {isAccount
          ? "Your address and sessions are erased, and all your keys stop working."
          : "Its keys and its recovery secret stop working."}{" "}
        Any credit that is left is lost.
      </p>
      <div>
        <Button label={`Delete the ${what}`} variant="quiet danger" onClick={() => setAsking(true)} />
      </div>
      {asking && (
        <FormDialog
          title={`Delete the ${what} for good`}
          class="stack"
          submit="Delete for good"
          danger
          act={end}
          onClose={close}
        >
          <p>
            To confirm, type its id: <span class="mono">{id}</span>
          </p>
          <TextField label={`Id of the ${what}`} required {...typed} />
        </FormDialog>
      )}
    </Section>
  );
}
