import { NO_TOKENS, type Tokens } from "../ledger/charge.ts";
import type { GenerationRequest, Usage } from "../surfaces/surface.ts";

/**
 * What a finished answer used. The host's report is evidence, not truth: if it claims no output although text
 * arrived, the gateway's own count takes its place.
 */
export function usedTokens(
  usage: Usage | null,
  countedOutput: number,
  request: GenerationRequest,
): { tokens: Tokens; from: "host" | "counted" } {
  if (usage !== null && (usage.output > 0 || countedOutput === 0)) {
    return { tokens: completed(usage, request), from: "host" };
  }
  return { tokens: deliveredTokens(usage, countedOutput, request), from: "counted" };
}

/**
 * What an unfinished answer delivered: the prompt, at the size that the host reported if it did, and the text
 * so far. Counted from the text, that may be more than the host was allowed to write; the client is charged
 * for no more than it allowed.
 */
export function deliveredTokens(
  usage: Usage | null,
  countedOutput: number,
  request: GenerationRequest,
): Tokens {
  const told = usage !== null && usage.input + usage.cacheRead + usage.cacheWrite > 0;
  const known = told ? usage : { ...NO_TOKENS, input: request.promptEstimate };
  const { input, audioInput = 0, cacheRead, cacheWrite, cacheWrite1h = 0 } = completed(known, request);
  const allowed = (request.maxOutputTokens ?? Number.POSITIVE_INFINITY) * request.choices;
  const output = Math.min(countedOutput, allowed);
  return { input, audioInput, cacheRead, cacheWrite, cacheWrite1h, output, reasoning: 0 };
}

/**
 * Tokens whose kind a host does not report count as the dearer kind, if the request has that kind. Audio
 * tokens are believed only for requests that contain audio.
 */
export function completed(usage: Tokens, request: GenerationRequest): Tokens {
  const { promptCachedFor1h, promptBesideAudio, answersInAudio } = request;
  const { input, cacheWrite, audioInput: heard, audioOutput: spoken = 0, cacheWrite1h: kept } = usage;
  const cacheWrite1h = kept ?? (promptCachedFor1h ? cacheWrite : 0);
  const audioInput = promptBesideAudio === null ? 0 : (heard ?? Math.max(0, input - promptBesideAudio));
  const audioOutput = answersInAudio ? spoken : 0;
  const isComplete = audioInput === (heard ?? 0) && audioOutput === spoken && cacheWrite1h === (kept ?? 0);
  return isComplete ? usage : { ...usage, audioInput, audioOutput, cacheWrite1h };
}
