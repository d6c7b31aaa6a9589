import { useState } from "preact/hooks";
import { useOwner } from "../owner.ts";
import { Button } from "./button.tsx";
import { Confirm } from "./dialog.tsx";

/** For whoever holds the recovery secret: takes the balance back from whom it was claimed for. */
export function TakeBack({ title }: { title: string }) {
  const { api, refresh } = useOwner();
  const [asking, setAsking] = useState(false);
  const undo = async () => {
    await api.delete("v1/me/claim");
    setAsking(false);
    refresh();
  };
  return (
    <div>
      <Button label={title} look="quiet danger" onClick={() => setAsking(true)} />
      {asking && (
        <Confirm
          title={title}
          yes="Take it back"
          no="Keep the claim"
          act={undo}
          onClose={() => setAsking(false)}
        >
          <p>
            The balance belongs to no account then, and nobody can use it by signing in. Keys that were made
            by signing in end. The others stay as they are: revoke those that you do not know.
          </p>
        </Confirm>
      )}
    </div>
  );
}
