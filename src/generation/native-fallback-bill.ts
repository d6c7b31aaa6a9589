import { NO_TOKENS, type Tokens } from "../catalog/tokens.ts";
import { type HostCosts, reportedCost } from "../hosts/host-costs.ts";
import {
  type NativeFallbackAnswer,
  partsByPosition,
  positionsIn,
  servingIn,
} from "../hosts/native-fallback-answer.ts";
import { type Candidate, ceilingAt } from "../routing/candidate.ts";
import type { GenerationRequest, Hop, Usage, UsagePart, Writers } from "../surfaces/surface.ts";
import { isNothing, plus } from "../surfaces/usage.ts";
import { BEGINNING, type TextMoment } from "../tokens/answer-text.ts";
import type { NanoUsd } from "../units/usd.ts";
import {
  type BilledTokens,
  believedPart,
  billedTokens,
  type Counts,
  countedBetween,
  type EndedAnswer,
  isTooLittle,
  promptTokens,
} from "./billed-tokens.ts";

/**
 * The bill of an answer whose host may have run several models for it. What each used is in `usage.iterations`, and is
 * charged at that model's price, within what can be true of it. Where the host did not come to say that, because its
 * stream broke off or its client left, the prompt is charged as the model that began read it, and each model for what it
 * is known to have written, up to the `fallback` block at which it gave way.
 */
export function billedAnswer(
  answer: EndedAnswer,
  { candidate, chain, writers }: AnsweredBy,
  request: GenerationRequest,
  counts: Counts,
): BilledAnswer | Promise<BilledAnswer> {
  if (chain === null) return billedAlone(answer, candidate, request, counts);
  const { usage } = answer;
  const serving = servingIn(chain, { writers, usage });
  if (answer.isFree) return { tokens: NO_TOKENS, from: "host", candidate: serving, charges: NONE };
  const reported = answer.isLeft ? null : reportedCharges(answer, chain, writers, request);
  if (reported !== null) return together(reported, serving, "host");
  const { hops = [] } = writers ?? {};
  if (hops.length === 0) return billedAlone(answer, serving, requestAt(chain, serving, request), counts);
  return writtenCharges(answer, chain, writers!, request, counts).then((charges) =>
    together(charges, serving, "counted"),
  );
}

/** Who answered, as `Opened` and `AnsweredWhole` have it. */
interface AnsweredBy {
  readonly candidate: Candidate;
  readonly chain: readonly Candidate[] | null;
  readonly writers: Writers | undefined;
}

/** What one model is charged for. */
export interface Charge {
  readonly candidate: Candidate;
  readonly tokens: Tokens;
}

export interface BilledAnswer extends BilledTokens {
  /** Who ended the answer. */
  readonly candidate: Candidate;
  /** What the tokens are made of; empty where all are the candidate's. */
  readonly charges: readonly Charge[];
}

const NONE: readonly Charge[] = [];

function billedAlone(
  answer: EndedAnswer,
  candidate: Candidate,
  request: GenerationRequest,
  counts: Counts,
): BilledAnswer | Promise<BilledAnswer> {
  const billed = billedTokens(answer, { request, model: candidate.model }, counts);
  const by = { candidate, charges: NONE };
  return billed instanceof Promise ? billed.then((known) => ({ ...known, ...by })) : { ...billed, ...by };
}

function together(charges: readonly Charge[], serving: Candidate, from: BilledTokens["from"]): BilledAnswer {
  const [first, ...others] = charges;
  if (others.length === 0 && first !== undefined && first.candidate === serving)
    return { tokens: first.tokens, from, candidate: serving, charges: NONE };
  return { tokens: tokensOf(charges), from, candidate: serving, charges };
}

/** All tokens of several charges; of one charge, as they are. */
export const tokensOf = ([first, ...others]: readonly Charge[]): Tokens =>
  others.reduce<Tokens>((sum, { tokens }) => plus(sum, tokens), first?.tokens ?? NO_TOKENS);

