import { useState } from "preact/hooks";
import type { KeyAnswer } from "../../api/keys.ts";
import type { UsageAnswer } from "../../api/usage.ts";
import { count, moment, roughUsd, usd } from "../format.ts";
import { useQuery } from "../route.ts";
import { Button } from "./button.tsx";
import { Choice, TextField } from "./field.tsx";
import { KeyState, works } from "./key-state.tsx";
import { Empty } from "./notice.tsx";
import { type Column, TableCard } from "./table.tsx";

/** Keys by name, state and use; the address has what was searched for. */
export function KeyList({ of, usage }: { of: readonly KeyAnswer[]; usage: UsageAnswer | null }) {
  const [query, setQuery] = useQuery(["search", "state", "sort"]);
  const [shown, setShown] = useState(ROWS);
  const use = new Map(usage?.keys.map((sum) => [sum.key_id, sum]));
  const chosen = (name: keyof typeof query) => ({
    value: query[name],
    onValue: (value: string) => setQuery({ ...query, [name]: value }),
  });
  const by = (sort: string) => ({
    isBy: query.sort === sort,
    onSort: () => setQuery({ ...query, sort: query.sort === sort ? "" : sort }),
  });
  const measures: Readonly<Record<string, (key: KeyAnswer) => number>> = {
    used: ({ id }) => Date.parse(use.get(id)?.last_used_at ?? "") || 0,
    spend: ({ id }) => use.get(id)?.cost_usd ?? 0,
    today: ({ used_day_usd }) => used_day_usd,
    month: ({ used_month_usd }) => used_month_usd,
  };
  const columns: Column<KeyAnswer>[] = [
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
    ["Last used", "when", ({ id }) => lastUsed(use.get(id)?.last_used_at, usage), by("used")],
    ["30 days", "end", ({ id }) => usd(use.get(id)?.cost_usd ?? 0), by("spend")],
    ["Today", "end", (key) => <Spent used={key.used_day_usd} of={key.daily_limit_usd} />, by("today")],
    [
      "This month",
      "end",
      (key) => <Spent used={key.used_month_usd} of={key.monthly_limit_usd} />,
      by("month"),
    ],
  ];
  const searched = query.search.trim().toLowerCase();
  const found = of.filter(
    (key) =>
      `${key.name ?? ""} ${key.prefix} ${key.id}`.toLowerCase().includes(searched) &&
      (query.state === "all" || (query.state === "ended" ? !works(key) : works(key))),
  );
  const measure = measures[query.sort];
  const rows = measure === undefined ? found : found.toSorted((a, b) => measure(b) - measure(a));
  return (
    <>
      <div class="filters">
        <TextField label="Search" type="search" placeholder="Name, beginning or id" {...chosen("search")} />
        <Choice label="State" options={STATES} {...chosen("state")} />
      </div>
      {rows.length === 0 ? (
        <Empty title="No key matches">Search for another name, or choose another state.</Empty>
      ) : (
        <TableCard of={rows.slice(0, shown)} by={({ id }) => id} columns={columns} />
      )}
      {rows.length > shown && (
        <div>
          <Button label={`Show more of ${count(rows.length)}`} onClick={() => setShown(shown + ROWS)} />
        </div>
      )}
    </>
  );
}

const ROWS = 100;

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
