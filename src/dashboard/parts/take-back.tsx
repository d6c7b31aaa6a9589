import { useState } from "preact/hooks";
import { useOwner } from "../owner.ts";
import { useAction } from "../resource.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./notice.tsx";

/** For whoever holds the recovery secret: takes the balance back from whom it was claimed for. */
export function TakeBack({ title }: { title: string }) {
  const { api, refresh } = useOwner();
  const [asking, setAsking] = useState(false);
  const undo = useAction(async () => {
    await api.delete("v1/me/claim");
    setAsking(false);
    refresh();
  });
  return (
    <div>
      <button type="button" class="quiet danger" onClick={() => setAsking(true)}>
        {title}
      </button>
      {asking && (
        <Dialog title={title} onClose={() => setAsking(false)}>
          <p>
            The balance belongs to no account then, and nobody can use it by signing in. Keys that were made
            by signing in end. The others stay as they are: revoke those that you do not know.
          </p>
          <Problem error={undo.error} />
          <div class="row">
            <button type="button" class="primary danger" disabled={undo.busy} onClick={() => undo.run()}>
              Take it back
            </button>
            <button type="button" class="quiet" onClick={() => setAsking(false)}>
              Keep the claim
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
