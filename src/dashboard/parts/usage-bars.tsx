import type { ComponentProps } from "preact";
import type { UsageAnswer, UsageSum } from "../../api/usage.ts";
import { count, usd, usdColumn } from "../format.ts";
import { type Bar, BarChart, MAX_SERIES } from "./bar-chart.tsx";
import type { FieldState } from "./field.tsx";

/** Spend and requests over time, by what the stretches are split by. */
export function UsageBars({ of, nameOf }: UsageBarsProps) {
  const series = mainNames(of);
  const bars = { of, series, nameOf };
  return (
    <div class="grid-2">
      <Bars title="Spend" measure={costOf} format={usd} axis={usdColumn} {...bars} />
      <Bars title="Requests" measure={requestsOf} format={shortCount} {...bars} />
    </div>
  );
}

interface UsageBarsProps {
  readonly of: Stretches;
  /** What people call a model, key or host. */
  readonly nameOf: (name: string) => string;
}

/** What charts can be split by. */
export const SPLITS = ["model", "key", "host"];

type Stretches = Pick<UsageAnswer, "since" | "until" | "stretch_ms" | "stretches">;

const PERIODS = [
  ["hour", "1 hour"],
  ["day", "24 hours"],
  ["today", "Today"],
  ["yesterday", "Yesterday"],
  ["week", "7 days"],
  ["month", "30 days"],
] as const;

export const Periods = ({ value, onValue }: FieldState) => (
  <fieldset class="segments">
    <legend class="unseen">Period</legend>
    {PERIODS.map(([period, name]) => (
      <label key={period}>
        <input type="radio" name="period" checked={value === period} onChange={() => onValue(period)} />
        <span>{name}</span>
      </label>
    ))}
  </fieldset>
);

const costOf = ({ cost_usd }: UsageSum): number => cost_usd;
const requestsOf = ({ requests }: UsageSum): number => requests;

interface BarsProps extends Pick<ComponentProps<typeof BarChart>, "title" | "format" | "axis"> {
  readonly of: Stretches;
  readonly series: readonly string[];
  readonly measure: (sum: UsageSum) => number;
  readonly nameOf: (name: string) => string;
}

function Bars({ of, series, measure, nameOf, ...chart }: BarsProps) {
  const indexes = new Map(series.map((name, index) => [name, index]));
  const bars = barsOf(of, series.length, (values, stretch) => {
    values[indexes.get(stretch.name) ?? series.length - 1]! += measure(stretch);
  });
  return (
    <BarChart
      bars={bars}
      series={series.map((name) => (name === OTHERS ? OTHERS : nameOf(name)))}
      {...chart}
    />
  );
}

/** A bar for every stretch of the period, those without requests too, or time would seem to jump. */
export function barsOf<Stretch extends { readonly start: string }>(
  of: Pick<Stretches, "since" | "until" | "stretch_ms"> & { readonly stretches: readonly Stretch[] },
  series: number,
  add: (values: number[], stretch: Stretch) => void,
): Bar[] {
  const since = Date.parse(of.since);
  // Days are those of UTC.
  const until = of.until === null ? Date.now() : Date.parse(of.until) - 1;
  const bars: { readonly label: string; readonly values: number[] }[] = [];
  for (let start = since; start <= until; start += of.stretch_ms)
    bars.push({ label: labelOf(start, of.stretch_ms), values: Array(series).fill(0) });
  for (const stretch of of.stretches) {
    const bar = bars[(Date.parse(stretch.start) - since) / of.stretch_ms];
    if (bar !== undefined) add(bar.values, stretch);
  }
  return bars;
}

/**
 * What cost or was used most, and the others as one: the same for each chart, so that colours
 * keep meaning.
 */
export function mainNames({ stretches }: Pick<Stretches, "stretches">): string[] {
  const totals = new Map<string, { cost: number; requests: number }>();
  for (const { name, cost_usd, requests } of stretches) {
    const total = totals.get(name) ?? { cost: 0, requests: 0 };
    totals.set(name, { cost: total.cost + cost_usd, requests: total.requests + requests });
  }
  const names = [...totals]
    .sort(([, a], [, b]) => b.cost - a.cost || b.requests - a.requests)
    .map(([name]) => name);
  return names.length <= MAX_SERIES ? names : [...names.slice(0, MAX_SERIES - 1), OTHERS];
}

const OTHERS = "all others";

const labelOf = (start: number, stretchMs: number): string =>
  stretchMs < 86_400_000
    ? new Date(start).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false })
    : new Date(start).toLocaleDateString("en", { month: "short", day: "numeric", timeZone: "UTC" });

const shortCount = (value: number): string => (Number.isInteger(value) ? count(value) : value.toFixed(1));
