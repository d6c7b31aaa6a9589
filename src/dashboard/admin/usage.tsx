import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ComparedSum, EverybodysUsage, Period, SpendingOrder } from "../../api/usage.ts";
import { rough } from "../../units/numbers.ts";
import { withQuery } from "../api.ts";
import { count, moment, roughUsd, usdColumn } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { ExportButton } from "../parts/export-button.tsx";
import { Choice, type FieldState } from "../parts/field.tsx";
import { KeyLink } from "../parts/key-state.tsx";
import { Cells, type Column, TableCard } from "../parts/list.tsx";
import { Empty, Figure, Head, Loaded } from "../parts/page.tsx";
import { Periods, SPLITS, UsageBars } from "../parts/usage-bars.tsx";
import { useApi, useGet } from "../resource.ts";
import { useFilters } from "../route.ts";
import { BalanceLink } from "./balance-link.tsx";
import { RevokeKey } from "./key-columns.tsx";

/** Who spends what, on which model, and whether it grows. */
export function Usage() {
  const { filters, field } = useFilters(["period", "order", "by"], {
    period: "week",
    order: "cost",
    by: "model",
  });
  return (
    <>
      <Head title="Usage" lead="What everybody spends, on what, and whether it grows.">
        <Periods {...field("period")} />
      </Head>
      <InPeriod key={filters.period} filters={filters} split={field("by")} onOrder={field("order").onValue} />
    </>
  );
}

type RankedRow<List extends "balances" | "keys"> = EverybodysUsage[List]["data"][number];

function InPeriod({ filters, split, onOrder }: InPeriodProps) {
  const api = useApi();
  const { period, order } = filters;
  const [limit, setLimit] = useState(FEW_ROWS);
  const usage = useGet<EverybodysUsage>("admin/usage", { ...filters, limit });
  const onMore = limit === FEW_ROWS ? () => setLimit(MANY_ROWS) : null;
  const lists = { order, onOrder, onMore };
  return (
    <Loaded of={usage}>
      {(data) =>
        data.total.requests === 0 && !data.total.cost_before_usd ? (
          <Empty title="No requests in this period">
            Choose a longer one, or see under <a href="#/hosts">Hosts</a> whether they answer.
          </Empty>
        ) : (
          <>
            <Totals of={data.total} period={period as Period} />
            <section class="card charts" aria-label="Over time">
              <Choice label="By" options={SPLITS} {...split} />
              <UsageBars of={data} nameOf={(name) => keyLabel(data, name)} />
              <div class="row">
                <ExportButton
                  label="usage by key"
                  file={`usage-by-key-${period}-${data.since.slice(0, 10)}`}
                  columns={KEY_COLUMNS}
                  rows={async () =>
                    exportedKeys(await api.get(withQuery("admin/usage", { ...filters, limit: MANY_ROWS })))
                  }
                />
              </div>
              {data.counted_since !== null && (
                <p class="hint">
                  Only the newest 1,000,000 requests are counted, those since {moment(data.counted_since)}.
                </p>
              )}
            </section>
            <List title="Balances" one="Balance" of={data.balances} {...lists} row={BalanceName} />
            <List title="Keys" one="Key" of={data.keys} {...lists} row={KeyName} />
            <List title="Models" one="Model" of={data.models} {...lists} row={RequestsOf} />
            <List title="Hosts" one="Host" of={data.hosts} {...lists} row={RequestsOf} />
          </>
        )
      }
    </Loaded>
  );
}

/** Keys have names where they are listed; models and hosts are called by their ids. */
function keyLabel({ keys }: EverybodysUsage, name: string): string {
  const key = keys.data.find(({ key_id }) => key_id === name);
  return key === undefined ? name || "no host" : (key.name ?? `${key.prefix ?? key.key_id}…`);
}

interface InPeriodProps {
  readonly filters: Readonly<Record<"period" | "order" | "by", string>>;
  readonly split: FieldState;
  readonly onOrder: (order: SpendingOrder) => void;
}

const KEY_COLUMNS = [
  "balance_id",
  "email",
  "wallet",
  "key_id",
  "key_name",
  "requests",
  "failed",
  "input_tokens",
  "output_tokens",
  "cost_usd",
  "host_cost_usd",
  "margin_usd",
  "cost_before_usd",
] as const;

type ExportedKey = ComparedSum & Partial<Record<(typeof KEY_COLUMNS)[number], string | number | null>>;

/** The keys that are listed, with their owners as far as those are, and what the others come to. */
function exportedKeys({ keys: { data, rest }, balances }: EverybodysUsage): ExportedKey[] {
  const owners = new Map(
    balances.data.map(({ balance_id, email, wallet }) => [balance_id, { email, wallet }]),
  );
  const rows = data.map((key) => ({ ...owners.get(key.balance_id ?? ""), ...key, key_name: key.name }));
  return rest.rows === 0 ? rows : [...rows, { ...rest, key_name: `${rest.rows} more keys` }];
}

