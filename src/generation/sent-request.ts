import { encodeFor, type HostRequest, type PairingOf, type PreparedRequest } from "../hosts/host-request.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { Plan } from "../routing/plan.ts";
import type { GenerationRequest, HostContent } from "../surfaces/surface.ts";
import { refused } from "../units/errors/refusal.ts";

/**
 * What hosts are sent of a request decides what is held for it, what is counted, and which usage is believed. Codex
 * offers a web search in every request, which the gateway leaves out: sized by what the client sent, each held the
 * model's whole context, and a host could bill as much. So the request is encoded for the first host before it is
 * admitted, and for the plan's other hosts only where it leaves something out or is translated.
 */
export function sentRequest(
  request: GenerationRequest,
  { candidates }: Pick<Plan, "candidates">,
  defaultMaxOutputTokens: number,
  pairing: PairingOf,
): PricedRequest {
  // What entries of `fallbacks` put into the request is a part of its body.
  if (candidates.some(({ changes }) => changes !== undefined)) return { priced: request, prepared: null };
  const ceilings = { outputCeiling: null, defaultMaxOutputTokens };
  const encode = (candidate: Candidate) => encodeFor(request, candidate, ceilings, pairing);
  const first = encode(candidates[0]!);
  const prepared = refused(first)
    ? null
    : { request, candidate: candidates[0]!, outputCeiling: null, hostRequest: withoutContent(first) };
  // No other host is sent more than the whole.
  if (!refused(first) && first.body.content === null) return { priced: request, prepared };
  const kinds = kindsOf(request, candidates);
  if (kinds.length > MAX_KINDS) return { priced: request, prepared };
  let largest: HostContent | null = null;
  /** What no host of the client's own language is sent; null without such hosts. */
  let missing: readonly string[] | null = null;
  for (const candidate of kinds) {
    const hostRequest = candidate === candidates[0] ? first : encode(candidate);
    // It is not sent what it cannot take.
    if (refused(hostRequest)) continue;
    const { spoken, body } = hostRequest;
    if (spoken === request.surface) {
      if (body.content === null) return { priced: request, prepared };
      missing = (missing ?? body.omitted).filter((name) => body.omitted.includes(name));
    } else if (missing?.every((name) => body.omitted.includes(name))) {
      // Another language frames in other words what the client's own hosts are sent as well.
      continue;
    }
    largest = larger(largest, body.content!());
  }
  if (largest === null) return { priced: request, prepared };
  return {
    priced: {
      ...request,
      ...largest.size,
      ...smallerEstimate(request, largest),
      body: largest.bytes,
      // Where it stands in the client's body says nothing about these bytes.
      list: null,
    },
    prepared,
  };
}

/** A translation's framing tells nothing about the prompt, so it may not raise what rates and crash bills estimate. */
function smallerEstimate(request: GenerationRequest, { size }: HostContent): PromptEstimates {
  const { promptEstimate, promptTextEstimate } =
    request.promptEstimate < size.promptEstimate ? request : size;
  return { promptEstimate, promptTextEstimate };
}

type PromptEstimates = Pick<GenerationRequest, "promptEstimate" | "promptTextEstimate">;

export interface PricedRequest {
  /** The request with the body and the size of what hosts are sent of it. */
  readonly priced: GenerationRequest;
  /** For the plan's first host; null where that cannot take it. */
  readonly prepared: PreparedRequest | null;
}

/** What it was written from need not wait for the host's first token. */
const withoutContent = (hostRequest: HostRequest): HostRequest => ({
  ...hostRequest,
  body: { ...hostRequest.body, content: null },
});

/** One candidate of each kind, those of the client's language first: the others of a kind are sent the same. */
function kindsOf({ surface }: GenerationRequest, candidates: readonly Candidate[]): readonly Candidate[] {
  if (candidates.length === 1) return candidates;
  const kinds = new Map<string, Candidate>();
  for (const candidate of candidates) {
    const { route, hostSurface } = candidate;
    const kind = `${hostSurface} ${route.host.speaks.join()} ${JSON.stringify(route.quirks ?? route.host.quirks)}`;
    if (!kinds.has(kind)) kinds.set(kind, candidate);
  }
  const isNative = ({ hostSurface }: Candidate) => hostSurface === surface;
  const all = [...kinds.values()];
  return [...all.filter(isNative), ...all.filter((candidate) => !isNative(candidate))];
}

/** Plans of more are rare, and are sized by all that the client sent. */
const MAX_KINDS = 8;

/** Bounds both; the text of the one that has more of it is what is counted. */
function larger(one: HostContent | null, other: HostContent): HostContent {
  if (one === null) return other;
  const [a, b] = one.size.promptTextEstimate >= other.size.promptTextEstimate ? [one, other] : [other, one];
  return {
    bytes: a.bytes,
    size: {
      ...a.size,
      promptBound: Math.max(a.size.promptBound, b.size.promptBound),
      promptEstimate: Math.max(a.size.promptEstimate, b.size.promptEstimate),
      mediaTokens: Math.max(a.size.mediaTokens, b.size.mediaTokens),
      promptWithoutAudio: a.size.promptWithoutAudio ?? b.size.promptWithoutAudio,
      promptHasFiles: a.size.promptHasFiles || b.size.promptHasFiles,
      promptUnseen: a.size.promptUnseen || b.size.promptUnseen,
      answersInAudio: a.size.answersInAudio || b.size.answersInAudio,
      promptRetentions: { ...a.size.promptRetentions, ...b.size.promptRetentions },
    },
  };
}
