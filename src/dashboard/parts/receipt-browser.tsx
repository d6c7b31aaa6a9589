import { useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { ReceiptState } from "../../api/receipts.ts";
import { DAY_MS } from "../../units/clock.ts";
import { ERROR_CODES } from "../../units/errors/codes.ts";
import type { Api } from "../api.ts";
import { words } from "../format.ts";
import { useResource } from "../resource.ts";
import { go, useFilters } from "../route.ts";
import { Choice, Form, SearchChoice, TextField, useField } from "./field.tsx";
import { keyName, useKeyNames } from "./key-state.tsx";
import { ReceiptPages, type ReceiptPagesProps } from "./receipt-pages.tsx";

/** Receipts with all that they are found by; the address has it, so that what was found can be sent. */
export function ReceiptBrowser({ api, path, models, hosts, empty, keysAt }: ReceiptBrowserProps) {
  const { filters, field } = useFilters(FILTERS);
  const named = (all: readonly string[]) => all.map((name) => [name, name] as const);
  const { time, from, to, ...plain } = filters;
  const isFiltered = Object.values(filters).some(Boolean);
  return (
    <>
      <FindReceipt />
      <div class="filters">
        <Choice label="Time" options={TIMES} {...field("time")} />
        {time === "days" && (
          <>
            <TextField label="First day" type="date" {...field("from")} />
            <TextField label="Last day" type="date" {...field("to")} />
          </>
        )}
        <KeyChoice api={api} keysAt={keysAt} {...field("key_id")} />
        <SearchChoice label="Model" options={named(models)} placeholder="All" {...field("model")} />
        <SearchChoice label="Host" options={named(hosts)} placeholder="All" {...field("host")} />
        <Choice
          label="Outcome"
          options={[["", "All"], ...STATES.map((state) => [state, words(state)] as const)]}
          {...field("state")}
        />
        <SearchChoice label="Error" options={named(ERROR_CODES)} placeholder="Any" {...field("error")} />
        <TextField label="Cost at least" inputMode="decimal" placeholder="$" {...field("min_cost_usd")} />
      </div>
      <ReceiptPages
        key={Object.values(filters).join()}
        api={api}
        path={path}
        filters={{ ...plain, min_cost_usd: decimal(plain.min_cost_usd), ...rangeOf(time, from, to) }}
        keysAt={keysAt}
        empty={isFiltered ? "No receipt matches these filters." : empty}
      />
    </>
  );
}

interface ReceiptBrowserProps extends Pick<ReceiptPagesProps, "api" | "path" | "keysAt" | "empty"> {
  readonly api: Api;
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
  const ranges: Readonly<Record<string, readonly [number | null, number | null]>> = {
    hour: [now - DAY_MS / 24, null],
    day: [now - DAY_MS, null],
    today: [day, null],
    yesterday: [day - DAY_MS, day],
    week: [now - 7 * DAY_MS, null],
    month: [now - 30 * DAY_MS, null],
    days: [from === "" ? null : Date.parse(from), to === "" ? null : Date.parse(to) + DAY_MS],
  };
  const [since, until] = ranges[time] ?? [null, null];
  return {
    ...(since === null ? {} : { since: minuteOf(since) }),
    ...(until === null ? {} : { until: minuteOf(until) }),
  };
}

/** The same address while a page is drawn again: another one would be another list. */
const minuteOf = (at: number): string => new Date(at - (at % 60_000)).toISOString();

const decimal = (typed: string): string => (/^\d+(\.\d+)?$/.test(typed.trim()) ? typed.trim() : "");

/** One of any number of keys: those that match what is typed are offered, or an id is typed. */
export function KeyChoice({ api, keysAt, value, onValue }: KeyChoiceProps) {
  const [typed, setTyped] = useState("");
  const found = useResource(
    async () =>
      keysAt === null
        ? []
        : (await api.get<List<KeyAnswer>>(`${keysAt}?limit=${OFFERED}&search=${encodeURIComponent(typed)}`))
            .data,
    [api, keysAt, typed],
  );
  const chosen = useKeyNames(api, keysAt, value === "" ? [] : [value]);
  const offered = (found.data ?? []).map((key) => [key.id, keyName(key)] as const);
  return (
    <SearchChoice
      label="Key"
      placeholder="All"
      options={[...chosen, ...offered]}
      value={value}
      onValue={onValue}
      onTyped={setTyped}
    />
  );
}

interface KeyChoiceProps extends Pick<ReceiptBrowserProps, "api" | "keysAt"> {
  readonly value: string;
  readonly onValue: (id: string) => void;
}

const OFFERED = 50;

/** By the id that every answer has in its header x-gateway-receipt. */
function FindReceipt() {
  const id = useField("");
  return (
    <Form
      class="find"
      onSubmit={() => id.value.trim() !== "" && go(`receipts/${encodeURIComponent(id.value.trim())}`)}
    >
      <TextField label="Receipt id" placeholder="rcpt_…, from x-gateway-receipt" required {...id} />
      <button type="submit" class="quiet">
        Open
      </button>
    </Form>
  );
}