const FEW_ROWS = "10";
const MANY_ROWS = "1000";

const Totals = ({ of, period }: { of: ComparedSum; period: Period }) => (
  <div class="grid-3">
    <Figure
      label="Spend"
      value={roughUsd(of.cost_usd)}
      hint={
        of.cost_before_usd === null
          ? "not compared: earlier receipts are deleted, or too many"
          : `vs. ${BEFORE[period]}: ${roughUsd(of.cost_before_usd)} (${changeOf(of)})`
      }
    />
    <Figure label="Requests" value={count(of.requests)} hint={`${count(of.failed)} failed`} />
    <Figure
      label="Tokens"
      value={rough(of.input_tokens + of.output_tokens)}
      hint={`${rough(of.input_tokens)} in, ${rough(of.output_tokens)} out`}
    />
  </div>
);

const BEFORE: Record<Period, string> = {
  hour: "the hour before",
  day: "the day before",
  today: "the same time yesterday",
  yesterday: "the day before",
  week: "the week before",
  month: "the 30 days before",
};

/** Growth of the cost over the period before. */
function changeOf({ cost_usd, cost_before_usd: before }: ComparedSum): string {
  if (before === null || (before === 0 && cost_usd === 0)) return "–";
  if (before === 0) return "new";
  const times = cost_usd / before;
  if (times >= 10) return `${rough(Math.round(times))} ×`;
  const percent = Math.round((times - 1) * 100);
  return `${percent > 0 ? "+" : percent < 0 ? "−" : "±"}${Math.abs(percent)} %`;
}

/** The first rows, and what the others come to. */
function List<Row extends object>({ title, one, of, order, onOrder, onMore, row: Row }: ListProps<Row>) {
  const { data, rest } = of;
  if (data.length === 0) return null;
  const cost = usdColumn([...data, rest].map(({ cost_usd }) => cost_usd));
  const margins = [...data, rest].flatMap(({ margin_usd }) => margin_usd ?? []);
  const margin = usdColumn(margins);
  const sort = (by: SpendingOrder) => ({ isBy: order === by, onSort: () => onOrder(by) });
  const ofMargin: Column<ComparedSum> = [
    "Margin",
    "end",
    ({ margin_usd }) => (margin_usd === null ? "–" : margin(margin_usd)),
    sort("loss"),
  ];
  const sums: Column<ComparedSum>[] = [
    ["Requests", "end", ({ requests }) => count(requests), sort("requests")],
    ["Tokens", "end", (of) => `${rough(of.input_tokens)} → ${rough(of.output_tokens)}`, sort("tokens")],
    ["Change", "end", changeOf, sort("growth")],
    ["Cost", "end", ({ cost_usd }) => cost(cost_usd), sort("cost")],
    ...(margins.length === 0 ? [] : [ofMargin]),
  ];
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <TableCard
        of={data}
        by={(line) => String(Object.values(line)[0])}
        columns={[[one, "", (line) => <Row {...line} />], ...sums]}
      >
        {rest.rows > 0 && (
          <tr class="soft">
            <td>
              and {count(rest.rows)} more{" "}
              {onMore !== null && (
                <Button label="Show" about={`more ${title.toLowerCase()}`} variant="link" onClick={onMore} />
              )}
            </td>
            <Cells of={rest} columns={sums} />
          </tr>
        )}
      </TableCard>
    </section>
  );
}

interface ListProps<Row> {
  readonly title: string;
  /** What a row is. */
  readonly one: string;
  readonly of: {
    readonly data: readonly (Row & ComparedSum)[];
    readonly rest: ComparedSum & { readonly rows: number };
  };
  readonly order: string;
  readonly onOrder: (order: SpendingOrder) => void;
  /** Null once everything is shown that can be. */
  readonly onMore: (() => void) | null;
  readonly row: (row: Row) => ComponentChildren;
}

const BalanceName = ({ balance_id, ...owner }: RankedRow<"balances">) => (
  <BalanceLink id={balance_id} of={owner} />
);

/** The requests of a model, or those that a host served. */
const RequestsOf = ({ model = "", host = "" }: { model?: string; host?: string }) => (
  <a href={withQuery("#/requests", { model, host })}>{model || host}</a>
);

/** Also the way to stop a key that spends more than it should. */
function KeyName({ key_id, name, prefix }: RankedRow<"keys">) {
  const [revoked, setRevoked] = useState(false);
  const shown = name ?? `${prefix ?? key_id}…`;
  return (
    <>
      <KeyLink of={{ id: key_id, name, prefix }} />
      {revoked ? (
        <span class="tag plain-tag">revoked</span>
      ) : (
        <RevokeKey
          of={{ id: key_id, name, prefix: shown }}
          about={shown}
          variant="link danger"
          onDone={() => setRevoked(true)}
        />
      )}
    </>
  );
}
