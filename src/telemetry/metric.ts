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
  const all = reports.flatMap(({ worker, metrics }) => metrics.map((metric) => labelled(metric, worker)));
  return [...Map.groupBy(all, ({ name }) => name).values()].map((same) => {
    const samples = same.flatMap((metric) => metric.samples);
    const series = Map.groupBy(samples, ([suffix, labels]) => `${suffix}{${labels}}`);
    return { ...same[0]!, samples: [...series.values()].map((one) => combined(one, same[0]!.together)) };
  });
}

/**
 * The metrics to keep of a process that has ended or is silent: counters. If they were left out, sums would
 * fall, and their return would look like that many new requests. Metrics that are shown apart start over with
 * the process, as after any restart.
 */
export const lasting = (metrics: readonly Metric[]): Metric[] =>
  metrics.filter(({ type, together }) => type !== "gauge" && together === "sum");

function labelled(metric: Metric, worker: ProcessMetrics["worker"]): Metric {
  if (metric.together !== "apart") return metric;
  const samples = metric.samples.map(
    ([suffix, labels, value]): Sample => [
      suffix,
      [`worker="${worker}"`, labels].filter(Boolean).join(","),
      value,
    ],
  );
  return { ...metric, samples };
}

function combined(samples: readonly Sample[], together: Together): Sample {
  const [suffix, labels] = samples[0]!;
  const values = samples.map(([, , value]) => value);
  const sum = values.reduce((all, some) => all + some, 0);
  if (together === "least") return [suffix, labels, Math.min(...values)];
  return [suffix, labels, together === "mean" ? sum / values.length : sum];
}
