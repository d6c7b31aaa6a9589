import { useState } from "preact/hooks";
import type { RecoveryAnswer } from "../../api/ownership.ts";
import { useOwner } from "../owner.ts";
import { Button } from "./button.tsx";
import { Confirm, SaveOnce } from "./dialog.tsx";
import { Section } from "./frame.tsx";

/** Replaces the recovery secret of the balance, and shows the new one this once. */
export function RecoverySecret() {
  const { by, api, me, useRecovery } = useOwner();
  const [asking, setAsking] = useState(false);
  const [made, setMade] = useState<RecoveryAnswer | null>(null);
  const replace = async () => {
    // Named, because a session would otherwise mean the account's own balance.
    const on = by === "session" ? api.on(me.balance_id) : api;
    setMade(await on.post<RecoveryAnswer>("v1/me/recovery"));
  };
  const close = () => {
    // The secret that this tab used has ended.
    if (made !== null && by === "recovery") useRecovery(made.recovery_secret);
    setAsking(false);
    setMade(null);
  };
  return (
    <Section title="Recovery secret" class="card stack">
      <p class="soft">
        Its holder controls the balance <span class="mono">{me.balance_id}</span>. If it may have leaked, or
        you do not have it, get a new one: the old one stops working at once.
      </p>
      <div>
        <Button label="Replace the recovery secret" onClick={() => setAsking(true)} />
      </div>
      {asking && made === null && (
        <Confirm
          title="Replace the recovery secret"
          yes="Replace it now"
          no="Keep it"
          danger={false}
          act={replace}
          onClose={close}
        >
          <p>The present secret and its link stop working at once.</p>
        </Confirm>
      )}
      {made !== null && (
        <SaveOnce
          title="Save the new recovery link now"
          label="recovery link"
          value={made.recovery_url}
          file="recovery-link.txt"
          explanation="It is shown only this once. Store it apart from the keys, and give it to no program."
          onDone={close}
        />
      )}
    </Section>
  );
}
