import type { List } from "../../api/answers.ts";
import type { WaitingClaim } from "../../api/claims.ts";
import { moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { useAction, useApi, useResource } from "../resource.ts";
import { Button } from "./button.tsx";
import { ConfirmButton } from "./dialog.tsx";
import { Problem, Section } from "./page.tsx";

/** Balances that somebody claimed for this account's address, with what tells one's own from a stranger's. */
export function WaitingClaims() {
  const { by, me } = useOwner();
  const waiting = me.account?.claims ?? [];
  return by === "session" && waiting.length > 0 ? <Review /> : null;
}

function Review() {
  const api = useApi();
  const { me, refresh } = useOwner();
  const claims = useResource(() => api.get<List<WaitingClaim>>("v1/me/claims"), [me]);
  const confirm = useAction(async (id: string) => {
    await api.post(`v1/me/claims/${id}`);
    refresh();
  });
  return (
    <Section title="Claimed for you">
      <p class="soft">
        Confirm only a balance that you set up: the person who claimed it for you holds one of its keys.
      </p>
      <Problem error={confirm.error ?? claims.error} />
      <ul class="cards">
        {claims.data?.data.map((claim) => (
          <li key={claim.balance_id} class="card">
            <p>
              <span class="mono">{claim.balance_id}</span>{" "}
              <span class="soft">
                · {usd(claim.balance_usd)} · set up {moment(claim.balance_created_at)}, claimed{" "}
                {moment(claim.claimed_at)}, waits until {moment(claim.expires_at)}
              </span>
            </p>
            <div class="row">
              <Button
                label="Confirm"
                variant="primary"
                disabled={confirm.busy}
                onClick={() => confirm.run(claim.balance_id)}
              />
              <ConfirmButton
                label="Decline"
                title="Decline the claim"
                yes="Decline it"
                no="Not now"
                act={() => api.delete(`v1/me/claims/${claim.balance_id}`)}
                onDone={refresh}
              >
                <p>
                  <span class="mono">{claim.balance_id}</span> stays with the holder of its recovery secret,
                  and the claim ends.
                </p>
              </ConfirmButton>
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}
