import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ComparedSum, EverybodysUsage, Period, SpendingOrder } from "../../api/usage.ts";
import type { Cell } from "../../units/csv.ts";
import { rough } from "../../units/numbers.ts";
import { count, moment, roughUsd, usdColumn } from "../format.ts";
import { ExportButton, usdCell } from "../parts/export-button.tsx";
import { Figure } from "../parts/figure.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { type Column, TableCard } from "../parts/table.tsx";
import { Periods, UsageBars } from "../parts/usage-bars.tsx";
import { useResource } from "../resource.ts";
import { useQuery } from "../route.ts";
import { useOperator } from "./operator.ts";
import { BalanceLink } from "./person.tsx";

/** Who spends what, on which model, and whether it grows. */
export function Usage() {
  const [query, setQuery] = useQuery(["period", "order"]);
  const period = (query.period || "week") as Period;
  const order = (query.order || "cost") as SpendingOrder;
  return (
    <>
      <Head title="Usage" lead="What everybody spends, on what, and whether it grows.">
        <Periods value={period} onValue={(period) => setQuery({ ...query, period })} />
      </Head>
      <InPeriod
        key={period}
        period={period}
        order={order}
        onOrder={(order) => setQuery({ ...query, order })}
      />
    </>
  );
}

type RankedRow<List extends "balances" | "keys"> = EverybodysUsage[List]["data"][number];

function InPeriod({ period, order, onOrder }: InPeriodProps) {
  const api = useOperator();
  const [limit, setLimit] = useState(FEW_ROWS);
  const usage = useResource(
    () => api.get<EverybodysUsage>(`admin/usage?period=${period}&order=${order}&limit=${limit}`),
    [api, order, limit],
  );
  const onMore = limit === FEW_ROWS ? () => setLimit(MANY_ROWS) : null;
  const lists = { order, onOrder, onMore };
  return (
    <Loaded of={usage}>
      {(data) =>
        data.total.requests === 0 && !data.total.cost_before_usd ? (
          <Empty title="No requests in this period">
            <p class="soft">
              Choose a longer one, or see under <a href="#/">Hosts</a> whether they answer.
            </p>
          </Empty>
        ) : (
          <>
            <Totals of={data.total} period={period} />
            <section class="card charts" aria-label="Over time">
              <UsageBars of={data} />
              <div class="row">
                <ExportButton
                  label="usage by key"
                  file={`usage-by-key-${period}-${data.since.slice(0, 10)}`}
                  columns={KEY_COLUMNS}
                  rows={async () =>
                    keyRows(await api.get(`admin/usage?period=${period}&order=${order}&limit=${MANY_ROWS}`))
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
            <List title="Models" one="Model" of={data.models} {...lists} row={({ model }) => <>{model}</>} />
            <List
              title="Hosts"
              one="Host"
              of={data.hosts}
              {...lists}
              row={({ host }) => <a href="#/">{host}</a>}
            />
          </>
        )
      }
    </Loaded>
  );
}

interface InPeriodProps {
  readonly period: Period;
  readonly order: SpendingOrder;
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
  "cost_before_usd",
];

/** The keys that are listed, with their owners as far as those are, and what the others come to. */
function keyRows({ keys, balances }: EverybodysUsage): Cell[][] {
  const owners = new Map(balances.data.map((balance) => [balance.balance_id, balance]));
  const sums = (of: ComparedSum): Cell[] => [
    of.requests,
    of.failed,
    of.input_tokens,
    of.output_tokens,
    usdCell(of.cost_usd),
    of.cost_before_usd === null ? null : usdCell(of.cost_before_usd),
  ];
  const rows = keys.data.map((key) => {
    const owner = owners.get(key.balance_id ?? "");
    const whose = [key.balance_id, owner?.email ?? null, owner?.wallet ?? null];
    return [...whose, key.key_id, key.name, ...sums(key)];
  });
  const { rest } = keys;
  const others = [null, null, null, null, `${rest.rows} more keys`, ...sums(rest)];
  return rest.rows === 0 ? rows : [...rows, others];
}

const FEW_ROWS = 10;
const MANY_ROWS = 1_000;

const Totals = ({ of, period }: { of: ComparedSum; period: Period }) => (
  <div class="grid-3">
    <Figure
      label="Spend"
      value={roughUsd(of.cost_usd)}
      hint={
        of.cost_before_usd === null
          ? "not compared: earlier receipts are deleted, or too many"
          : `${changeOf(of)} · ${roughUsd(of.cost_before_usd)} ${BEFORE[period]}`
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
  day: "at the same time the day before",
  week: "at the same time the week before",
  month: "at the same time 30 days before",
};

/** Of the cost, over the period before. */
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
  const sortable = (label: string, by: SpendingOrder, className = "end"): Column => [
    label,
    className,
    { isBy: order === by, onSort: () => onOrder(by) },
  ];
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <TableCard
        columns={[
          one,
          sortable("Requests", "requests", "end wide-only"),
          sortable("Tokens", "tokens", "end wide-only"),
          sortable("Change", "growth"),
          sortable("Cost", "cost"),
        ]}
      >
        {data.map((line) => (
          <tr key={String(Object.values(line)[0])}>
            <td>
              <Row {...line} />
            </td>
            <Sums of={line} cost={cost} />
          </tr>
        ))}
        {rest.rows > 0 && (
          <tr class="soft">
            <td>
              and {count(rest.rows)} more{" "}
              {onMore !== null && (
                <button type="button" class="link" onClick={onMore}>
                  Show<span class="unseen"> more {title.toLowerCase()}</span>
                </button>
              )}
            </td>
            <Sums of={rest} cost={cost} />
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
  readonly order: SpendingOrder;
  readonly onOrder: (order: SpendingOrder) => void;
  /** Null once everything is shown that can be. */
  readonly onMore: (() => void) | null;
  readonly row: (row: Row) => ComponentChildren;
}

const Sums = ({ of, cost }: { of: ComparedSum; cost: (amount: number) => string }) => (
  <>
    <td class="end wide-only">{count(of.requests)}</td>
    <td class="end wide-only">
      {rough(of.input_tokens)} → {rough(of.output_tokens)}
    </td>
    <td class="end">{changeOf(of)}</td>
    <td class="end">{cost(of.cost_usd)}</td>
  </>
);

const BalanceName = ({ balance_id, ...owner }: RankedRow<"balances">) => (
  <BalanceLink id={balance_id} of={owner} />
);

/** Leads to the key's requests, which are with its balance. */
const KeyName = ({ key_id, name, prefix, balance_id }: RankedRow<"keys">) => (
  <>
    <a href={`#/balances/${balance_id}?key_id=${key_id}`}>{name ?? "Unnamed key"}</a>
    <div class="mono soft small unbroken">{prefix}…</div>
  </>
);
