import type { Metric } from "../telemetry/metric.ts";

/** What a worker tells its supervisor. Both are of one build, so that nothing here is ever read by another version. */
export type FromWorker =
  | { readonly kind: "metrics_wanted"; readonly question: number }
  | { readonly kind: "metrics_read"; readonly round: number; readonly metrics: readonly Metric[] };

/** What the supervisor tells a worker. */
export type ToWorker =
  | { readonly kind: "read_metrics"; readonly round: number }
  | { readonly kind: "metrics"; readonly question: number; readonly metrics: readonly Metric[] };

/** A worker's end of the line to its supervisor. */
export interface Line {
  send(message: FromWorker): void;
  listen(take: (message: ToWorker) => void): void;
}
