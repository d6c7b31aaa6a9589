import type { ListedBalance } from "../../api/admin.ts";
import { atLeast, atMost, moment, usd } from "../format.ts";
import { Choice, TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Listed } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { type Column, TableCard } from "../parts/table.tsx";
import { useFilters } from "../route.ts";
import { Find } from "./find.tsx";
import { useOperator } from "./operator.ts";
import { BalanceLink } from "./person.tsx";

/** Everybody's balances, newest first, and the way to the one that somebody asks about. */
export function Balances() {
  const api = useOperator();
  const { filters: query, field } = useFilters(["below_usd", "state"]);
  const filters = Object.entries(query).filter(([name, value]) =>
    name === "state" ? value : /^\d+(\.\d+)?$/.test(value),
  );
  const balances = usePages<ListedBalance>(api, `admin/balances?${new URLSearchParams(filters)}`);
  return (
    <>
      <Head title="Balances" lead="Available credit of each balance, and what open requests hold." />
      <Find />
      <div class="filters">
        <TextField
          label="Less than … available"
          inputMode="decimal"
          placeholder="$"
          {...field("below_usd")}
        />
        <Choice label="State" options={STATES} {...field("state")} />
      </div>
      <Listed
        of={balances}
        empty={
          filters.length > 0 ? (
            <Empty
              title={balances.hasMore ? "No match among the balances read so far" : "No balance matches"}
            >
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
  ["Held", "end", (of) => usd(of.held_usd) + atMost(of)],
  ["Available", "end", (of) => usd(of.available_usd) + atLeast(of)],
];
