import { useState } from "preact/hooks";
import { useOwner } from "../owner.ts";
import { useAction } from "../resource.ts";
import { Dialog, DialogButtons } from "./dialog.tsx";
import { Form, TextField } from "./field.tsx";
import { Problem } from "./notice.tsx";

/** Ends an account, or a balance without one, for good. */
export function Deletion() {
  const { by, api, me, leave } = useOwner();
  const [asking, setAsking] = useState(false);
  const [typed, setTyped] = useState("");
  const isAccount = by === "session";
  const id = isAccount ? me.account!.id : me.balance_id;
  const what = isAccount ? "account" : "balance";
  const end = useAction(async () => {
    await api.delete("v1/me", { confirm: typed.trim() });
    leave();
  });
  // Only a session of its account deletes what belongs to one.
  if (!isAccount && me.account?.confirmed === true) return null;
  return (
    <section class="card stack" aria-labelledby="deletion">
      <h2 id="deletion">Delete the {what}</h2>
      <p class="soft">
        {isAccount
          ? "Your address and sessions are erased, and the keys of your balances end."
          : "Its keys and its recovery secret end."}{" "}
        Credit that is left cannot be used any more.
      </p>
      <div>
        <button type="button" class="quiet danger" onClick={() => setAsking(true)}>
          Delete the {what}
        </button>
      </div>
      {asking && (
        <Dialog title={`Delete the ${what} for good`} onClose={() => setAsking(false)}>
          <Form onSubmit={end.run} class="stack">
            <p>
              To confirm, type its id: <span class="mono">{id}</span>
            </p>
            <TextField label={`Id of the ${what}`} value={typed} onValue={setTyped} required />
            <Problem error={end.error} />
            <DialogButtons submit="Delete for good" busy={end.busy} danger onClose={() => setAsking(false)} />
          </Form>
        </Dialog>
      )}
    </section>
  );
}
