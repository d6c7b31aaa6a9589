import { type ByRetention, RETENTIONS } from "../catalog/price.ts";
import type { Tokens } from "../catalog/tokens.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";

/**
 * Tokens whose kind a host does not report count as the most expensive kind that the request has. Audio
 * tokens are believed only for requests that contain audio.
 */
export function completed(usage: Tokens, request: GenerationRequest): Tokens {
  const { promptRetentions, promptWithoutAudio, answersInAudio } = request;
  const { input, cacheWrite, audioInput: reportedInput, audioOutput: spoken = 0, cacheWrites: kept } = usage;
  const cacheWrites = kept ?? longestOf(promptRetentions, cacheWrite);
  const audioInput =
    promptWithoutAudio === null ? 0 : (reportedInput ?? Math.max(0, input - promptWithoutAudio));
  const audioOutput = answersInAudio ? spoken : 0;
  const isComplete = audioInput === (reportedInput ?? 0) && audioOutput === spoken && cacheWrites === kept;
  return isComplete
    ? usage
    : { ...usage, audioInput, audioOutput, ...(cacheWrites === undefined ? {} : { cacheWrites }) };
}

/** All that was written, with the longest retention that the request names. */
function longestOf(named: ByRetention<unknown>, cacheWrite: number): ByRetention<number> | undefined {
  const longest = RETENTIONS.findLast((one) => named[one] !== undefined);
  return longest === undefined || cacheWrite === 0 ? undefined : { [longest]: cacheWrite };
}
