import type { ListedBalance } from "../../api/admin.ts";
import { atLeast, atMost, moment, usd } from "../format.ts";
import { Choice, decimal, TextField } from "../parts/field.tsx";
import { type Column, Rows, usePages } from "../parts/list.tsx";
import { Empty, Head } from "../parts/page.tsx";
import { useFilters } from "../route.ts";
import { BalanceLink } from "./balance-link.tsx";
import { FindAny } from "./find.tsx";

/** Everybody's balances, newest first, and the way to the one that somebody asks about. */
export function Balances() {
  const { filters, field } = useFilters(["below_usd", "state"]);
  const below_usd = decimal(filters.below_usd);
  const isFiltered = below_usd !== "" || filters.state !== "";
  return (
    <>
      <Head title="Balances" lead="Available credit of each balance, and what open requests hold." />
      <FindAny />
      <div class="filters">
        <TextField
          label="Less than … available"
          inputMode="decimal"
          placeholder="$"
          {...field("below_usd")}
        />
        <Choice label="State" options={STATES} {...field("state")} />
      </div>
      <Rows
        of={usePages<ListedBalance>("admin/balances", { ...filters, below_usd })}
        empty={
          isFiltered ? (
            <Empty title="No balance matches">Choose other filters, or show older ones.</Empty>
          ) : (
            <Empty title="Nobody has a key yet">
              People make their own in the <a href="dashboard">dashboard</a> or with POST /v1/keys, unless the
              configuration's <code>setup</code> forbids it; then POST /admin/keys makes one.
            </Empty>
          )
        }
        columns={COLUMNS}
      />
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
