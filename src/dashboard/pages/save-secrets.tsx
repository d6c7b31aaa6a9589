import { useEffect, useState } from "preact/hooks";
import type { SetUpAnswer } from "../../api/keys.ts";
import { Button } from "../parts/button.tsx";
import { Entrance } from "../parts/page.tsx";
import { Secret } from "../parts/secret.tsx";

/**
 * Both secrets of a new balance, this once. Nothing else can be reached, and nothing about payment is shown,
 * before both are confirmed as saved: without them the balance could never be reached again.
 */
export function SaveSecrets({ made, onSaved }: { made: SetUpAnswer; onSaved: () => void }) {
  const [keySaved, setKeySaved] = useState(false);
  const [recoverySaved, setRecoverySaved] = useState(false);
  const both = keySaved && recoverySaved;
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);
  return (
    <Entrance
      title="Save both secrets now"
      lead="They are shown only this once. The gateway stores only their hashes: if you lose both, nobody can restore them."
    >
      <div class="card stack">
        <Secret
          label="API key"
          value={made.key}
          file="api-key.txt"
          explanation="Your programs send it with every request."
          saved={keySaved}
          onSaved={setKeySaved}
        />
        <Secret
          label="recovery link"
          value={made.recovery_url}
          file="recovery-link.txt"
          explanation="It controls the balance: it can raise limits, and replace a key that is lost or leaked. Store it apart from the key, and give it to no program."
          saved={recoverySaved}
          onSaved={setRecoverySaved}
        />
        <div>
          <Button label="Continue" variant="primary" disabled={!both} onClick={onSaved} />
          {!both && <p class="hint">Confirm both to continue.</p>}
        </div>
      </div>
    </Entrance>
  );
}
