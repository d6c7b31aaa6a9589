import type { SetUpAnswer } from "../../api/keys.ts";
import { Api, onUnauthorized } from "../api.ts";
import { Button } from "../parts/button.tsx";
import { ActionForm, TextField, useField } from "../parts/field.tsx";
import { Entrance, Note, Problem, Section } from "../parts/page.tsx";
import { useAction, useApi } from "../resource.ts";
import { recoverySecretIn, type Visit } from "../visit.ts";
import { SignIn } from "./sign-in.tsx";

/** The ways in: a new balance without an account, or a balance that one has. */
export function Welcome({ onSetUp, onRecovery, onVisit }: WelcomeProps) {
  const api = useApi();
  const create = useAction(async () => onSetUp(await api.post<SetUpAnswer>("v1/keys")));
  return (
    <Entrance
      title="One key for every model"
      lead="Create a key now. It needs no account, no email and no payment, and it works within a minute."
    >
      <Section title="New here" class="card">
        <p class="soft">
          You get two secrets: an API key for your programs, and a recovery secret that controls the balance.
        </p>
        <Problem error={create.error} />
        <Button label={create.busy ? "Creating…" : "Create my key"} variant="primary" action={create} />
      </Section>
      <SignIn onVisit={onVisit} />
      <Recover onRecovery={onRecovery} />
    </Entrance>
  );
}

interface WelcomeProps {
  readonly onSetUp: (made: SetUpAnswer) => void;
  readonly onRecovery: (secret: string) => void;
  readonly onVisit: (visit: Visit) => void;
}

function Recover({ onRecovery }: Pick<WelcomeProps, "onRecovery">) {
  const text = useField("");
  const open = useAction(async () => {
    const secret = recoverySecretIn(text.value);
    if (secret === null) {
      throw new Error("That is not a recovery secret: one begins with or-rec-, followed by 44 characters.");
    }
    await new Api(secret).get("v1/me").catch(onUnauthorized("No balance has this recovery secret."));
    onRecovery(secret);
  });
  return (
    <Section title="Use a recovery secret" class="card">
      <p class="soft">To manage a balance, or to replace a lost key.</p>
      <ActionForm action={open} submit="Open my balance" variant="quiet">
        <TextField
          label="Recovery secret or link"
          type="password"
          placeholder="or-rec-…"
          required
          {...text}
        />
      </ActionForm>
    </Section>
  );
}

/** Whose credential opens nothing, or no longer does. */
export const TurnedAway = ({ by }: { by: Visit["by"] }) => <Note tone="warn">{TURNED_AWAY[by]}</Note>;

const TURNED_AWAY: Readonly<Record<Visit["by"], string>> = {
  recovery: "No balance has the recovery secret in this link. Check that you copied the whole link.",
  session: "Your session has ended. Sign in again to go on.",
};
