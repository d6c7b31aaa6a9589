import type { Mutant } from "./mutants.ts";

/** A mutant that no test notices and none has to. */
export interface Accepted {
  readonly file: string;
  /** As the run prints it: the line, and what becomes of it. */
  readonly before: string;
  readonly after: string;
  readonly reason: string;
}

export const isAccepted = (one: Accepted, mutant: Mutant): boolean =>
  one.file === mutant.file && one.before === mutant.before && one.after === mutant.after;

export const ACCEPTED: readonly Accepted[] = [];
