import type { Period, UsageAnswer, UsageSum } from "../../api/usage.ts";
import { count, usd } from "../format.ts";
import { type Bar, BarChart, MAX_SERIES } from "./bar-chart.tsx";

/** Spend and requests over time, by model. */
export function UsageBars({ of }: { of: Stretches }) {
  const series = mainModels(of);
  return (
    <div class="grid-2">
      <Bars title="Spend" of={of} series={series} measure={costOf} format={usd} />
      <Bars title="Requests" of={of} series={series} measure={requestsOf} format={shortCount} />
    </div>
  );
}

type Stretches = Pick<UsageAnswer, "since" | "stretch_ms" | "stretches">;

const PERIODS = [
  ["day", "24 hours"],
  ["week", "7 days"],
  ["month", "30 days"],
] as const;

export const Periods = ({ value, onValue }: { value: Period; onValue: (period: Period) => void }) => (
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

interface BarsProps {
  readonly title: string;
  readonly of: Stretches;
  readonly series: readonly string[];
  readonly measure: (sum: UsageSum) => number;
  readonly format: (value: number) => string;
}

/** Every stretch of the period, those without requests too, or time would seem to jump. */
function Bars({ title, of, series, measure, format }: BarsProps) {
  const bars: Bar[] = [];
  const since = Date.parse(of.since);
  for (let start = since; start <= Date.now(); start += of.stretch_ms) {
    const values = series.map(() => 0);
    for (const stretch of of.stretches) {
      if (Date.parse(stretch.start) !== start) continue;
      const index = series.indexOf(stretch.model);
      values[index < 0 ? series.length - 1 : index]! += measure(stretch);
    }
    bars.push({ label: labelOf(start, of.stretch_ms), values });
  }
  return <BarChart title={title} bars={bars} series={series} format={format} />;
}

/**
 * The models that cost or were used most, and the others as one: the same for each chart, so that colours
 * keep meaning.
 */
function mainModels({ stretches }: Stretches): string[] {
  const totals = new Map<string, { cost: number; requests: number }>();
  for (const { model, cost_usd, requests } of stretches) {
    const total = totals.get(model) ?? { cost: 0, requests: 0 };
    totals.set(model, { cost: total.cost + cost_usd, requests: total.requests + requests });
  }
  const models = [...totals]
    .sort(([, a], [, b]) => b.cost - a.cost || b.requests - a.requests)
    .map(([model]) => model);
  return models.length <= MAX_SERIES ? models : [...models.slice(0, MAX_SERIES - 1), "all others"];
}

const labelOf = (start: number, stretchMs: number): string =>
  stretchMs < 86_400_000
    ? new Date(start).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false })
    : new Date(start).toLocaleDateString("en", { month: "short", day: "numeric", timeZone: "UTC" });

const shortCount = (value: number): string => (Number.isInteger(value) ? count(value) : value.toFixed(1));
