import type { OpenSession } from "../../api/sessions.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { useApi, useList } from "../resource.ts";
import { ConfirmButton } from "./dialog.tsx";
import { actionsOf, type Column, Table } from "./list.tsx";
import { Problem, Section } from "./page.tsx";

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
