import type { RecoveryAnswer } from "../../api/ownership.ts";
import { useOwner } from "../owner.ts";
import { useApi } from "../resource.ts";
import { ConfirmButton } from "./dialog.tsx";
import { Section } from "./page.tsx";

/** Replaces the recovery secret of the balance, and shows the new one this once. */
export function RecoverySecret() {
  const api = useApi();
  const { by, me, useRecovery } = useOwner();
  // Named, because a session would otherwise mean the account's own balance.
  const on = by === "session" ? api.on(me.balance_id) : api;
  return (
    <Section title="Recovery secret" class="card stack">
      <p class="soft">
        Its holder controls the balance <span class="mono">{me.balance_id}</span>. If it may have leaked, or
        you do not have it, get a new one: the old one stops working at once.
      </p>
      <div>
        <ConfirmButton
          label="Replace the recovery secret"
          variant="quiet"
          title="Replace the recovery secret"
          yes="Replace it now"
          no="Keep it"
          danger={false}
          act={() => on.post<RecoveryAnswer>("v1/me/recovery")}
          once={({ recovery_url, recovery_secret }) => ({
            title: "Save the new recovery link now",
            label: "recovery link",
            value: recovery_url,
            file: "recovery-link.txt",
            explanation:
              "It is shown only this once. Store it apart from the keys, and give it to no program.",
            // The secret that this tab used has ended.
            onSaved: () => by === "recovery" && useRecovery(recovery_secret),
          })}
        >
          <p>The present secret and its link stop working at once.</p>
        </ConfirmButton>
      </div>
    </Section>
  );
}
