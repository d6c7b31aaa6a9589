import type { OpenSession } from "../../api/sessions.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { useAction, useList } from "../resource.ts";
import { Button } from "./button.tsx";
import { Section } from "./frame.tsx";
import { Problem } from "./notice.tsx";
import { type Column, Table, Unseen } from "./table.tsx";

/** Where somebody is signed in to the account, to end what they do not know. */
export function Sessions() {
  const { api, leave } = useOwner();
  const sessions = useList<OpenSession>(api, "v1/auth/sessions");
  const end = useAction(async (id: string) => {
    await api.delete(`v1/auth/sessions/${id}`);
    sessions.reload();
  });
  const endAll = useAction(async () => {
    await api.delete("v1/auth/sessions");
    leave();
  });
  const columns: Column<OpenSession>[] = [
    ["Signed in", "", ({ signed_in_at }) => moment(signed_in_at)],
    ["Until", "", ({ expires_at }) => moment(expires_at)],
    [
      <Unseen key="end">End</Unseen>,
      "",
      ({ id, current }) =>
        current ? (
          <span class="soft">this browser</span>
        ) : (
          <Button label="End" look="link danger" disabled={end.busy} onClick={() => end.run(id)} />
        ),
    ],
  ];
  return (
    <Section title="Where you are signed in" class="card stack">
      <Problem error={sessions.error ?? end.error ?? endAll.error} />
      <Table of={sessions.data ?? []} by={({ id }) => id} columns={columns} />
      <div>
        <Button label="Sign out everywhere" look="quiet danger" action={endAll} />
      </div>
    </Section>
  );
}
