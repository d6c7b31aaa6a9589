import { useState } from "preact/hooks";
import type { SetUpAnswer } from "../../api/keys.ts";
import { Api, ApiRefusal } from "../api.ts";
import { Form, TextField } from "../parts/field.tsx";
import { Entrance } from "../parts/frame.tsx";
import { Note, Problem } from "../parts/notice.tsx";
import { useAction } from "../resource.ts";
import { recoverySecretIn, type Visit } from "../visit.ts";
import { SignIn } from "./sign-in.tsx";

/** The ways in: a new balance without an account, or a balance that one has. */
export function Welcome({ onSetUp, onRecovery, onVisit }: WelcomeProps) {
  const create = useAction(async () => onSetUp(await new Api(null).post<SetUpAnswer>("v1/keys")));
  return (
    <Entrance
      title="One key for every model"
      lead="Create a key now. It needs no account, no email and no payment, and it works within a minute."
    >
      <section class="card" aria-labelledby="new">
        <h2 id="new">New here</h2>
        <p class="soft">
          You get two secrets: an API key for your programs, and a recovery secret that controls the balance.
        </p>
        <Problem error={create.error} />
        <button type="button" class="primary" disabled={create.busy} onClick={() => create.run()}>
          {create.busy ? "Creating…" : "Create my key"}
        </button>
      </section>
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
  const [text, setText] = useState("");
  const open = useAction(async () => {
    const secret = recoverySecretIn(text);
    if (secret === null) {
      throw new Error("That is not a recovery secret: one begins with or-rec-, followed by 44 characters.");
    }
    await new Api(secret).get("v1/me").catch((error) => {
      throw error instanceof ApiRefusal && error.status === 401
        ? new Error("No balance has this recovery secret.")
        : error;
    });
    onRecovery(secret);
  });
  return (
    <section class="card" aria-labelledby="recover">
      <h2 id="recover">Use a recovery secret</h2>
      <p class="soft">To manage a balance, or to replace a lost key.</p>
      <Form onSubmit={open.run}>
        <TextField
          label="Recovery secret or link"
          type="password"
          value={text}
          onValue={setText}
          placeholder="or-rec-…"
          required
        />
        <Problem error={open.error} />
        <button type="submit" class="quiet" disabled={open.busy}>
          Open my balance
        </button>
      </Form>
    </section>
  );
}

/** Whose credential opens nothing, or no longer does. */
export const TurnedAway = ({ by }: { by: Visit["by"] }) => (
  <Note tone="warn">
    <p>{TURNED_AWAY[by]}</p>
  </Note>
);

const TURNED_AWAY: Readonly<Record<Visit["by"], string>> = {
  recovery: "No balance has the recovery secret in this link. Check that you copied the whole link.",
  session: "Your session has ended. Sign in again to go on.",
};
