import { useState } from "preact/hooks";
import type { ClaimAnswer } from "../../api/claims.ts";
import type { OwnAccount } from "../../api/me.ts";
import { Api } from "../api.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { BalanceChanges } from "../parts/change-columns.tsx";
import { CopiedId } from "../parts/copy-button.tsx";
import { ActionForm, TextField, useField } from "../parts/field.tsx";
import { Facts, Head, Note, Section } from "../parts/page.tsx";
import { useAction } from "../resource.ts";
import { browserWallet, signWithWallet } from "../wallet.ts";
import { Deletion, RecoverySecret, Sessions, TakeBack, WaitingClaims } from "./ownership.tsx";

/** Whose balance this is: nobody's, waiting for somebody's word, or an account's. */
export function AccountPage() {
  const { me, by } = useOwner();
  const { account } = me;
  return (
    <>
      <Head
        title="Account"
        lead={by === "session" ? "You are signed in." : "You are using the recovery secret."}
      />
      {account === null ? (
        <Claim />
      ) : account.confirmed === false ? (
        <section class="card stack">
          <p>
            Claimed for {nameOf(account)}. The claim takes effect when the owner of that address confirms it,
            with the link that was sent there.
          </p>
          <TakeBack title="Withdraw the claim" />
        </section>
      ) : (
        <Identity of={account} />
      )}
      <WaitingClaims />
      <RecoverySecret />
      {by === "session" && <Sessions />}
      <BalanceChanges path="v1/changes" />
      <Deletion />
    </>
  );
}

const nameOf = ({ email, wallet, id }: OwnAccount): string => email ?? wallet ?? id;

function Identity({ of }: { of: OwnAccount }) {
  const { by, me } = useOwner();
  return (
    <Section title={nameOf(of)} class="card stack">
      <Facts
        of={[
          ["Account", <CopiedId key="id" label="the id of your account" value={of.id} />],
          of.balances === undefined
            ? null
            : [
                "Balances",
                of.balances.map((id) => (
                  <div key={id}>
                    <CopiedId label="the balance's id" value={id} />
                  </div>
                )),
              ],
        ]}
      />
      {of.undo_until !== undefined && (
        <Note tone="plain">
          The balance <span class="mono">{me.balance_id}</span> was claimed. Until {moment(of.undo_until)},
          its earlier recovery secret can take it back
          {by === "session" && ": add credit only if you set it up yourself"}.
        </Note>
      )}
      {of.undo_until !== undefined && by === "recovery" && <TakeBack title="Undo the claim" />}
    </Section>
  );
}

/** A key of the balance proves control; the address's owner then has the last word. */
function Claim() {
  const { me, secrets, refresh } = useOwner();
  const held = [...secrets.values()].at(-1);
  const email = useField("");
  const pasted = useField("");
  const recovery = useField("");
  const [done, setDone] = useState<ClaimAnswer | null>(null);
  const wallet = browserWallet();
  const claim = useAction(async (identity: () => Promise<object>) => {
    const key = held ?? pasted.value.trim();
    if (key === "")
      throw new Error(
        me.reclaimed
          ? "Paste an API key of the balance."
          : "Paste the first API key of this balance, or the one that replaced it: it proves that the balance is yours.",
      );
    const word = me.reclaimed ? { recovery_secret: recovery.value.trim() } : {};
    setDone(await new Api(key).post<ClaimAnswer>("v1/me/claim", { ...(await identity()), ...word }));
    refresh();
  });
  const byEmail = async () => ({ email: email.value.trim() });
  const byWallet = async () => ({ wallet: await signWithWallet(wallet!) });
  return (
    <Section title="Claim this balance for an account" class="card">
      <p class="soft">
        With an account you can sign in without the recovery secret. Keys, credit and receipts of{" "}
        <span class="mono">{me.balance_id}</span> stay as they are, and your keys keep working.
      </p>
      <ActionForm
        action={{ ...claim, run: () => claim.run(byEmail) }}
        submit="Claim by email"
        buttons={
          wallet !== null && (
            <Button label="Claim with my wallet" disabled={claim.busy} onClick={() => claim.run(byWallet)} />
          )
        }
        after={
          done !== null &&
          !done.confirmed && (
            <Note tone="good">A link is on its way to {done.email}. Open it, and confirm, to finish.</Note>
          )
        }
      >
        {held === undefined && (
          <TextField
            {...(me.reclaimed
              ? { label: "API key of the balance" }
              : {
                  label: "API key from set-up",
                  hint: "The first key of this balance, or the one that replaced it. Keys that were created later cannot claim.",
                })}
            type="password"
            placeholder="or-live-…"
            required
            {...pasted}
          />
        )}
        {me.reclaimed && (
          <TextField
            label="Recovery secret"
            hint="A claim of this balance was taken back, so a key alone cannot claim it again."
            type="password"
            placeholder="or-rec-…"
            required
            {...recovery}
          />
        )}
        <TextField label="Email" type="email" required {...email} />
      </ActionForm>
    </Section>
  );
}
