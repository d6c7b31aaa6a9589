import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ComparedSum, EverybodysUsage, Period, SpendingOrder } from "../../api/usage.ts";
import { rough } from "../../units/numbers.ts";
import { count, moment, roughUsd, usdColumn } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { type CsvColumns, ExportButton, usdCell } from "../parts/export-button.tsx";
import { Figure } from "../parts/figure.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { RevokeDialog } from "../parts/revoke-dialog.tsx";
import { Cells, type Column, TableCard } from "../parts/table.tsx";
import { Periods, SplitChoice, UsageBars } from "../parts/usage-bars.tsx";
import { useGet } from "../resource.ts";
import { useQuery } from "../route.ts";
import { useOperator } from "./operator.ts";
import { BalanceLink } from "./person.tsx";
import { RoleButton } from "./role-button.tsx";

/** Who spends what, on which model, and whether it grows. */
export function Usage() {
  const [query, setQuery] = useQuery(["period", "order", "by"]);
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
        split={{ value: query.by || "model", onValue: (by) => setQuery({ ...query, by }) }}
        onOrder={(order) => setQuery({ ...query, order })}
      />
    </>
  );
}

type RankedRow<List extends "balances" | "keys"> = EverybodysUsage[List]["data"][number];

function InPeriod({ period, order, split, onOrder }: InPeriodProps) {
  const api = useOperator();
  const [limit, setLimit] = useState(FEW_ROWS);
  const path = `admin/usage?period=${period}&order=${order}&by=${split.value}`;
  const usage = useGet<EverybodysUsage>(api, `${path}&limit=${limit}`);
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
            <Totals of={data.total} period={period} />
            <section class="card charts" aria-label="Over time">
              <SplitChoice {...split} />
              <UsageBars of={data} nameOf={(name) => keyLabel(data, name)} />
              <div class="row">
                <ExportButton
                  label="usage by key"
                  file={`usage-by-key-${period}-${data.since.slice(0, 10)}`}
                  columns={KEY_COLUMNS}
                  rows={async () => exportedKeys(await api.get(`${path}&limit=${MANY_ROWS}`))}
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
            <List
              title="Models"
              one="Model"
              of={data.models}
              {...lists}
              row={({ model }) => <a href={`#/requests?model=${encodeURIComponent(model)}`}>{model}</a>}
            />
            <List
              title="Hosts"
              one="Host"
              of={data.hosts}
              {...lists}
              row={({ host }) => <a href={`#/requests?host=${encodeURIComponent(host)}`}>{host}</a>}
            />
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
  readonly split: { readonly value: string; readonly onValue: (value: string) => void };
  readonly period: Period;
  readonly order: SpendingOrder;
  readonly onOrder: (order: SpendingOrder) => void;
}

const KEY_COLUMNS: CsvColumns<ComparedSum & Partial<ExportedKey>> = {
  balance_id: (of) => of.balance_id,
  email: (of) => of.email,
  wallet: (of) => of.wallet,
  key_id: (of) => of.key_id,
  key_name: (of) => of.name,
  requests: (of) => of.requests,
  failed: (of) => of.failed,
  input_tokens: (of) => of.input_tokens,
  output_tokens: (of) => of.output_tokens,
  cost_usd: (of) => usdCell(of.cost_usd),
  host_cost_usd: (of) => (of.host_cost_usd === null ? null : usdCell(of.host_cost_usd)),
  margin_usd: (of) => (of.margin_usd === null ? null : usdCell(of.margin_usd)),
  cost_before_usd: (of) => (of.cost_before_usd === null ? null : usdCell(of.cost_before_usd)),
};

type ExportedKey = Omit<RankedRow<"keys">, "prefix"> & Pick<RankedRow<"balances">, "email" | "wallet">;

/** The keys that are listed, with their owners as far as those are, and what the others come to. */
function exportedKeys({ keys: { data, rest }, balances }: EverybodysUsage) {
  const owners = new Map(
    balances.data.map(({ balance_id, email, wallet }) => [balance_id, { email, wallet }]),
  );
  const rows = data.map((key) => ({ ...owners.get(key.balance_id ?? ""), ...key }));
  return rest.rows === 0 ? rows : [...rows, { ...rest, name: `${rest.rows} more keys` }];
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
  const sums = (
    [
      ["Requests", "end", ({ requests }: ComparedSum) => count(requests), "requests"],
      [
        "Tokens",
        "end",
        (of: ComparedSum) => `${rough(of.input_tokens)} → ${rough(of.output_tokens)}`,
        "tokens",
      ],
      ["Change", "end", changeOf, "growth"],
      ["Cost", "end", ({ cost_usd }: ComparedSum) => cost(cost_usd), "cost"],
      [
        "Margin",
        "end",
        ({ margin_usd }: ComparedSum) => (margin_usd === null ? "–" : margin(margin_usd)),
        "loss",
      ],
    ] as const
  )
    .slice(0, margins.length === 0 ? -1 : undefined)
    .map(
      ([label, className, cell, by]): Column<ComparedSum> => [
        label,
        className,
        cell,
        { isBy: order === by, onSort: () => onOrder(by) },
      ],
    );
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
  readonly order: SpendingOrder;
  readonly onOrder: (order: SpendingOrder) => void;
  /** Null once everything is shown that can be. */
  readonly onMore: (() => void) | null;
  readonly row: (row: Row) => ComponentChildren;
}

const BalanceName = ({ balance_id, ...owner }: RankedRow<"balances">) => (
  <BalanceLink id={balance_id} of={owner} />
);

/** Also the way to stop a key that spends more than it should. */
function KeyName({ key_id, name, prefix }: RankedRow<"keys">) {
  const api = useOperator();
  const [revoked, setRevoked] = useState(false);
  const { open, show, ends } = useDialog<"revoke">(() => setRevoked(true));
  const shown = name ?? `${prefix ?? key_id}…`;
  return (
    <>
      <a href={`#/keys/${key_id}`}>{name ?? "Unnamed key"}</a>
      <div class="mono soft small unbroken">{prefix}…</div>
      {revoked ? (
        <span class="tag plain-tag">revoked</span>
      ) : (
        <RoleButton label="Revoke" about={shown} variant="link danger" onClick={() => show("revoke")} />
      )}
      {open === "revoke" && (
        <RevokeDialog
          of={{ name, prefix: shown }}
          revoke={() => api.post(`admin/keys/${key_id}/revoke`)}
          {...ends}
        />
      )}
    </>
  );
}