/** What the host says that each model used; null where it says nothing, or what cannot be true. */
function reportedCharges(
  { usage, text }: EndedAnswer,
  chain: readonly Candidate[],
  writers: Writers | undefined,
  request: GenerationRequest,
): readonly Charge[] | null {
  if (usage?.parts === undefined || text.estimateSinceReport > 0) return null;
  const answer = { writers, usage };
  const serving = servingIn(chain, answer);
  const positionOf = positionsIn(chain, answer);
  const wrote = new Set(
    writtenParts(writers?.hops ?? [])
      .filter(({ from, to }) => to !== null && to.estimate > from.estimate)
      .map(({ by }) => positionOf(by)),
  );
  const charges: Charge[] = [];
  let written = 0;
  for (const [position, parts] of partsOf(chain, answer, chain.indexOf(serving), usage)) {
    const candidate = chain[position]!;
    const used = parts.map((part) => part.usage).reduce(plus);
    written += used.output;
    if (candidate !== serving && !wrote.has(position) && isFreeRefusal(parts, candidate)) continue;
    const own = requestAt(chain, candidate, request);
    const tokens = believedPart(used, { request: own, model: candidate.model });
    if (tokens === null) return null;
    charges.push({ candidate, tokens });
  }
  return isTooLittle(written, text.estimate) ? null : charges;
}

/** A host that lists nothing for the model that ended the answer has it in the sums. */
function partsOf(
  chain: readonly Candidate[],
  answer: NativeFallbackAnswer,
  serving: number,
  { parts: _, ...sums }: Usage,
): ReadonlyMap<number, readonly UsagePart[]> {
  const parts = partsByPosition(chain, answer);
  if (parts.has(serving)) return parts;
  return new Map([...parts, [serving, [{ model: null, isFallback: true, usage: sums }]]]);
}

const isFreeRefusal = (parts: readonly UsagePart[], { route }: Candidate): boolean =>
  route.host.refusals === "free" && parts.every(({ usage }) => isNothing(usage));

/** As the host sends it to that model: with its own ceiling, and behind what those before it wrote. */
function requestAt(
  chain: readonly Candidate[],
  candidate: Candidate,
  request: GenerationRequest,
): GenerationRequest {
  let promptBound = request.promptBound;
  for (const earlier of chain) {
    if (earlier === candidate) break;
    const longest = earlier.model.maxOutputTokens;
    promptBound += Math.min(ceilingAt(earlier, request) ?? longest, longest);
  }
  return { ...request, promptBound, maxOutputTokens: ceilingAt(candidate, request) };
}

/** What each model is known to have written. */
async function writtenCharges(
  { usage, text }: EndedAnswer,
  chain: readonly Candidate[],
  { first, hops }: Writers,
  request: GenerationRequest,
  counts: Counts,
): Promise<readonly Charge[]> {
  const positionOf = positionsIn(chain, { writers: { first, hops }, usage });
  const began = chain[positionOf(first)]!;
  const own = usage?.parts?.find(({ model }) => chain[positionOf(model)] === began)?.usage ?? usage;
  const read = await promptTokens(
    own,
    { request: requestAt(chain, began, request), model: began.model },
    counts,
  );
  const output = new Map<Candidate, number>();
  for (const { by, from, to } of writtenParts(hops)) {
    const candidate = chain[positionOf(by)]!;
    const written = await countedBetween(text, from, to, counts);
    output.set(candidate, (output.get(candidate) ?? 0) + written);
  }
  return chain.flatMap((candidate) => {
    const ceiling = requestAt(chain, candidate, request).maxOutputTokens ?? candidate.model.maxOutputTokens;
    const tokens = {
      ...NO_TOKENS,
      ...(candidate === began ? read : {}),
      output: Math.min(output.get(candidate) ?? 0, ceiling),
    };
    return candidate === began || tokens.output > 0 ? [{ candidate, tokens }] : [];
  });
}

interface WrittenPart {
  readonly by: string;
  readonly from: TextMoment;
  /** Null: the end. */
  readonly to: TextMoment | null;
}

function writtenParts(hops: readonly Hop[]): readonly WrittenPart[] {
  if (hops.length === 0) return [];
  const later = hops.map(({ to, at }, index) => ({ by: to, from: at, to: hops[index + 1]?.at ?? null }));
  return [{ by: hops[0]!.from, from: BEGINNING, to: hops[0]!.at }, ...later];
}

/**
 * Compares with what the host charges, and returns it where it is known: what a host reports is that of all of its models
 * together.
 */
export function noteCosts(
  costs: Pick<HostCosts, "answered">,
  { tokens, candidate, charges }: BilledAnswer,
  usage: Usage | null,
): NanoUsd | undefined {
  if (charges.length === 0) return costs.answered(candidate, tokens, usage?.costUsd);
  const all = charges.map((charge) => costs.answered(charge.candidate, charge.tokens, undefined));
  if (usage?.costUsd !== undefined) return reportedCost(usage.costUsd);
  return all.includes(undefined) ? undefined : (all.reduce<number>((sum, one) => sum + one!, 0) as NanoUsd);
}
