import type { Quirks } from "../../catalog/catalog.ts";
import type { Conversation } from "./conversation.ts";
import type { Saying } from "./saying.ts";

export type Sampling = Pick<Conversation, "temperature" | "topP" | "topK">;

/**
 * How the host is told to sample. Reasoning models choose that themselves and answer 400 to who tells them:
 * Anthropic's from Opus 4.7 on ("Migrating to Claude Opus 4.7"), OpenAI's from o1 on. What is left out is
 * named, but for values that ask for nothing.
 */
export function samplingFor(wish: Sampling, quirks: Quirks, saying: Saying): Sampling {
  if (quirks.noSampling !== true) return wish;
  if ((wish.temperature ?? 1) !== 1) saying.omit("temperature");
  if ((wish.topP ?? 1) !== 1) saying.omit("top_p");
  if (wish.topK !== null) saying.omit("top_k");
  return NONE;
}

const NONE: Sampling = { temperature: null, topP: null, topK: null };
