import type { KeyAnswer } from "../../api/keys.ts";
import type { Period } from "../../api/usage.ts";
import type { Api } from "../api.ts";
import { moment, roughUsd, usd } from "../format.ts";
import { useFilters } from "../route.ts";
import { Button } from "./button.tsx";
import { useDialog } from "./dialog.tsx";
import { Choice, TextField } from "./field.tsx";
import { KeyState, works } from "./key-state.tsx";
import { Empty, Loaded } from "./notice.tsx";
import { ShowOlder, usePages } from "./pages.tsx";
import { RevokeDialog } from "./revoke-dialog.tsx";
import { type Column, sortedBy, TableCard, Unseen } from "./table.tsx";

/** Keys by name, state and use; the address has what was searched for. */
export function KeyList({ api, revoke }: KeyListProps) {
  const { filters, field } = useFilters(["search", "state", "spent", "sort"]);
  const { search, state, spent } = filters;
  // With the spend of a day, the key that spent most comes first.
  const sort = filters.sort || (spent === "" ? "" : "spend");
  const period = (spent || "month") as Period;
  return (
    <>
      <div class="filters">
        <TextField label="Search" type="search" placeholder="Name or id" {...field("search")} />
        <Choice label="State" options={STATES} {...field("state")} />
        <Choice label="Spend" options={PERIODS} {...field("spent")} />
      </div>
      <KeyRows
        key={`${period} ${sort}`}
        api={api}
        revoke={revoke}
        filter={{ search: search.trim(), state: state === "all" ? "" : state || "active" }}
        period={period}
        sort={{ value: sort, onValue: field("sort").onValue }}
      />
    </>
  );
}

/** A page after the other, with what each key spent in the period. */
function KeyRows({ api, revoke, filter, period, sort }: KeyRowsProps) {
  const query = { limit: String(ROWS), period, sort: sort.value, ...filter };
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const keys = usePages<KeyAnswer>(api, `v1/keys?${new URLSearchParams(given)}`);
  const { open: revoking, show: onRevoke, ends } = useDialog<KeyAnswer>(keys.reload);
  return (
    <>
      <Loaded of={keys}>
        {(rows) =>
          rows.length === 0 && !keys.hasMore ? (
            <Empty title={filter.search === "" ? "No keys here" : "No key matches"}>
              Search for another name, choose another state, or create a key.
            </Empty>
          ) : (
            <TableCard of={rows} by={({ id }) => id} columns={keyColumns({ period, sort, onRevoke })} />
          )
        }
      </Loaded>
      {sort.value !== "" && <p class="hint">Keys that were not used in 30 days are left out.</p>}
      <ShowOlder of={keys} label="Show more" />
      {revoking !== null && <RevokeDialog of={revoking} revoke={() => revoke(revoking.id)} {...ends} />}
    </>
  );
}

interface KeyListProps {
  readonly api: Api;
  readonly revoke: (id: string) => Promise<unknown>;
}

interface KeyRowsProps extends KeyListProps {
  readonly filter: Readonly<Record<"search" | "state", string>>;
  readonly period: Period;
  readonly sort: { readonly value: string; readonly onValue: (value: string) => void };
}

function keyColumns({ period, sort, onRevoke }: KeyColumnsOf): Column<KeyAnswer>[] {
  const by = (column: string) => sortedBy(sort, column);
  return [
    [
      "Key",
      "",
      (key) => (
        <>
          <a href={`#/keys/${key.id}`}>{key.name ?? "Unnamed key"}</a>
          <div class="mono soft small unbroken">{key.prefix}…</div>
        </>
      ),
    ],
    ["State", "", (key) => <KeyState of={key} />],
    ["Last used", "when", (key) => <LastUsed of={key} />, by("used")],
    [SPANS[period], "end", ({ used_period_usd: used }) => (used == null ? "…" : usd(used)), by("spend")],
    ["Today", "end", (key) => <Spent used={key.used_day_usd} of={key.daily_limit_usd} />],
    ["This month", "end", (key) => <Spent used={key.used_month_usd} of={key.monthly_limit_usd} />],
    [
      <Unseen key="actions">Actions</Unseen>,
      "end",
      (key) =>
        works(key) && (
          <Button
            label="Revoke"
            about={key.name ?? key.prefix}
            variant="link danger"
            onClick={() => onRevoke(key)}
          />
        ),
    ],
  ];
}

interface KeyColumnsOf extends Pick<KeyRowsProps, "period" | "sort"> {
  readonly onRevoke: (key: KeyAnswer) => void;
}

/** So many that the next page takes less than 100 ms. */
const ROWS = 50;

/** What the column of spend, and the choice of its period, are called. */
const SPANS: Readonly<Record<Period, string>> = {
  month: "30 days",
  week: "7 days",
  today: "Today (UTC)",
  yesterday: "Yesterday (UTC)",
  day: "24 hours",
  hour: "1 hour",
};

const PERIODS = Object.entries(SPANS).map(
  ([period, span]) => [period === "month" ? "" : period, span] as const,
);

const STATES = [
  ["", "Active"],
  ["ended", "Ended"],
  ["all", "All"],
] as const;

/** Receipts are read for thirty days. */
function LastUsed({ of: { last_used_at: at, used_period_usd } }: { of: KeyAnswer }) {
  if (at != null) return <span title={at}>{moment(at)}</span>;
  return <span class="soft">{used_period_usd == null ? "…" : "not in 30 days"}</span>;
}

export const Spent = ({ used, of }: { used: number; of: number | null }) => (
  <>
    {roughUsd(used)}
    {of !== null && <span class="soft"> of {roughUsd(of)}</span>}
  </>
);
