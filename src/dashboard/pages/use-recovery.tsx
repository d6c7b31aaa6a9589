import type { MeAnswer } from "../../api/me.ts";
import { Api, ApiRefusal } from "../api.ts";
import { Confirmation, Problem } from "../parts/page.tsx";
import { useResource } from "../resource.ts";
import { presentVisit } from "../visit.ts";
import { TurnedAway } from "./welcome.tsx";

/**
 * Where a recovery link leads. It says whose balance it opens, and who is here now, before anything changes: a
 * link may come from somebody who wants others to pay into a balance of theirs.
 */
export function UseRecovery({ secret, onOpen, onDone }: UseRecoveryProps) {
  const found = useResource(() => identify(secret), [secret]);
  const unknown = found.error instanceof ApiRefusal && found.error.status === 401;
  return (
    <Confirmation
      title="Use this recovery link?"
      lead={
        found.data && (
          <>
            It opens the balance <span class="mono">{found.data.balance}</span>.
          </>
        )
      }
      notice={unknown ? <TurnedAway by="recovery" /> : <Problem error={found.error} />}
      button={found.data && { label: "Open this balance", onClick: onOpen }}
      onDone={onDone}
    >
      {found.data !== null && (
        <p class="soft">
          {found.data.present === null
            ? "Open only links that you saved yourself: anybody else who has it can use the balance, too."
            : `This tab shows ${found.data.present} now, and would show that balance instead.`}
        </p>
      )}
    </Confirmation>
  );
}

/** The balance that the secret opens, and the visitor who is signed in already. */
async function identify(secret: string): Promise<{ balance: string; present: string | null }> {
  const { balance_id } = await new Api(secret).get<MeAnswer>("v1/me");
  const visit = await presentVisit(sessionStorage);
  const present = await visit?.api.get<MeAnswer>("v1/me").catch(() => null);
  const { account, balance_id: shown } = present ?? {};
  return { balance: balance_id, present: account?.email ?? account?.wallet ?? shown ?? null };
}

interface UseRecoveryProps {
  readonly secret: string;
  readonly onOpen: () => void;
  readonly onDone: () => void;
}
