import type { Random } from "../sim/random.ts";
import { KINDS, type Mutant } from "./mutants.ts";

/** So many, the kinds taking turns: uniformly drawn, most would negate a condition, which nearly every test notices. */
export function sample(mutants: readonly Mutant[], size: number, random: Random): Mutant[] {
  const kinds = KINDS.map((kind) =>
    shuffled(
      mutants.filter((mutant) => mutant.kind === kind),
      random,
    ),
  );
  const drawn: Mutant[] = [];
  while (drawn.length < size && kinds.some((left) => left.length > 0))
    for (const left of kinds) if (drawn.length < size && left.length > 0) drawn.push(left.pop()!);
  return drawn;
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const left = [...items];
  const drawn: T[] = [];
  while (left.length > 0) drawn.push(...left.splice(random.below(left.length), 1));
  return drawn;
}
