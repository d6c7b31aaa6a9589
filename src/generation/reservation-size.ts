import type { Model } from "../catalog/catalog.ts";
import { highestPrice, type Price, type Rates } from "../catalog/price.ts";
import { type PromptCharge, withAudioAnswer, worstCase } from "../ledger/charge.ts";
import type { ChargeLimit } from "../ledger/reservation.ts";
import { answersWhole, type Candidate, ceilingAt } from "../routing/candidate.ts";
import { chainOf } from "../routing/native-fallbacks.ts";
import type { Plan } from "../routing/plan.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { AdmissionRequest } from "./admission-request.ts";
import { reachedRates } from "./billed-tokens.ts";
import type { GenerationDeps } from "./deps.ts";
import { nativeFallbackPrice } from "./native-fallback-price.ts";

/** What a request may cost, and what of that is held at once. */
export interface SizedRequest {
  readonly worst: NanoUsd;
  readonly amount: NanoUsd;
  /** Output tokens, of all choices together: of the worst case, and those that are held at once. */
  readonly outputCeiling: number;
  readonly heldOutput: number;
  /** The most that there can be. */
  readonly longest: number;
  readonly most: ChargeLimit;
  readonly prompt: PromptCharge;
  /** Bounds every route on the plan. */
  readonly price: Price;
  /** The rates of the step that the prompt can reach. */
  readonly rates: Rates;
}

/** A prompt whose bound is null is held at the model's whole context, which bounds every prompt. */
export function size(
  admission: AdmissionRequest,
  promptBound: number | null,
  deps: Pick<GenerationDeps, "expected">,
): SizedRequest {
  const { plan, request, settings } = admission;
  const longestOne = longestAnswer(plan);
  const named = highestCeiling(admission);
  const ceiling = Math.min(named ?? settings.defaultMaxOutputTokens, longestOne);
  const outputCeiling = ceiling * request.choices;
  // Where the client named no ceiling, the answer may be as long as the model's longest.
  const longest = named === null ? longestOne * request.choices : outputCeiling;
  const heldOutput = heldAtOnce(outputCeiling, longest, admission, deps);
  const widest = widestModel(plan).contextLength;
  const bound = promptBound === null || request.promptUnseen ? widest : Math.min(promptBound, widest);
  const { promptRetentions: retentions, promptWithoutAudio } = request;
  const prompt = { bound, retentions, hasAudio: promptWithoutAudio !== null };
  const bounding = highestPrice(plan.candidates.map((candidate) => heldPrice(candidate, request, bound)));
  const price = request.answersInAudio ? withAudioAnswer(bounding) : bounding;
  const rates = reachedRates(price, bound);
  const isFree = plan.tier === "open";
  const worst = isFree ? ZERO_USD : worstCase(prompt, outputCeiling, rates);
  const amount = isFree || heldOutput === outputCeiling ? worst : worstCase(prompt, heldOutput, rates);
  const mostAmount = isFree || longest === outputCeiling ? worst : worstCase(prompt, longest, rates);
  const runs = Math.max(...plan.candidates.map((candidate) => chainOf(candidate).length));
  const most = { amount: mostAmount, tokens: (bound + longest) * runs };
  return { worst, amount, outputCeiling, heldOutput, longest, most, prompt, price, rates };
}

const heldPrice = (candidate: Candidate, request: GenerationRequest, bound: number): Price =>
  candidate.nativeFallbacks === undefined ? candidate.price : nativeFallbackPrice(candidate, request, bound);

/**
 * All of the ceiling, unless the answer is seen as it is written, by kind of token, and its host can be stopped.
 * Whole answers are held whole: nobody could be charged for one that was given up in the middle.
 */
function heldAtOnce(
  ceiling: number,
  longest: number,
  { key, plan, request, settings }: AdmissionRequest,
  deps: Pick<GenerationDeps, "expected">,
): number {
  if (!request.stream || request.promptUnseen || request.answersInAudio) return ceiling;
  const { candidates } = plan;
  if (!candidates.every(isStoppable)) return ceiling;
  const { firstTokenMs } = settings.attempts;
  return deps.expected.atOnce(ceiling, longest, {
    rotationId: key.rotationId,
    model: candidates[0]!.model.id,
    firstTokenMs,
  });
}

/** Its host streams, and bills nothing that it has not written by the time at which it is left. */
const isStoppable = (candidate: Candidate): boolean =>
  !answersWhole(candidate) && candidate.route.host.onDisconnect === "cancel";

function longestAnswer({ candidates }: Plan): number {
  let longest = 0;
  for (const { model } of candidates) longest = Math.max(longest, model.maxOutputTokens);
  return longest;
}

function highestCeiling({ plan, request }: AdmissionRequest): number | null {
  let highest = request.maxOutputTokens;
  for (const candidate of plan.candidates) {
    const named = ceilingAt(candidate, request);
    if (named !== null) highest = Math.max(highest ?? 0, named);
  }
  return highest;
}

export function widestModel({ candidates }: Plan): Model {
  let widest = candidates[0]!.model;
  for (const { model } of candidates) if (model.contextLength > widest.contextLength) widest = model;
  return widest;
}
