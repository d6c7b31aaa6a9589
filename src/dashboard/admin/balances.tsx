import { useState } from "preact/hooks";
import type { List } from "../api.ts";
import { moment, usd } from "../format.ts";
import { TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded, Problem } from "../parts/notice.tsx";
import { useAction, useResource } from "../resource.ts";
import { go } from "../route.ts";
import type { BalanceRow } from "./answers.ts";
import { useOperator } from "./operator.ts";

/** Everybody's balances, newest first, and the way to one whose id, or a key's id, is known. */
export function Balances() {
  const api = useOperator();
  const first = useResource(() => api.get<List<BalanceRow>>("admin/balances"), [api]);
  const [more, setMore] = useState<readonly List<BalanceRow>[]>([]);
  const next = useAction(async (before: string) =>
    setMore([...more, await api.get<List<BalanceRow>>(`admin/balances?before=${before}`)]),
  );
  return (
    <>
      <Head title="Balances" lead="What people have, and what their open requests hold of it." />
      <Find />
      <Loaded of={first}>
        {(page) => {
          const pages = [page, ...more];
          const rows = pages.flatMap(({ data }) => data);
          if (rows.length === 0) return <Empty title="Nobody has a key yet" />;
          return (
            <>
              <BalanceTable rows={rows} />
              <Problem error={next.error} />
              {pages.at(-1)!.has_more && (
                <button
                  type="button"
                  class="quiet"
                  disabled={next.busy}
                  onClick={() => next.run(rows.at(-1)!.id)}
                >
                  Show older
                </button>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function Find() {
  const api = useOperator();
  const [text, setText] = useState("");
  const find = useAction(async () => {
    const id = encodeURIComponent(text.trim());
    if (!id.startsWith("key_"))
      return go(`balances/${(await api.get<BalanceRow>(`admin/balances/${id}`)).id}`);
    const key = await api.get<{ balance_id: string }>(`admin/keys/${id}`);
    go(`balances/${key.balance_id}`);
  });
  return (
    <form
      class="find"
      onSubmit={(event) => {
        event.preventDefault();
        find.run();
      }}
    >
      <TextField label="Find by id" value={text} onValue={setText} placeholder="bal_… or key_…" required />
      <button type="submit" class="quiet" disabled={find.busy}>
        Open
      </button>
      <Problem error={find.error} />
    </form>
  );
}

const BalanceTable = ({ rows }: { rows: readonly BalanceRow[] }) => (
  <div class="card table-card">
    <div class="scroll">
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Balance</th>
            <th scope="col" class="wide-only">
              Since
            </th>
            <th scope="col" class="end wide-only">
              Keys
            </th>
            <th scope="col" class="end wide-only">
              Held
            </th>
            <th scope="col" class="end">
              Available
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, account_id, suspended, created_at, live_keys, held_usd, available_usd }) => (
            <tr key={id}>
              <td>
                <a href={`#/balances/${id}`} class="mono">
                  {id}
                </a>{" "}
                {suspended !== null && <span class="tag bad-tag">suspended</span>}
                <div class="soft small">{account_id ?? "no account"}</div>
              </td>
              <td class="wide-only">{moment(created_at)}</td>
              <td class="end wide-only">{live_keys}</td>
              <td class="end wide-only">{usd(held_usd)}</td>
              <td class="end">{usd(available_usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </div>
);
