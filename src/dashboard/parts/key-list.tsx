import { useState } from "preact/hooks";
import type { KeyAnswer } from "../../api/keys.ts";
import type { Period, UsageAnswer } from "../../api/usage.ts";
import type { Api } from "../api.ts";
import { count, moment, roughUsd, usd } from "../format.ts";
import { useResource } from "../resource.ts";
import { useFilters } from "../route.ts";
import { Button } from "./button.tsx";
import { useDialog } from "./dialog.tsx";
import { Choice, TextField } from "./field.tsx";
import { KeyState, works } from "./key-state.tsx";
import { Empty, Problem } from "./notice.tsx";
import { RevokeDialog } from "./revoke-dialog.tsx";
import { type Column, sortedBy, TableCard, Unseen } from "./table.tsx";

/** Keys by name, state and use; the address has what was searched for. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: the columns of a table.
export function KeyList({ of, usage, api, revoke, onRevoked }: KeyListProps) {
  const { filters: query, field } = useFilters(["search", "state", "spent", "sort"]);
  const { open: revoking, show: showRevocation, ends } = useDialog<KeyAnswer>(onRevoked);
  const period = (query.spent || "month") as Period;
  const spending = useResource(
    async () => (period === "month" ? null : api.get<UsageAnswer>(`v1/usage?period=${period}`)),
    [api, period],
  );
  const [shown, setShown] = useState(ROWS);
  const use = new Map(usage?.keys.map((sum) => [sum.key_id, sum]));
  const inPeriod = period === "month" ? usage : spending.data;
  const spent = new Map(inPeriod?.keys.map(({ key_id, cost_usd }) => [key_id, cost_usd]));
  const by = (column: string) => sortedBy(field("sort"), column);
  const measures: Readonly<Record<string, (key: KeyAnswer) => number>> = {
    used: ({ id }) => Date.parse(use.get(id)?.last_used_at ?? "") || 0,
    spend: ({ id }) => spent.get(id) ?? 0,
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
    [SPANS[period], "end", ({ id }) => (inPeriod === null ? "…" : usd(spent.get(id) ?? 0)), by("spend")],
    ["Today", "end", (key) => <Spent used={key.used_day_usd} of={key.daily_limit_usd} />, by("today")],
    [
      "This month",
      "end",
      (key) => <Spent used={key.used_month_usd} of={key.monthly_limit_usd} />,
      by("month"),
    ],
    [
      <Unseen key="actions">Actions</Unseen>,
      "end",
      (key) =>
        works(key) && (
          <Button
            label="Revoke"
            about={key.name ?? key.prefix}
            variant="link danger"
            onClick={() => showRevocation(key)}
          />
        ),
    ],
  ];
  const searched = query.search.trim().toLowerCase();
  const found = of.filter(
    (key) =>
      `${key.name ?? ""} ${key.prefix} ${key.id}`.toLowerCase().includes(searched) &&
      (query.state === "all" || (query.state === "ended" ? !works(key) : works(key))),
  );
  // With the spend of a day, the key that spent most comes first.
  const measure = measures[query.sort || (query.spent === "" ? "" : "spend")];
  const rows = measure === undefined ? found : found.toSorted((a, b) => measure(b) - measure(a));
  return (
    <>
      <div class="filters">
        <TextField label="Search" type="search" placeholder="Name, beginning or id" {...field("search")} />
        <Choice label="State" options={STATES} {...field("state")} />
        <Choice label="Spend" options={PERIODS} {...field("spent")} />
      </div>
      <Problem error={spending.error} />
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
      {revoking !== null && <RevokeDialog of={revoking} revoke={() => revoke(revoking.id)} {...ends} />}
    </>
  );
}

interface KeyListProps {
  readonly of: readonly KeyAnswer[];
  /** The last thirty days; null until it is known. */
  readonly usage: UsageAnswer | null;
  readonly api: Api;
  readonly revoke: (id: string) => Promise<unknown>;
  readonly onRevoked: () => void;
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
