import { useState } from "preact/hooks";
import type { AccountAnswer, BalanceAnswer, ListedBalance } from "../../api/admin.ts";
import type { List } from "../../api/answers.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { Api } from "../api.ts";
import { moment, oneProcess, usd } from "../format.ts";
import { Choice, Form, TextField, useField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Listed, Problem } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { type Column, TableCard } from "../parts/table.tsx";
import { useAction } from "../resource.ts";
import { go, useQuery } from "../route.ts";
import { useOperator } from "./operator.ts";
import { BalanceLink } from "./person.tsx";

/** Everybody's balances, newest first, and the way to the one that somebody asks about. */
export function Balances() {
  const api = useOperator();
  const [query, setQuery] = useQuery(["below_usd", "state"]);
  const filters = Object.entries(query).filter(([name, value]) =>
    name === "state" ? value : /^\d+(\.\d+)?$/.test(value),
  );
  const balances = usePages<ListedBalance>(api, `admin/balances?${new URLSearchParams(filters)}`);
  return (
    <>
      <Head
        title="Balances"
        lead="The available credit of each balance, and what open requests hold of it."
      />
      <Find />
      <div class="filters">
        <TextField
          label="Less than … available"
          inputMode="decimal"
          placeholder="$"
          value={query.below_usd}
          onValue={(below_usd) => setQuery({ ...query, below_usd })}
        />
        <Choice
          label="State"
          options={STATES}
          value={query.state}
          onValue={(state) => setQuery({ ...query, state })}
        />
      </div>
      <Listed
        of={balances}
        empty={
          filters.length > 0 ? (
            <Empty title={balances.hasMore ? "None among those read so far" : "No balance matches"}>
              Choose other filters, or show older ones.
            </Empty>
          ) : (
            <Empty title="Nobody has a key yet">
              People make their own in the <a href="dashboard">dashboard</a> or with POST /v1/keys, unless the
              configuration's <code>setup</code> forbids it; then POST /admin/keys makes one.
            </Empty>
          )
        }
      >
        {(rows) => <TableCard of={rows} by={({ id }) => id} columns={COLUMNS} />}
      </Listed>
      <ShowOlder of={balances} />
    </>
  );
}

const STATES = [
  ["", "All"],
  ["suspended", "Suspended"],
  ["accountless", "Without an account"],
  ["closed", "Closed"],
] as const;

const COLUMNS: readonly Column<ListedBalance>[] = [
  [
    "Balance",
    "",
    (balance) => (
      <>
        <BalanceLink id={balance.id} of={balance} />
        {balance.suspended !== null && <span class="tag bad-tag">suspended</span>}
      </>
    ),
  ],
  ["Since", "", ({ created_at }) => moment(created_at)],
  ["Keys", "end", ({ live_keys }) => live_keys],
  ["Held", "end", (of) => usd(of.held_usd) + oneProcess(of)],
  ["Available", "end", (of) => usd(of.available_usd) + oneProcess(of)],
];

function Find() {
  const api = useOperator();
  const text = useField("");
  const [several, setSeveral] = useState<readonly string[]>([]);
  const find = useAction(async () => {
    const places = await placesOf(text.value.trim(), api);
    if (places.length === 0) throw new Error("No account with a balance has this email address or wallet.");
    if (places.length === 1) return go(places[0]!);
    setSeveral(places);
  });
  return (
    <Form class="find" onSubmit={find.run}>
      <TextField label="Find" placeholder="an id, an email address or a wallet" required {...text} />
      <button type="submit" class="quiet" disabled={find.busy}>
        Open
      </button>
      <Problem error={find.error} />
      {several.length > 0 && (
        <ul class="found">
          {several.map((place) => (
            <li key={place}>
              <a href={`#/${place}`} class="mono">
                {place.replace(/^.*\//, "")}
              </a>
            </li>
          ))}
        </ul>
      )}
    </Form>
  );
}

/**
 * The pages that something stands for that a user writes to the operator: an id, a mail address, a wallet, or
 * a key that leaked.
 */
async function placesOf(text: string, api: Api): Promise<readonly string[]> {
  const id = encodeURIComponent(text);
  // A whole key, as somebody who found it reports it: also one that no longer works.
  if (text.startsWith("or-live-")) {
    return [`balances/${(await api.post<KeyAnswer>("admin/keys/find", { key: text })).balance_id}`];
  }
  if (text.startsWith("rcpt_")) return [`receipts/${id}`];
  if (text.startsWith("key_")) {
    return [`balances/${(await api.get<KeyAnswer>(`admin/keys/${id}`)).balance_id}`];
  }
  if (!text.includes("@") && !text.startsWith("0x")) {
    return [`balances/${(await api.get<BalanceAnswer>(`admin/balances/${id}`)).id}`];
  }
  const query = `${text.includes("@") ? "email" : "wallet"}=${id}`;
  const { data } = await api.get<List<AccountAnswer>>(`admin/accounts?${query}`);
  return data.flatMap(({ balance_ids }) => balance_ids.map((balance) => `balances/${balance}`));
}
