import { useState } from "preact/hooks";
import type { SessionAnswer } from "../../api/accounts.ts";
import { Api } from "../api.ts";
import { Form, TextField } from "../parts/field.tsx";
import { Note, Problem } from "../parts/notice.tsx";
import { useAction } from "../resource.ts";
import { sessionVisit, type Visit } from "../visit.ts";
import { browserWallet, signWithWallet } from "../wallet.ts";

/** By a link to a mailbox, or with a wallet. Nobody chooses a password. */
export function SignIn({ onVisit }: { onVisit: (visit: Visit) => void }) {
  const [email, setEmail] = useState("");
  const [sentTo, setSentTo] = useState<string | null>(null);
  const send = useAction(async () => {
    await new Api(null).post("v1/auth/email", { email: email.trim() });
    setSentTo(email.trim());
  });
  const wallet = browserWallet();
  const sign = useAction(async () => {
    const signed = await signWithWallet(wallet!);
    const { session } = await new Api(null).post<SessionAnswer>("v1/auth/wallet/verify", signed);
    onVisit(await sessionVisit(session));
  });
  return (
    <section class="card" aria-labelledby="sign-in">
      <h2 id="sign-in">Sign in</h2>
      <p class="soft">To an account, with a link by email{wallet !== null && " or with your wallet"}.</p>
      {sentTo === null ? (
        <Form onSubmit={send.run}>
          <TextField label="Email" type="email" value={email} onValue={setEmail} required />
          <Problem error={send.error} />
          <div class="row">
            <button type="submit" class="quiet" disabled={send.busy}>
              Email me a link
            </button>
            {wallet !== null && (
              <button type="button" class="quiet" disabled={sign.busy} onClick={() => sign.run()}>
                Use my wallet
              </button>
            )}
          </div>
          <Problem error={sign.error} />
        </Form>
      ) : (
        <Note tone="good">
          <p>A link is on its way to {sentTo}. It works once, within 15 minutes.</p>
        </Note>
      )}
    </section>
  );
}
