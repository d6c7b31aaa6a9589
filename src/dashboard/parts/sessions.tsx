import type { List } from "../../api/answers.ts";
import type { OpenSession } from "../../api/sessions.ts";
import { moment } from "../format.ts";
import { useOwner } from "../owner.ts";
import { useAction, useResource } from "../resource.ts";
import { Problem } from "./notice.tsx";
import { Table } from "./table.tsx";

/** Where somebody is signed in to the account, to end what they do not know. */
export function Sessions() {
  const { api, leave } = useOwner();
  const sessions = useResource(() => api.get<List<OpenSession>>("v1/auth/sessions"), [api]);
  const end = useAction(async (id: string) => {
    await api.delete(`v1/auth/sessions/${id}`);
    sessions.reload();
  });
  const endAll = useAction(async () => {
    await api.delete("v1/auth/sessions");
    leave();
  });
  return (
    <section class="card stack" aria-labelledby="sessions">
      <h2 id="sessions">Where you are signed in</h2>
      <Problem error={sessions.error ?? end.error ?? endAll.error} />
      <Table columns={["Signed in", "Until", ["End", "unseen"]]}>
        {sessions.data?.data.map(({ id, signed_in_at, expires_at, current }) => (
          <tr key={id}>
            <td>{moment(signed_in_at)}</td>
            <td>{moment(expires_at)}</td>
            <td>
              {current ? (
                <span class="soft">this browser</span>
              ) : (
                <button type="button" class="link danger" disabled={end.busy} onClick={() => end.run(id)}>
                  End
                </button>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <div>
        <button type="button" class="quiet danger" disabled={endAll.busy} onClick={() => endAll.run()}>
          Sign out everywhere
        </button>
      </div>
    </section>
  );
}
