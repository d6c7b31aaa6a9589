import { type CacheRetention, RETENTIONS, ratesAt, writeRate } from "../catalog/price.ts";
import { encodeFor, type OutputCeilings, type PairingOf } from "../hosts/host-request.ts";
import type { Candidate } from "../routing/candidate.ts";
import { withoutNativeFallbacks } from "../routing/native-fallbacks.ts";
import type { Plan } from "../routing/plan.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { invalid, type Refusal, refused } from "../units/errors/refusal.ts";

/**
 * The plan without the hosts that would be sent a cache retention which has no price there: they would charge more than
 * what is held. The refusal, where none is left, names the field.
 */
export function pricedRetentions(
  plan: Plan,
  request: GenerationRequest,
  pairing: PairingOf | null,
  settings: Pick<OutputCeilings, "defaultMaxOutputTokens">,
): Plan | Refusal {
  const named = RETENTIONS.filter((one) => request.promptRetentions[one] !== undefined);
  if (named.length === 0) return plan;
  let unpriced: CacheRetention | null = null;
  const candidates = plan.candidates.filter((candidate) => {
    const rates = ratesAt(candidate.price, 0);
    const missing = named.find((one) => writeRate(rates, one) === null);
    if (missing === undefined) return true;
    const isSent = retentionsSent(request, candidate, pairing, settings)[missing] !== undefined;
    if (isSent) unpriced ??= missing;
    return !isSent;
  });
  if (unpriced === null) return plan;
  if (candidates.length > 0)
    return { ...plan, candidates: candidates.map((one) => fallbacksWithin(one, candidates)) };
  const sold = RETENTIONS.filter((one) =>
    plan.candidates.some(({ price }) => writeRate(ratesAt(price, 0), one) !== null),
  );
  return invalid(
    request.promptRetentions[unpriced]!,
    `names a cache retention, ${unpriced}, that has no price for this model: use one of ${sold.join(", ")}, or leave it out`,
  );
}

/** A host may go on with a model by itself only where the gateway may. */
const fallbacksWithin = (candidate: Candidate, kept: readonly Candidate[]): Candidate =>
  candidate.nativeFallbacks?.every(({ route }) => kept.some((other) => other.route === route)) === false
    ? withoutNativeFallbacks(candidate)
    : candidate;

/** Without a pairing a thread has read the body, and only its short members are here: it counts as passed on. */
function retentionsSent(
  request: GenerationRequest,
  candidate: Candidate,
  pairing: PairingOf | null,
  { defaultMaxOutputTokens }: Pick<OutputCeilings, "defaultMaxOutputTokens">,
): GenerationRequest["promptRetentions"] {
  if (pairing === null) return request.promptRetentions;
  const sent = encodeFor(request, candidate, { outputCeiling: null, defaultMaxOutputTokens }, pairing);
  if (refused(sent)) return {};
  return sent.body.content?.().size.promptRetentions ?? request.promptRetentions;
}
