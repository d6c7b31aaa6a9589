import type { Tokens } from "../ledger/charge.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";

/**
 * Tokens whose kind a host does not report count as the more expensive kind, if the request has that kind. Audio
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
