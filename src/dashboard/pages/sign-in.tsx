import { useState } from "preact/hooks";
import type { SessionAnswer } from "../../api/accounts.ts";
import { Button } from "../parts/button.tsx";
import { ActionForm, TextField, useField } from "../parts/field.tsx";
import { Note, Problem, Section } from "../parts/page.tsx";
import { useAction, useApi } from "../resource.ts";
import { sessionVisit, type Visit } from "../visit.ts";
import { browserWallet, signWithWallet } from "../wallet.ts";

/** By a link to a mailbox, or with a wallet. Nobody chooses a password. */
export function SignIn({ onVisit }: { onVisit: (visit: Visit) => void }) {
  const api = useApi();
  const email = useField("");
  const [sentTo, setSentTo] = useState<string | null>(null);
  const send = useAction(async () => {
    await api.post("v1/auth/email", { email: email.value.trim() });
    setSentTo(email.value.trim());
  });
  const wallet = browserWallet();
  const sign = useAction(async () => {
    const signed = await signWithWallet(wallet!);
    const { session } = await api.post<SessionAnswer>("v1/auth/wallet/verify", signed);
    onVisit(await sessionVisit(session));
  });
  return (
    <Section title="Sign in" class="card">
      <p class="soft">To an account, with a link by email{wallet !== null && " or with your wallet"}.</p>
      {sentTo === null ? (
        <ActionForm
          action={send}
          submit="Email me a link"
          variant="quiet"
          buttons={wallet !== null && <Button label="Use my wallet" action={sign} />}
          after={<Problem error={sign.error} />}
        >
          <TextField label="Email" type="email" required {...email} />
        </ActionForm>
      ) : (
        <Note tone="good">A link is on its way to {sentTo}. It works once, within 15 minutes.</Note>
      )}
    </Section>
  );
}
