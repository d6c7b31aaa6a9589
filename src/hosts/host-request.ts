import type { Model, Route, SurfaceName } from "../catalog/catalog.ts";
import { type Candidate, ceilingAt } from "../routing/candidate.ts";
import type { GenerationRequest, HostBody, HostTarget, Pairing } from "../surfaces/surface.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";

/**
 * The request in one of the host's languages: the one that the plan prefers, or another if that one cannot
 * express it. A refusal is the preferred language's.
 */
export function encodeFor(
  request: GenerationRequest,
  { model, route, price, hostSurface, nativeFallbacks }: Candidate,
  ceilings: OutputCeilings,
  pairing: PairingOf,
): HostRequest | Refusal {
  const quirks = route.quirks ?? route.host.quirks;
  // Whichever of the models may take long.
  const isLong = nativeFallbacks?.some((next) => isLongAnswer(ceilingAt(next, request))) === true;
  const stream =
    quirks.noStream !== true && (request.stream || isLong || takesLong(request, model, ceilings));
  const target = {
    model: route.model,
    stream,
    publicModel: model.id,
    quirks,
    price,
    marksCache: marksCache(request, route),
    maxOutputTokens: ceilingFor(request, model, stream, ceilings),
    defaultMaxOutputTokens: Math.min(ceilings.defaultMaxOutputTokens, model.maxOutputTokens),
    ...(nativeFallbacks === undefined
      ? {}
      : { fallbacks: nativeFallbacks.map((next) => fallbackEntry(next, request)) }),
  };
  const { speaks } = route.host;
  // Chat comes last where the host is known not to take the request there.
  const avoidsChat = quirks.noChat === true || (quirks.noChatTools === true && mayThinkWithTools(request));
  const first = avoidsChat && hostSurface === CHAT ? (speaks.find(isNotChat) ?? CHAT) : hostSurface;
  const preferred = encodeIn(first, request, target, pairing);
  if (!refused(preferred)) return preferred;
  for (const spoken of avoidsChat ? chatLast(speaks) : speaks) {
    const hostRequest = spoken === first ? preferred : encodeIn(spoken, request, target, pairing);
    if (!refused(hostRequest)) return hostRequest;
  }
  return preferred;
}

/** In Anthropic's form, with a ceiling that the model takes: without one, the first model's would hold for it. */
function fallbackEntry(next: Candidate, request: GenerationRequest): object {
  const { model, route, changes } = next;
  const ceiling = Math.min(ceilingAt(next, request) ?? model.maxOutputTokens, model.maxOutputTokens);
  return { ...changes, model: route.model, max_tokens: ceiling };
}

/** A request as the first host of a plan is sent it: its size decides what is held before any host is asked. */
export interface PreparedRequest {
  readonly request: GenerationRequest;
  readonly candidate: Candidate;
  readonly outputCeiling: number | null;
  readonly hostRequest: HostRequest;
}

/** Encodes it for the candidate, unless that was done already. */
export function hostRequestFor(
  request: GenerationRequest,
  candidate: Candidate,
  ceilings: OutputCeilings,
  pairing: PairingOf,
  prepared: PreparedRequest | null,
): HostRequest | Refusal {
  const isPrepared =
    prepared?.request === request &&
    prepared.candidate === candidate &&
    prepared.outputCeiling === ceilings.outputCeiling;
  return isPrepared ? prepared.hostRequest : encodeFor(request, candidate, ceilings, pairing);
}

/** As the request says, or else the model, or the host; a shorter prompt is not cached by any of Anthropic's models. */
function marksCache({ json, promptEstimate }: GenerationRequest, { autoCache, host }: Route): boolean {
  const { auto_cache: requested } = json;
  const isEnabled = typeof requested === "boolean" ? requested : (autoCache ?? host.autoCache ?? false);
  return isEnabled && promptEstimate >= MIN_CACHED_TOKENS;
}

const MIN_CACHED_TOKENS = 1_024;

const CHAT = "chat.completions";
const isNotChat = (spoken: SurfaceName): boolean => spoken !== CHAT;
const chatLast = (spoken: readonly SurfaceName[]): readonly SurfaceName[] =>
  spoken.includes(CHAT) ? [...spoken.filter(isNotChat), CHAT] : spoken;

/**
 * A client may name more than the model writes, as agents do with one number for all models. Hosts refuse
 * that (“max_tokens is too large: 32000. This model supports at most 16384 completion tokens”), and no more
 * than the model's is held. A stream for a client that streams needs no other ceiling: it is stopped once
 * nothing more is held for it.
 */
function ceilingFor(
  { maxOutputTokens, stream: clientStreams }: GenerationRequest,
  model: Model,
  stream: boolean,
  ceilings: OutputCeilings,
): number | null {
  const imposed = clientStreams && stream ? null : ceilings.outputCeiling;
  const most = maxOutputTokens ?? imposed;
  const isTooHigh = most !== null && most > model.maxOutputTokens;
  return isTooHigh ? model.maxOutputTokens : imposed;
}

/**
 * “Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use
 * function tools, use /v1/responses or set reasoning_effort to 'none'”: so it answers without one too, as its
 * models think by themselves.
 */
function mayThinkWithTools({ json }: GenerationRequest): boolean {
  const { tools, reasoning_effort: effort } = json;
  return Array.isArray(tools) && tools.length > 0 && effort !== "none";
}

/** What a host is sent, and in which language. */
export interface HostRequest {
  readonly spoken: SurfaceName;
  readonly pairing: Pairing;
  readonly stream: boolean;
  readonly body: HostBody;
}

export type PairingOf = (client: SurfaceName, host: SurfaceName) => Pairing;

/** Output tokens, where the client named no number of them. */
export interface OutputCeilings {
  /** Stops a host at this many; null does not. */
  readonly outputCeiling: number | null;
  /** Named to hosts whose language wants a ceiling. */
  readonly defaultMaxOutputTokens: number;
}

function encodeIn(
  spoken: SurfaceName,
  request: GenerationRequest,
  target: HostTarget,
  pairing: PairingOf,
): HostRequest | Refusal {
  const pair = pairing(request.surface, spoken);
  const body = pair.hostBody(request, target);
  return refused(body) ? body : { spoken, pairing: pair, stream: target.stream, body };
}

/**
 * An unstreamed answer shows nothing before its end, so the wait for its first token would be the wait for
 * all of it, and a long one would never come. Where it may be long, the host is asked to stream, and the
 * answer is put together here.
 */
function takesLong(request: GenerationRequest, model: Model, ceilings: OutputCeilings): boolean {
  const ceiling =
    request.maxOutputTokens ??
    ceilings.outputCeiling ??
    Math.min(ceilings.defaultMaxOutputTokens, model.maxOutputTokens);
  // OpenAI streams spoken answers in one coding only.
  return isLongAnswer(ceiling) && !("audio" in request.json);
}

const isLongAnswer = (ceiling: number | null): boolean => ceiling !== null && ceiling > LONG_ANSWER_TOKENS;

/**
 * What a slow model writes in the third of the 30 seconds that each of three hosts gets: 20 tokens a second.
 * Hosts that were given up at work would count as silent, and be left out for everybody.
 */
const LONG_ANSWER_TOKENS = 150;
