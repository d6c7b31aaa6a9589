import type { Together } from "../units/figure.ts";
import type { Metric, Sample } from "./metric.ts";

/**
 * Counters and histograms. A series is looked up by its labels once and then kept by the code that counts with it,
 * so that counting is an addition; and their number has a bound, because what labels are made of may be sent
 * by clients. prom-client was measured and turned down: docs/decisions/0006-metrics.md.
 */
class MetricFamily<Series extends { samples(labels: string): Sample[] }> {
  private readonly series = new Map<string, Series>();

  constructor(
    private readonly name: string,
    private readonly type: "counter" | "histogram",
    private readonly help: string,
    private readonly make: () => Series,
  ) {}

  /**
   * The series with these labels, as written by `labels`; beyond the bound, one shared series for all others.
   */
  of(written: string): Series {
    const known = this.series.get(written);
    if (known !== undefined) return known;
    const labels = this.series.size < MAX_SERIES ? written : OTHERS;
    return this.series.getOrInsertComputed(labels, this.make);
  }

  read(): Metric {
    const { name, type, help } = this;
    const samples = [...this.series].flatMap(([written, series]) => series.samples(written));
    return { name, type, help, together: "sum", samples };
  }
}

export const MAX_SERIES = 5_000;
const OTHERS = 'overflow="true"';

/** `model="a/b",host="c"`: values are escaped, names are not. */
export const labels = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}="${value.replace(UNSAFE, escaped)}"`)
    .join(",");

const UNSAFE = /[\\"\n]/g;
const escaped = (character: string): string => (character === "\n" ? "\\n" : `\\${character}`);

export class CounterSeries {
  value = 0;

  add(amount: number): void {
    this.value += amount;
  }

  samples(labels: string): Sample[] {
    return [["", labels, this.value]];
  }
}

export const counters = (name: string, help: string) =>
  new MetricFamily(name, "counter", help, () => new CounterSeries());

/** How many values were at or below each bound. */
export class Distribution {
  readonly counts: Float64Array;
  sum = 0;

  constructor(readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > this.bounds[at]!) at++;
    this.counts[at]! += 1;
    this.sum += value;
  }

  samples(labels: string): Sample[] {
    const samples: Sample[] = [];
    let total = 0;
    for (const [at, count] of this.counts.entries()) {
      total += count;
      samples.push(["_bucket", `${labels},le="${this.bounds[at] ?? "+Inf"}"`, total]);
    }
    samples.push(["_sum", labels, this.sum], ["_count", labels, total]);
    return samples;
  }
}

export const distributions = (name: string, help: string, bounds: readonly number[]) =>
  new MetricFamily(name, "histogram", help, () => new Distribution(bounds));

/** Values that are read when the metrics are. */
export function sampled(
  about: Pick<Metric, "name" | "help"> & {
    readonly type?: "counter" | "gauge";
    readonly together?: Together;
  },
  values: Iterable<readonly [labels: string, value: number]>,
): Metric {
  const { name, help, type = "gauge", together = "sum" } = about;
  return { name, help, type, together, samples: [...values].map(([labels, value]) => ["", labels, value]) };
}
