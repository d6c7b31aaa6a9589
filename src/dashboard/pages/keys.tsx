import { useState } from "preact/hooks";
import type { KeyAnswer } from "../../api/keys.ts";
import type { Period } from "../../api/usage.ts";
import { moment, usd } from "../format.ts";
import { useKeyChoices, useMint, useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { Choice, type FieldState, TextField } from "../parts/field.tsx";
import { FirstCall } from "../parts/first-call.tsx";
import { KeyDialog, keyOnce, RevokeDialog } from "../parts/key-dialog.tsx";
import { KeyLink, KeyState, SPENT_COLUMNS, works } from "../parts/key-state.tsx";
import { actionsOf, type Column, Rows, sortedBy, usePages } from "../parts/list.tsx";
import { Empty, Head } from "../parts/page.tsx";
import { useApi } from "../resource.ts";
import { useFilters } from "../route.ts";

/** All keys of the balance, those that work first. */
export function Keys() {
  const { me } = useOwner();
  const choices = useKeyChoices();
  const create = useMint();
  const [round, setRound] = useState(0);
  return (
    <>
      <Head title="Keys" lead="One key for each program or agent, each with its own limits.">
        <Button
          label="New key"
          variant="primary"
          dialog={
            <KeyDialog of={null} defaults={me.key_defaults} choices={choices} save={create} once={keyOnce} />
          }
          onDone={() => setRound(round + 1)}
        />
      </Head>
      <KeyList key={round} />
      <FirstCall />
    </>
  );
}

/** Keys by name, state and use; the address has what was searched for. */
function KeyList() {
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
        filter={{ search: search.trim(), state: state === "all" ? "" : state || "active" }}
        period={period}
        sort={{ value: sort, onValue: field("sort").onValue }}
      />
    </>
  );
}

/** A page after the other, with what each key spent in the period. */
function KeyRows({ filter, period, sort }: KeyRowsProps) {
  const api = useApi();
  const query = { limit: ROWS, period, sort: sort.value, ...filter };
  const keys = usePages<KeyAnswer>("v1/keys", query);
  const by = (column: string) => sortedBy(sort, column);
  const columns: Column<KeyAnswer>[] = [
    ["Key", "", (key) => <KeyLink of={key} />],
    ["State", "", (key) => <KeyState of={key} />],
    ["Last used", "when", (key) => <LastUsed of={key} />, by("used")],
    [SPANS[period], "end", ({ used_period_usd: used }) => (used == null ? "…" : usd(used)), by("spend")],
    ...SPENT_COLUMNS,
    actionsOf(
      (key) =>
        works(key) && (
          <Button
            label="Revoke"
            about={key.name ?? key.prefix}
            variant="link danger"
            dialog={<RevokeDialog of={key} revoke={() => api.delete(`v1/keys/${key.id}`)} />}
            onDone={keys.reload}
          />
        ),
    ),
  ];
  return (
    <Rows
      of={keys}
      empty={
        <Empty title={filter.search === "" ? "No keys here" : "No key matches"}>
          Search for another name, choose another state, or create a key.
        </Empty>
      }
      older="Show more"
      columns={columns}
    >
      {sort.value !== "" && <p class="hint">Keys that were not used in 30 days are left out.</p>}
    </Rows>
  );
}

interface KeyRowsProps {
  readonly filter: Readonly<Record<"search" | "state", string>>;
  readonly period: Period;
  readonly sort: FieldState;
}

/** So many that the next page takes less than 100 ms. */
const ROWS = "50";

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
