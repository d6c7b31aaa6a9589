import { useState } from "preact/hooks";
import { useOwner } from "../owner.ts";
import { useApi } from "../resource.ts";
import { ConfirmButton } from "./dialog.tsx";

/** For the holder of the recovery secret: takes the balance back from the account that claimed it. */
export function TakeBack({ title }: { title: string }) {
  const api = useApi();
  const { refresh } = useOwner();
  const [revokeKeys, setRevokeKeys] = useState(false);
  return (
    <div>
      <ConfirmButton
        label={title}
        title={title}
        yes="Take it back"
        no="Keep the claim"
        act={() => api.delete("v1/me/claim", { revoke_keys: revokeKeys })}
        onDone={refresh}
      >
        <p>
          The balance then belongs to no account, and nobody can use it by signing in. Everything that was
          created by signing in ends: keys, recovery secrets, and whatever those created. Nobody can claim the
          balance again without your recovery secret.
        </p>
        <label class="check">
          <input
            type="checkbox"
            checked={revokeKeys}
            onChange={(event) => setRevokeKeys(event.currentTarget.checked)}
          />
          <span>Also revoke the other keys of the balance</span>
        </label>
        <p class="soft small">Otherwise they keep working: revoke those that somebody else may have.</p>
      </ConfirmButton>
    </div>
  );
}
