import { useState } from "preact/hooks";
import type { AccountAnswer, ClaimAnswer } from "../answers.ts";
import { Api } from "../api.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Form, TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Note, Problem } from "../parts/notice.tsx";
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
        <Note tone="warn">
          <p>
            Claimed for {nameOf(account)}. The claim takes effect when the owner of that address opens the
            link that was sent there.
          </p>
        </Note>
      ) : (
        <Identity of={account} />
      )}
      <Claims />
    </>
  );
}

const nameOf = ({ email, wallet, id }: AccountAnswer): string => email ?? wallet ?? id;

const Identity = ({ of }: { of: AccountAnswer }) => (
  <section class="card">
    <h2>{nameOf(of)}</h2>
    <dl class="facts">
      <dt>Account</dt>
      <dd class="mono">{of.id}</dd>
      {of.balances !== undefined && (
        <>
          <dt>Balances</dt>
          <dd class="mono">{of.balances.join(", ")}</dd>
        </>
      )}
    </dl>
  </section>
);

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
    if (key === "") throw new Error("Paste an API key of this balance: it proves that the balance is yours.");
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
            label="API key of this balance"
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
            <p>A link is on its way to {done.email}. Open it to finish.</p>
          </Note>
        )}
      </Form>
    </section>
  );
}

/** Balances that somebody claimed for this account's address. */
function Claims() {
  const { api, me, refresh } = useOwner();
  const settle = useAction(async (id: string, word: "POST" | "DELETE") => {
    const path = `v1/me/claims/${id}`;
    await (word === "POST" ? api.post(path) : api.delete(path));
    refresh();
  });
  const claims = me.account?.claims ?? [];
  if (claims.length === 0) return null;
  return (
    <section aria-labelledby="claims">
      <h2 id="claims">Claimed for you</h2>
      <p class="soft">
        Confirm only a balance that you know: whoever claimed it for you holds one of its keys.
      </p>
      <Problem error={settle.error} />
      <ul class="cards">
        {claims.map(({ balance_id, claimed_at }) => (
          <li key={balance_id} class="card">
            <p>
              <span class="mono">{balance_id}</span> <span class="soft">· {moment(claimed_at)}</span>
            </p>
            <div class="row">
              <button
                type="button"
                class="primary"
                disabled={settle.busy}
                onClick={() => settle.run(balance_id, "POST")}
              >
                Confirm
              </button>
              <button
                type="button"
                class="quiet"
                disabled={settle.busy}
                onClick={() => settle.run(balance_id, "DELETE")}
              >
                Decline
              </button>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
