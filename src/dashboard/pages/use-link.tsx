import type { LinkAnswer, SessionAnswer } from "../../api/accounts.ts";
import { Confirmation, Note, Problem } from "../parts/page.tsx";
import { useAction, useApi, useResource } from "../resource.ts";
import { sessionVisit, type Visit } from "../visit.ts";

/**
 * Where a mailed link leads. The link is used up by the button alone, because mail scanners open links, and
 * some of them run the page's script as well; and it says first whom it signs in, because a link may come from
 * somebody who wants others to use an account of theirs.
 */
export function UseLink({ token, onVisit, onDone }: UseLinkProps) {
  const api = useApi();
  const link = useResource(() => api.post<LinkAnswer>("v1/auth/email/preview", { token }), [token]);
  const use = useAction(async () => {
    const { session } = await api.post<SessionAnswer>("v1/auth/email/verify", { token });
    onVisit(await sessionVisit(session), link.data?.claimed_balance_id ?? null);
  });
  const claimed = link.data?.claimed_balance_id ?? null;
  return (
    <Confirmation
      title="Sign in"
      lead={
        link.data === null
          ? "The link that you were sent works once."
          : `As ${link.data.email}? The link works once.`
      }
      button={
        link.data && {
          label: claimed === null ? "Sign in here" : "Sign in and take the balance",
          action: use,
        }
      }
      onDone={onDone}
    >
      {claimed !== null && (
        <Note tone="warn">
          The balance <span class="mono">{claimed}</span> was claimed for this address, and becomes yours. Go
          on only if you claimed it.
        </Note>
      )}
      <Problem error={use.error ?? link.error} />
    </Confirmation>
  );
}

interface UseLinkProps {
  readonly token: string;
  /** With the balance to show first. */
  readonly onVisit: (visit: Visit, balance: string | null) => void;
  readonly onDone: () => void;
}
