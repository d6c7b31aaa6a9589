import type { Price } from "../catalog/catalog.ts";
import { NO_PROMPT, NO_TOKENS, type Tokens, withAudioAnswer, worstCase } from "../ledger/charge.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Reservation } from "../ledger/reservation.ts";
import type { GenerationRequest, Usage } from "../surfaces/surface.ts";

/**
 * The hold grows by `STEP_TOKENS` at a time, `AHEAD_TOKENS` before they are needed. If the balance has no
 * room for a step, smaller steps use it up, because an answer should not stop while there is credit for more
 * of it.
 */
const STEP_TOKENS = 4_096;
const LEAST_STEP_TOKENS = 64;
const AHEAD_TOKENS = 512;

/**
 * Follows a stream's delivered tokens. A request that named no ceiling holds a default one, `covered`; as its
 * answer approaches that, the hold grows in steps while the balance allows. `covers` turns false once the
 * hold is used up and cannot grow.
 */
export class Meter {
  private step = STEP_TOKENS;
  private readonly grows: boolean;
  private readonly price: Price;

  constructor(
    private readonly ledger: Ledger,
    private readonly reservation: Reservation,
    request: GenerationRequest,
    price: Price,
    private covered: number,
  ) {
    this.price = request.answersInAudio ? withAudioAnswer(price) : price;
    this.grows = request.maxOutputTokens === null && reservation.want.amount > 0;
  }

  covers(deliveredTokens: number): boolean {
    const { ledger, reservation, price } = this;
    ledger.delivered(reservation, deliveredTokens);
    while (this.grows && deliveredTokens + AHEAD_TOKENS > this.covered) {
      if (ledger.extend(reservation, worstCase(NO_PROMPT, this.step, price))) {
        this.covered += this.step;
        this.step = Math.min(STEP_TOKENS, this.step * 2);
      } else if (this.step > LEAST_STEP_TOKENS) this.step /= 2;
      else return deliveredTokens < this.covered;
    }
    return true;
  }
}

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
function completed(usage: Tokens, request: GenerationRequest): Tokens {
  const { promptCachedFor1h, promptBesideAudio, answersInAudio } = request;
  const { input, cacheWrite, audioInput: heard, audioOutput: spoken = 0, cacheWrite1h: kept } = usage;
  const cacheWrite1h = kept ?? (promptCachedFor1h ? cacheWrite : 0);
  const audioInput = promptBesideAudio === null ? 0 : (heard ?? Math.max(0, input - promptBesideAudio));
  const audioOutput = answersInAudio ? spoken : 0;
  const isComplete = audioInput === (heard ?? 0) && audioOutput === spoken && cacheWrite1h === (kept ?? 0);
  return isComplete ? usage : { ...usage, audioInput, audioOutput, cacheWrite1h };
}
