import { useState } from "preact/hooks";
import type { OpenSession, RecoveryAnswer } from "../../api/accounts.ts";
import type { WaitingClaim } from "../../api/claims.ts";
import type { List } from "../../api/schema.ts";
import { moment, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { ConfirmButton, FormDialog } from "../parts/dialog.tsx";
import { TextField, useField } from "../parts/field.tsx";
import { actionsOf, type Column, Table } from "../parts/list.tsx";
import { Problem, Section } from "../parts/page.tsx";
import { useAction, useApi, useList, useResource } from "../resource.ts";

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

/** Where somebody is signed in to the account, to end what they do not know. */
export function Sessions() {
  const api = useApi();
  const { leave } = useOwner();
  const sessions = useList<OpenSession>("v1/auth/sessions");
  const columns: Column<OpenSession>[] = [
    ["Signed in", "", ({ signed_in_at }) => moment(signed_in_at)],
    ["Until", "", ({ expires_at }) => moment(expires_at)],
    actionsOf(
      ({ id, signed_in_at, current }) =>
        current ? (
          <span class="soft">this browser</span>
        ) : (
          <ConfirmButton
            label="End"
            variant="link danger"
            title="End the session"
            yes="End it now"
            no="Keep it"
            act={() => api.delete(`v1/auth/sessions/${id}`)}
            onDone={sessions.reload}
          >
            <p>The browser that signed in on {moment(signed_in_at)} is signed out. Keys keep working.</p>
          </ConfirmButton>
        ),
      "End",
      "",
    ),
  ];
  return (
    <Section title="Where you are signed in" class="card stack">
      <Problem error={sessions.error} />
      <Table of={sessions.data ?? []} columns={columns} />
      <div>
        <ConfirmButton
          label="Sign out everywhere"
          title="Sign out everywhere"
          yes="Sign out now"
          no="Stay signed in"
          act={() => api.delete("v1/auth/sessions")}
          onDone={leave}
        >
          <p>All sessions of the account end, this one too. Keys keep working.</p>
        </ConfirmButton>
      </div>
    </Section>
  );
}

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
