/** How the same series of several processes are combined; `apart` shows each, labelled with its process. */
export type Together = "sum" | "mean" | "least" | "apart";

/** A metric with one value; by default a gauge that is summed over processes. */
export interface Figure {
  readonly name: string;
  readonly help: string;
  readonly value: number;
  readonly type?: "counter";
  readonly together?: Together;
}
