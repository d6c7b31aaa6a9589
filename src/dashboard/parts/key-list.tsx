import type { KeyAnswer } from "../../api/keys.ts";
import type { Period, UsageAnswer } from "../../api/usage.ts";
import type { Api } from "../api.ts";
import { moment, roughUsd, usd } from "../format.ts";
import { useGet, useResource } from "../resource.ts";
import { useFilters } from "../route.ts";
import { Button } from "./button.tsx";
import { useDialog } from "./dialog.tsx";
import { Choice, TextField } from "./field.tsx";
import { KeyState, works } from "./key-state.tsx";
import { Empty, Loaded, Problem } from "./notice.tsx";
import { type Page, ShowOlder, usePagesOf } from "./pages.tsx";
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

/** A page after the other. Sorted, they are the keys that were used in the period, in the order of their sums. */
function KeyRows({ api, revoke, filter, period, sort }: KeyRowsProps) {
  const month = useGet<UsageAnswer>(api, "v1/usage?period=month");
  const other = useResource(
    async () => (period === "month" ? null : api.get<UsageAnswer>(`v1/usage?period=${period}`)),
    [api, period],
  );
  const usage = period === "month" ? month : other;
  const order = orderOf(sort.value, sort.value === "used" ? month.data : usage.data);
  const path = `v1/keys?${new URLSearchParams({ limit: String(ROWS), ...given(filter) })}`;
  const keys = usePagesOf<KeyAnswer>(
    (before) =>
      sort.value === ""
        ? api.get(`${path}${before === null ? "" : `&before=${before}`}`)
        : sortedPage(api, path, order ?? [], Number(before ?? 0)),
    [api, path, order?.join()],
  );
  const { open: revoking, show: onRevoke, ends } = useDialog<KeyAnswer>(keys.reload);
  const isReady = sort.value === "" || order !== null;
  return (
    <>
      <Problem error={month.error ?? other.error} />
      <Loaded of={isReady ? keys : { ...keys, data: null }}>
        {(rows) =>
          rows.length === 0 && !keys.hasMore ? (
            <Empty title={filter.search === "" ? "No keys here" : "No key matches"}>
              Search for another name, choose another state, or create a key.
            </Empty>
          ) : (
            <TableCard
              of={rows}
              by={({ id }) => id}
              columns={keyColumns({ month: month.data, inPeriod: usage.data, period, sort, onRevoke })}
            />
          )
        }
      </Loaded>
      {sort.value !== "" && <p class="hint">Keys that were not used in this period are left out.</p>}
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

/** Ids of keys, the most first; null until it is known. */
function orderOf(sort: string, usage: UsageAnswer | null): readonly string[] | null {
  if (usage === null) return null;
  const measure = (sum: UsageAnswer["keys"][number]) =>
    sort === "used" ? Date.parse(sum.last_used_at) : sum.cost_usd;
  return usage.keys.toSorted((a, b) => measure(b) - measure(a)).map(({ key_id }) => key_id);
}

async function sortedPage(
  api: Api,
  path: string,
  order: readonly string[],
  from: number,
): Promise<Page<KeyAnswer>> {
  const ids = order.slice(from, from + ROWS);
  const to = from + ids.length;
  const rest = { has_more: to < order.length, next_before: String(to) };
  if (ids.length === 0) return { data: [], ...rest };
  const { data } = await api.get<Page<KeyAnswer>>(`${path}&ids=${ids}`);
  const byId = new Map(data.map((key) => [key.id, key]));
  return { data: ids.flatMap((id) => byId.get(id) ?? []), ...rest };
}

/** Without what is empty. */
const given = (query: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));

function keyColumns({ month, inPeriod, period, sort, onRevoke }: KeyColumnsOf): Column<KeyAnswer>[] {
  const use = new Map(month?.keys.map((sum) => [sum.key_id, sum]));
  const spent = new Map(inPeriod?.keys.map(({ key_id, cost_usd }) => [key_id, cost_usd]));
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
    ["Last used", "when", ({ id }) => lastUsed(use.get(id)?.last_used_at, month), by("used")],
    [SPANS[period], "end", ({ id }) => (inPeriod === null ? "…" : usd(spent.get(id) ?? 0)), by("spend")],
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
  /** The last thirty days; null until it is known. */
  readonly month: UsageAnswer | null;
  readonly inPeriod: UsageAnswer | null;
  readonly onRevoke: (key: KeyAnswer) => void;
}

const ROWS = 100;

/** What the column of spend is called. */
const SPANS: Readonly<Record<Period, string>> = {
  hour: "1 hour",
  day: "24 hours",
  today: "Today (UTC)",
  yesterday: "Yesterday (UTC)",
  week: "7 days",
  month: "30 days",
};

const PERIODS = [
  ["", "Last 30 days"],
  ["week", "Last 7 days"],
  ["today", "Today (UTC)"],
  ["yesterday", "Yesterday (UTC)"],
  ["day", "Last 24 hours"],
  ["hour", "Last hour"],
] as const;

const STATES = [
  ["", "Active"],
  ["ended", "Ended"],
  ["all", "All"],
] as const;

/** Receipts are summed up over thirty days. */
function lastUsed(at: string | undefined, usage: UsageAnswer | null) {
  if (at !== undefined) return <span title={at}>{moment(at)}</span>;
  return <span class="soft">{usage === null ? "…" : "not in 30 days"}</span>;
}

export const Spent = ({ used, of }: { used: number; of: number | null }) => (
  <>
    {roughUsd(used)}
    {of !== null && <span class="soft"> of {roughUsd(of)}</span>}
  </>
);
