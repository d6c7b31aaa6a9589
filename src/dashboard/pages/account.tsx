import { useState } from "preact/hooks";
import type { ClaimAnswer } from "../../api/claims.ts";
import type { OwnAccount } from "../../api/me.ts";
import { Api } from "../api.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Deletion } from "../parts/deletion.tsx";
import { Form, TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Note, Problem } from "../parts/notice.tsx";
import { RecoverySecret } from "../parts/recovery-secret.tsx";
import { Sessions } from "../parts/sessions.tsx";
import { TakeBack } from "../parts/take-back.tsx";
import { WaitingClaims } from "../parts/waiting-claims.tsx";
import { useAction } from "../resource.ts";
import { browserWallet, signWithWallet } from "../wallet.ts";

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
      <Deletion />
    </>
  );
}

const nameOf = ({ email, wallet, id }: OwnAccount): string => email ?? wallet ?? id;

function Identity({ of }: { of: OwnAccount }) {
  const { by, me } = useOwner();
  return (
    <section class="card stack">
      <h2>{nameOf(of)}</h2>
      <dl class="facts">
        <dt>Account</dt>
        <dd class="mono">{of.id}</dd>
        {of.balances !== undefined && (
          <>
            <dt>Balances</dt>
            <dd class="mono">
              {of.balances.map((id) => (
                <div key={id}>{id}</div>
              ))}
            </dd>
          </>
        )}
      </dl>
      {of.undo_until !== undefined && (
        <Note tone="plain">
          <p>
            The balance <span class="mono">{me.balance_id}</span> was claimed. Until {moment(of.undo_until)},
            its recovery secret from before takes it back
            {by === "session" && ": add credit only if you set it up yourself"}.
          </p>
        </Note>
      )}
      {of.undo_until !== undefined && by === "recovery" && <TakeBack title="Undo the claim" />}
    </section>
  );
}

/** A key of the balance proves control; the address's owner then has the last word. */
function Claim() {
  const { me, secrets, refresh } = useOwner();
  const held = [...secrets.values()].at(-1);
  const [email, setEmail] = useState("");
  const [pasted, setPasted] = useState("");
  const [done, setDone] = useState<ClaimAnswer | null>(null);
  const wallet = browserWallet();
  const claim = useAction(async (identity: () => Promise<object>) => {
    const key = held ?? pasted.trim();
    if (key === "")
      throw new Error(
        "Paste the API key from set-up, or one that it was rotated to: it proves that the balance is yours.",
      );
    setDone(await new Api(key).post<ClaimAnswer>("v1/me/claim", await identity()));
    refresh();
  });
  return (
    <section class="card">
      <h2>Claim this balance for an account</h2>
      <p class="soft">
        With an account you can sign in without the recovery secret. Keys, credit and receipts of{" "}
        {me.balance_id} stay as they are, and your keys keep working.
      </p>
      <Form onSubmit={() => claim.run(async () => ({ email: email.trim() }))}>
        {held === undefined && (
          <TextField
            label="API key from set-up"
            hint="Or one that it was rotated to. Keys that an owner made cannot claim."
            type="password"
            value={pasted}
            onValue={setPasted}
            placeholder="or-live-…"
            required
          />
        )}
        <TextField label="Email" type="email" value={email} onValue={setEmail} required />
        <Problem error={claim.error} />
        <div class="row">
          <button type="submit" class="primary" disabled={claim.busy}>
            Claim by email
          </button>
          {wallet !== null && (
            <button
              type="button"
              class="quiet"
              disabled={claim.busy}
              onClick={() => claim.run(async () => ({ wallet: await signWithWallet(wallet) }))}
            >
              Claim with my wallet
            </button>
          )}
        </div>
        {done !== null && !done.confirmed && (
          <Note tone="good">
            <p>A link is on its way to {done.email}. Open it, and confirm, to finish.</p>
          </Note>
        )}
      </Form>
    </section>
  );
}
