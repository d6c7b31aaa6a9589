/** What measured values come to, and how every bench shows them. */
export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

/** A value a round. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** The value below which `fraction` of the sorted list lies. */
export const percentile = (sorted: readonly number[], fraction: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;

export const quantiles = (sorted: readonly number[]): Quantiles => ({
  p50: percentile(sorted, 0.5),
  p99: percentile(sorted, 0.99),
});

export const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

export const median = (values: readonly number[]): number => percentile(ascending(values), 0.5);

export function spread(values: readonly number[]): Spread {
  const sorted = ascending(values);
  return { median: percentile(sorted, 0.5), low: percentile(sorted, 0), high: percentile(sorted, 1) };
}

export type Cell = string | number | null;

/** As Markdown; numbers have four digits that count. */
export const table = (head: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [head, head.map(() => "---"), ...rows.map((row) => row.map(cell))]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");

function cell(value: Cell): string {
  if (value === null || Number.isNaN(value)) return "–";
  if (typeof value === "string") return value;
  if (Number.isInteger(value) || Math.abs(value) >= 1_000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}
