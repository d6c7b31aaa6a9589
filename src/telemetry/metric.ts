import type { Together } from "../units/figure.ts";
/**
 * A metric as it stood at one moment: what Prometheus reads, and what one process tells another of itself.
 */
export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly together: Together;
  readonly samples: readonly Sample[];
}

/** The suffix is a histogram's: `_bucket`, `_sum` or `_count`. */
export type Sample = readonly [suffix: string, labels: string, value: number];

/** Prometheus's text exposition format, version 0.0.4. */
export function prometheusText(metrics: readonly Metric[]): string {
  const lines: string[] = [];
  for (const { name, type, help, samples } of metrics) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const [suffix, labels, value] of samples) {
      lines.push(`${name}${suffix}${labels === "" ? "" : `{${labels}}`} ${value}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** What one process said of itself. */
export interface ProcessMetrics {
  /** What is shown apart is labelled with it. */
  readonly worker: number | "keeper";
  readonly metrics: readonly Metric[];
}

/** One answer out of many: every metric once, every series once. */
export function togetherOf(reports: readonly ProcessMetrics[]): Metric[] {
  const found = new Map<string, { metric: Metric; series: Map<string, Series> }>();
  for (const { worker, metrics } of reports) {
    for (const metric of metrics) {
      const { series } = found.getOrInsertComputed(metric.name, () => ({ metric, series: new Map() }));
      for (const sample of metric.samples) add(series, metric.together, sample, worker);
    }
  }
  return [...found.values()].map(({ metric, series }) => ({
    ...metric,
    samples: [...series.values()].map((one) => sampleOf(one, metric.together)),
  }));
}

/**
 * The metrics to keep of a process that has ended or is silent: counters. If they were left out, sums would
 * fall, and their return would look like that many new requests. Metrics that are shown apart start over with
 * the process, as after any restart.
 */
export const lasting = (metrics: readonly Metric[]): Metric[] =>
  metrics.filter(({ type, together }) => type !== "gauge" && together === "sum");

interface Series {
  readonly suffix: string;
  readonly labels: string;
  value: number;
  count: number;
}

function add(
  found: Map<string, Series>,
  together: Together,
  [suffix, written, value]: Sample,
  worker: ProcessMetrics["worker"],
): void {
  const labels = together === "apart" ? [`worker="${worker}"`, written].filter(Boolean).join(",") : written;
  const key = `${suffix}{${labels}}`;
  const known = found.get(key);
  if (known === undefined) {
    found.set(key, { suffix, labels, value, count: 1 });
    return;
  }
  known.value = together === "least" ? Math.min(known.value, value) : known.value + value;
  known.count += 1;
}

const sampleOf = ({ suffix, labels, value, count }: Series, together: Together): Sample => [
  suffix,
  labels,
  together === "mean" ? value / count : value,
];
