import { useOwner } from "../owner.ts";
import { useApi } from "../resource.ts";
import { Button } from "./button.tsx";
import { FormDialog } from "./dialog.tsx";
import { TextField, useField } from "./field.tsx";
import { Section } from "./page.tsx";

/** Ends an account, or a balance without one, for good. */
export function Deletion() {
  const api = useApi();
  const { by, me, leave } = useOwner();
  const typed = useField("");
  const isAccount = by === "session";
  const id = isAccount ? me.account!.id : me.balance_id;
  const what = isAccount ? "account" : "balance";
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
        <Button
          label={`Delete the ${what}`}
          variant="quiet danger"
          onDone={leave}
          dialog={
            <FormDialog
              title={`Delete the ${what} for good`}
              class="stack"
              submit="Delete for good"
              danger
              act={() => api.delete("v1/me", { confirm: typed.value.trim() })}
            >
              <p>
                To confirm, type its id: <span class="mono">{id}</span>
              </p>
              <TextField label={`Id of the ${what}`} required {...typed} />
            </FormDialog>
          }
        />
      </div>
    </Section>
  );
}
