import type { Usage } from "../surface.ts";

/**
 * The models that an answer was tried on, as Anthropic's hosts list them where they fall back by themselves
 * (`BetaIterationsUsage`): a `message` for each that declined, and a `fallback_message` for the one that served. By that
 * entry clients see that another model than theirs did. `served` is null where all declined.
 */
export const iterationsOf = (declined: readonly Iteration[], served: Iteration | null): object[] => [
  ...declined.map((iteration) => entry("message", iteration)),
  ...(served === null ? [] : [entry("fallback_message", served)]),
];

interface Iteration {
  readonly model: string;
  readonly usage: Usage | null;
}

const entry = (type: "message" | "fallback_message", { model, usage }: Iteration): object => ({
  type,
  model,
  input_tokens: usage?.input ?? 0,
  output_tokens: usage?.output ?? 0,
  cache_creation_input_tokens: usage?.cacheWrite ?? 0,
  cache_read_input_tokens: usage?.cacheRead ?? 0,
  cache_creation: null,
});
