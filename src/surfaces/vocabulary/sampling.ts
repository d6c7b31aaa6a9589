import type { Conversation } from "./conversation.ts";
import type { TranslationReport } from "./translation-report.ts";

export type Sampling = Pick<Conversation, "temperature" | "topP" | "topK">;

/**
 * How the host has to sample. Reasoning models choose that themselves and answer 400 to such settings:
 * Anthropic's from Opus 4.7 on ("Migrating to Claude Opus 4.7"), OpenAI's from o1 on. What is left out is
 * named, but for values that ask for nothing.
 */
export function samplingFor(settings: Sampling, report: TranslationReport): Sampling {
  if (report.target.quirks.noSampling !== true) return settings;
  if ((settings.temperature ?? 1) !== 1) report.omit("temperature");
  if ((settings.topP ?? 1) !== 1) report.omit("top_p");
  if (settings.topK !== null) report.omit("top_k");
  return NONE;
}

const NONE: Sampling = { temperature: null, topP: null, topK: null };
