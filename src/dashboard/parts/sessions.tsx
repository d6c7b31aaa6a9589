import type { OpenSession } from "../../api/sessions.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { useList } from "../resource.ts";
import { ConfirmButton } from "./dialog.tsx";
import { Section } from "./frame.tsx";
import { Problem } from "./notice.tsx";
import { type Column, Table, Unseen } from "./table.tsx";

/** Where somebody is signed in to the account, to end what they do not know. */
export function Sessions() {
  const { api, leave } = useOwner();
  const sessions = useList<OpenSession>(api, "v1/auth/sessions");
  const columns: Column<OpenSession>[] = [
    ["Signed in", "", ({ signed_in_at }) => moment(signed_in_at)],
    ["Until", "", ({ expires_at }) => moment(expires_at)],
    [
      <Unseen key="end">End</Unseen>,
      "",
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
    ],
  ];
  return (
    <Section title="Where you are signed in" class="card stack">
      <Problem error={sessions.error} />
      <Table of={sessions.data ?? []} by={({ id }) => id} columns={columns} />
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
