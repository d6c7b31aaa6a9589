import type { Mutants } from "./mutants/mutant.ts";
import { settled, World } from "./world.ts";

/** A kind of world that `run.ts` simulates. */
export interface Scenario<Of extends Options = Options, What extends string = string> {
  /** What the command line takes besides `--seed` and `--seeds`, with the values that hold otherwise. */
  readonly options: Of;
  /** Unless `--seeds` says otherwise. */
  readonly seeds: number;
  readonly mutants: Mutants;
  /** What may happen. */
  readonly counts: readonly What[];
  steps(of: Of): number;
  /** How whatever can go on goes on; over a turn of the event loop unless it says otherwise. */
  readonly settled?: () => Promise<void>;
  /** Puts into a new world who acts in it, and who judges. */
  fill(world: World<What>, of: Of): void;
  /** What is known once all seeds are through. */
  says?(totals: Readonly<Record<string, number>>): readonly string[];
  readonly kept: string;
}

/** A number is given as `--name N`; whatever is false otherwise, as `--name`. */
export type Options = Readonly<Record<string, number | boolean>>;

/** Infers the options and the counts. */
export const scenario = <Of extends Options, const What extends string>(
  one: Scenario<Of, What>,
): Scenario<Of, What> => one;

/** One seed: what happened in it, in numbers. */
export async function simulate<Of extends Options, What extends string>(
  { counts, options, fill, steps, settled: settles = settled }: Scenario<Of, What>,
  seed: number,
  given: { readonly [Name in keyof Of]?: Of[Name] | (Of[Name] extends boolean ? boolean : number) } = {},
  onStep?: (step: number, of: number) => void,
): Promise<Record<What, number>> {
  const world = new World(seed, counts, settles);
  const of = { ...options, ...given } as Of;
  fill(world, of);
  await world.run(steps(of), onStep);
  return world.counts;
}

export const listed = (totals: Readonly<Record<string, number>>): string =>
  `${Object.entries(totals)
    .map(([name, count]) => `${Math.round(count)} ${name}`)
    .join(", ")}.`;
