import type { Mutants } from "./mutants/mutant.ts";

/** Something that `run.ts` simulates, from a seed. */
export interface Scenario<Of extends Options = Options> {
  /** What the command line takes besides `--seed` and `--seeds`, with the values that hold otherwise. */
  readonly options: Of;
  /** Unless `--seeds` says otherwise. */
  readonly seeds: number;
  readonly mutants: Mutants;
  /** One seed: what happened, in numbers. */
  run(seed: number, of: Of, onStep: OnStep): Promise<Counts>;
  /** What is known once all seeds are through. */
  says?(totals: Counts): readonly string[];
  readonly kept: string;
}

/** A number is given as `--name N`; whatever is false otherwise, as `--name`. */
export type Options = Readonly<Record<string, number | boolean>>;

export type Counts = Readonly<Record<string, number>>;

/** Tells how far a seed has come. */
export type OnStep = (step: number, of: number) => void;

/** Infers the options. */
export const scenario = <Of extends Options>(one: Scenario<Of>): Scenario<Of> => one;
