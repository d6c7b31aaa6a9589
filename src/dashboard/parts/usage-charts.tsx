import { useState } from "preact/hooks";
import type { UsageAnswer, UsageSum } from "../answers.ts";
import { count, milliseconds, usd } from "../format.ts";
import { useOwner } from "../owner.ts";
import { useResource } from "../resource.ts";
import { type Bar, BarChart, MAX_SERIES } from "./bar-chart.tsx";
import { Loaded } from "./notice.tsx";

/** Spend, requests and first-token times of the balance or of one key. */
export function UsageCharts({ keyId }: { keyId?: string }) {
  const { api } = useOwner();
  const [period, setPeriod] = useState<Period>("week");
  const of = keyId === undefined ? "" : `&key_id=${keyId}`;
  const usage = useResource(
    () => api.get<UsageAnswer>(`v1/usage?period=${period}${of}`),
    [api, period, keyId],
  );
  return (
    <section class="card charts" aria-labelledby="usage">
      <div class="head">
        <h2 id="usage">Usage</h2>
        <Periods value={period} onValue={setPeriod} />
      </div>
      <Loaded of={usage}>
        {(data) =>
          data.stretches.length === 0 ? (
            <p class="soft">No requests in this period.</p>
          ) : (
            <>
              <div class="grid-2">
                <Bars title="Spend" of={data} series={mainModels(data)} measure={costOf} format={usd} />
                <Bars
                  title="Requests"
                  of={data}
                  series={mainModels(data)}
                  measure={requestsOf}
                  format={shortCount}
                />
              </div>
              <FirstTokens of={data} />
              {data.truncated && <p class="hint">Only the newest 50,000 requests are counted.</p>}
            </>
          )
        }
      </Loaded>
    </section>
  );
}

type Period = "day" | "week" | "month";

const PERIODS = [
  ["day", "24 hours"],
  ["week", "7 days"],
  ["month", "30 days"],
] as const;

const Periods = ({ value, onValue }: { value: Period; onValue: (period: Period) => void }) => (
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
  readonly of: UsageAnswer;
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
function mainModels({ stretches }: UsageAnswer): string[] {
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

/**
 * By model and host, the slowest on top: the bar is the median, the thin rest up to what 19 of 20 stay
 * within.
 */
function FirstTokens({ of: { routes } }: { of: UsageAnswer }) {
  const timed = routes
    .filter(({ first_token_ms }) => first_token_ms.p50 !== null)
    .sort((a, b) => b.first_token_ms.p50! - a.first_token_ms.p50!);
  if (timed.length === 0) return null;
  const longest = Math.max(...timed.map(({ first_token_ms }) => first_token_ms.p95!), 1);
  return (
    <figure class="chart">
      <figcaption>
        <h3>First token</h3>
        <span class="soft small">median · 95th percentile</span>
      </figcaption>
      <ul class="spans">
        {timed.map(({ model, host, requests, first_token_ms: { p50, p95 } }) => (
          <li key={`${model} ${host}`}>
            <div class="meter-words">
              <span>
                {model} <span class="soft">on {host}</span>
              </span>
              <span>
                {milliseconds(p50!)} <span class="soft">· {milliseconds(p95!)}</span>
                <span class="unseen">
                  {" "}
                  over {requests} {requests === 1 ? "request" : "requests"}
                </span>
              </span>
            </div>
            <div class="range" aria-hidden="true">
              <i class="range-p95" style={{ width: `${(p95! / longest) * 100}%` }} />
              <i class="range-p50" style={{ width: `${(p50! / longest) * 100}%` }} />
            </div>
          </li>
        ))}
      </ul>
    </figure>
  );
}
