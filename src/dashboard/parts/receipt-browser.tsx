import { useState } from "preact/hooks";
import type { KeyAnswer } from "../../api/keys.ts";
import type { ReceiptState } from "../../api/receipts.ts";
import type { List } from "../../api/schema.ts";
import { DAY_MS } from "../../units/clock.ts";
import { ERROR_CODES } from "../../units/errors/codes.ts";
import { withQuery } from "../api.ts";
import { words } from "../format.ts";
import { useResource } from "../resource.ts";
import { useFilters } from "../route.ts";
import { Choice, decimal, type FieldState, SearchChoice, TextField } from "./field.tsx";
import { Find } from "./find.tsx";
import { keyName, useKeyNames } from "./key-state.tsx";
import { ReceiptPages, type ReceiptPagesProps } from "./receipt-pages.tsx";

/** Receipts with all that they are found by; the address has it, so that what was found can be sent. */
export function ReceiptBrowser({ path, models, hosts, empty, keysAt }: ReceiptBrowserProps) {
  const { filters, field } = useFilters(FILTERS);
  const { time, from, to, ...plain } = filters;
  const isFiltered = Object.values(filters).some(Boolean);
  return (
    <>
      <Find
        label="Receipt id"
        placeholder="rcpt_…, from x-gateway-receipt"
        pathOf={async (id) => (id === "" ? null : `receipts/${encodeURIComponent(id)}`)}
      />
      <div class="filters">
        <Choice label="Time" options={TIMES} {...field("time")} />
        {time === "days" && (
          <>
            <TextField label="First day" type="date" {...field("from")} />
            <TextField label="Last day" type="date" {...field("to")} />
          </>
        )}
        <KeyChoice keysAt={keysAt} {...field("key_id")} />
        <SearchChoice label="Model" all="All" options={models} {...field("model")} />
        <SearchChoice label="Host" all="All" options={hosts} {...field("host")} />
        <Choice label="Outcome" all="All" options={STATES} nameOf={words} {...field("state")} />
        <SearchChoice label="Error" all="Any" options={ERROR_CODES} {...field("error")} />
        <TextField label="Cost at least" inputMode="decimal" placeholder="$" {...field("min_cost_usd")} />
      </div>
      <ReceiptPages
        key={Object.values(filters).join()}
        path={path}
        filters={{ ...plain, min_cost_usd: decimal(plain.min_cost_usd), ...rangeOf(time, from, to) }}
        keysAt={keysAt}
        empty={isFiltered ? "No receipt matches these filters." : empty}
      />
    </>
  );
}

interface ReceiptBrowserProps extends Omit<ReceiptPagesProps, "filters"> {
  readonly models: readonly string[];
  readonly hosts: readonly string[];
}

const FILTERS = ["time", "from", "to", "key_id", "model", "host", "state", "error", "min_cost_usd"] as const;
const STATES: ReceiptState[] = ["settled", "written_off", "failed", "cancelled", "recovered"];
const TIMES = [
  ["", "Any time"],
  ["hour", "Last hour"],
  ["day", "Last 24 hours"],
  ["today", "Today (UTC)"],
  ["yesterday", "Yesterday (UTC)"],
  ["week", "Last 7 days"],
  ["month", "Last 30 days"],
  ["days", "From … to …"],
] as const;

/** What the API is asked for; whole days are those of UTC, as everywhere in the bills. */
function rangeOf(time: string, from: string, to: string): Record<string, string> {
  const now = Date.now();
  const day = now - (now % DAY_MS);
  const ranges = new Map<string, readonly [since: number, until?: number]>([
    ["hour", [now - DAY_MS / 24]],
    ["day", [now - DAY_MS]],
    ["today", [day]],
    ["yesterday", [day - DAY_MS, day]],
    ["week", [now - 7 * DAY_MS]],
    ["month", [now - 30 * DAY_MS]],
    ["days", [Date.parse(from), Date.parse(to) + DAY_MS]],
  ]);
  const [since, until] = ranges.get(time) ?? [];
  return { since: minuteOf(since), until: minuteOf(until) };
}

/** The same address while a page is drawn again: another one would be another list. Empty where no time is given. */
const minuteOf = (at = Number.NaN): string =>
  Number.isNaN(at) ? "" : new Date(at - (at % 60_000)).toISOString();

/** One of any number of keys: those that match what is typed are offered, or an id is typed. */
export function KeyChoice({ keysAt, value, onValue }: KeyChoiceProps) {
  const [typed, setTyped] = useState("");
  const found = useResource(
    async (api) =>
      keysAt === null
        ? []
        : (await api.get<List<KeyAnswer>>(withQuery(keysAt, { limit: OFFERED, search: typed }))).data,
    [keysAt, typed],
  );
  const chosen = useKeyNames(keysAt, value === "" ? [] : [value]);
  const offered = (found.data ?? []).map((key) => [key.id, keyName(key)] as const);
  return (
    <SearchChoice
      label="Key"
      all="All"
      options={[...chosen, ...offered]}
      value={value}
      onValue={onValue}
      onTyped={setTyped}
    />
  );
}

interface KeyChoiceProps extends FieldState, Pick<ReceiptPagesProps, "keysAt"> {}

const OFFERED = "50";
