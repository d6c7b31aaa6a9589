import type { Host, Model, Route, SurfaceName } from "../catalog/catalog.ts";
import { type Refusal, refused } from "../errors/refusal.ts";
import type { HostSlots, Slot } from "../limits/host-slots.ts";
import type { Lesson } from "../routing/health.ts";
import type { Plan } from "../routing/plan.ts";
import type { Stop } from "../routing/stop.ts";
import type {
  Asked,
  GenerationRequest,
  HostBody,
  HostError,
  Pairing,
  Reply,
  StreamJudge,
  Surface,
  WholeJudge,
} from "../surfaces/surface.ts";
import type { Clock } from "../units/clock.ts";
import { type Exchange, HostFault, type HostReply, type Transport } from "./transport.ts";

/**
 * Walks the plan until a host answers. It comes back only with the first token in hand (or the whole answer, when it is
 * not streamed): that is the commit point, and nothing behind it can try another host. Everything before it may fail
 * freely: the client has seen nothing.
 */
export async function attempt(
  request: GenerationRequest,
  plan: Plan,
  ways: Ways,
  signal: AbortSignal,
): Promise<Outcome> {
  const { clock, limits } = ways;
  const startedMs = clock.elapsedMs();
  let deadlineMs = startedMs + limits.firstTokenMs;
  const tries: Try[] = [];
  let unsayable: Refusal | null = null;
  let crowded = false;
  /** Verdicts on the request by hosts of models that it then moved on from. */
  const verdicts: Rejected[] = [];
  const stops = [...plan.stops];
  for (let index = 0; index < stops.length; index++) {
    const stop = stops[index]!;
    if (tries.length === limits.maxHosts) break;
    if (verdicts.some(({ stop: { model } }) => model === stop.model)) continue;
    if (signal.aborted) return { kind: "abandoned", tries };
    const nowMs = clock.elapsedMs();
    if (nowMs >= deadlineMs) break;
    const said = sayTo(request, stop, ways);
    if (refused(said)) {
      unsayable ??= said;
      continue;
    }
    const first = index < plan.stops.length - 1;
    const slot = first
      ? ways.slots.take(stop.route.host)
      : await standInLine(stop, ways, (deadlineMs - nowMs) / 2, signal);
    if (slot === null) {
      // It has as much to do as it takes: after the others, and then in its line.
      if (first) stops.push(stop);
      else crowded = true;
      continue;
    }
    if (!ways.enter(stop) && first) {
      // It rests, or another request is just probing it: after the others.
      slot.release();
      stops.push(stop);
      continue;
    }
    const beganMs = clock.elapsedMs();
    const share = (deadlineMs - beganMs) / Math.min(limits.maxHosts - tries.length, stops.length - index);
    const outcome = await occupying(slot, tryStop(request, stop, said, ways, signal, share));
    const ms = clock.elapsedMs() - beganMs;
    tries.push({
      host: stop.route.host.id,
      model: stop.model.id,
      outcome: outcome.kind,
      ms,
      detail: detailOf(outcome),
    });
    ways.observe(stop, outcome.kind, lessonOf(outcome, ms));
    // What passed behind a first token was no wait for one.
    if ("lateMs" in outcome) deadlineMs += outcome.lateMs ?? 0;
    if (outcome.kind === "opened" || outcome.kind === "answered") return { ...outcome, tries };
    if (outcome.kind === "abandoned") return { kind: "abandoned", tries };
    if (outcome.kind === "rejected") {
      const { movesOn } = plan;
      const next = movesOn === "always" || (movesOn === "too_long" && outcome.error.contextTooLong);
      if (!next) return { ...outcome, tries };
      verdicts.push(outcome);
    }
  }
  if (tries.at(-1)?.outcome === "rejected") return { ...verdicts.at(-1)!, tries };
  if (tries.length === 0 && crowded) return { kind: signal.aborted ? "abandoned" : "crowded", tries };
  if (tries.length === 0 && unsayable !== null) return { kind: "unsayable", refusal: unsayable, tries };
  const waitedMs = clock.elapsedMs() - (deadlineMs - limits.firstTokenMs);
  // Timers fire a little early or late: the last share is over when the whole is, give or take.
  return { kind: "exhausted", timedOut: waitedMs >= limits.firstTokenMs - TIMER_SLACK_MS, waitedMs, tries };
}

/** What attempts are made with. */
export interface Ways {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly limits: AttemptLimits;
  readonly surfaces: Readonly<Record<SurfaceName, Surface>>;
  pairing(client: SurfaceName, host: SurfaceName): Pairing;
  /** The client's headers that the host should see, lower-case names. */
  readonly clientHeaders: Readonly<Record<string, string>>;
  /** Stops a host at this many output tokens although the client named no ceiling; null does not. */
  readonly outputCeiling: number | null;
  /** Named to hosts whose language wants a ceiling, when the client named none. */
  readonly defaultMaxOutputTokens: number;
  readonly slots: HostSlots;
  /** Whose turn it is in a line. */
  readonly keyId: string;
  /** False: the host rests or is just being probed, and another should be tried first. See routing/health. */
  enter(stop: Stop): boolean;
  /** Told of each try, for health. */
  observe(stop: Stop, outcome: Try["outcome"], lesson: Lesson): void;
}

export interface AttemptLimits {
  /** From the first try to the first token, over all hosts. */
  readonly firstTokenMs: number;
  readonly maxHosts: number;
  /** For an answer that is collected: silence inside it, and all of it. */
  readonly chunkGapMs: number;
  readonly totalMs: number;
}

/** One host tried, as the receipt lists it. */
export interface Try {
  readonly host: string;
  readonly model: string;
  /**
   * `opened` and `answered` served; `rejected` is the host's verdict on the request itself; `refused` (an error status or
   * event), `unreachable` and `silent` are the host's failures; `abandoned` means that the client left.
   */
  readonly outcome: "opened" | "answered" | "rejected" | "refused" | "unreachable" | "silent" | "abandoned";
  readonly ms: number;
  /** What the host said or did, for people; null when it served. */
  readonly detail: string | null;
}

export type Outcome = { readonly tries: readonly Try[] } & (
  | Opened
  | Answered
  | Rejected
  | { readonly kind: "exhausted"; readonly timedOut: boolean; readonly waitedMs: number }
  | { readonly kind: "unsayable"; readonly refusal: Refusal }
  /** None was tried, because each had as much to do as it takes. */
  | { readonly kind: "crowded" }
  | { readonly kind: "abandoned" }
);

/** A stream whose first token is here. */
export interface Opened {
  readonly kind: "opened";
  readonly stop: Stop;
  /** Fields of the request that the host was not sent: see Pairing. */
  readonly omitted: readonly string[];
  readonly source: HostReply;
  readonly judge: StreamJudge;
  readonly first: Uint8Array;
  cancel(): void;
}

export interface Answered {
  readonly kind: "answered";
  readonly stop: Stop;
  readonly omitted: readonly string[];
  readonly reply: Extract<Reply, { kind: "reply" }>;
}

export interface Rejected {
  readonly kind: "rejected";
  readonly stop: Stop;
  readonly status: number;
  readonly error: HostError;
}

type TryOutcome =
  | Opened
  | Answered
  | Rejected
  | HostFailure
  | { readonly kind: "abandoned"; readonly message: string };

interface HostFailure {
  readonly kind: "refused" | "unreachable" | "silent";
  readonly message: string;
  /** Not only of the one model. */
  readonly wholeHost?: boolean;
  /** The host has too much to do. */
  readonly overloaded?: boolean;
  /** The host asks to be left alone for so long. */
  readonly restMs?: number | null;
  /** It failed so long after its first token, while its answer was collected. */
  readonly lateMs?: number;
}

/** Unstreamed answers and error bodies are read whole, up to this. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;
/** Bytes of roles, pings and comments that may come before the first token. */
const MAX_PRELUDE_BYTES = 1024 * 1024;

const TIMER_SLACK_MS = 2;

/** Statuses by which a host fails: its own trouble, or the gateway's standing with it, not the client's request. */
const HOST_FAILURES = new Set([401, 402, 403, 404, 405, 407, 408, 409, 421, 425, 429]);
/** Those of them, and those faults, that concern the host whatever the model. */
const WHOLE_HOST_FAILURES = new Set([401, 402, 407]);
const WHOLE_HOST_FAULTS = new Set<HostFault["kind"]>(["dns", "refused", "tls", "connect_timeout"]);
/** Statuses that say: fewer at once. Anthropic's 529 is "overloaded". */
const OVERLOAD_STATUSES = new Set([408, 429, 503, 504, 529]);
/** Statuses whose `Retry-After` is obeyed. */
const REST_STATUSES = new Set([429, 503]);

/** Longest wait in the line before a host; a client that waits longer is better told to come back. */
const MAX_LINE_MS = 5_000;

const standInLine = ({ route }: Stop, { slots, keyId }: Ways, leftMs: number, signal: AbortSignal) =>
  slots.take(route.host) ?? slots.wait(route.host, keyId, Math.min(MAX_LINE_MS, leftMs), signal);

/** Gives the place back: when a stream that was opened is over, and otherwise at once. */
async function occupying(slot: Slot, trying: Promise<TryOutcome>): Promise<TryOutcome> {
  let outcome: TryOutcome | null = null;
  try {
    outcome = await trying;
    if (outcome.kind !== "opened") {
      if (overloads(outcome)) slot.overloaded();
      return outcome;
    }
    const { cancel } = outcome;
    return {
      ...outcome,
      cancel() {
        cancel();
        slot.release();
      },
    };
  } finally {
    if (outcome?.kind !== "opened") slot.release();
  }
}

const overloads = (outcome: TryOutcome): boolean =>
  outcome.kind === "silent" || (outcome.kind === "refused" && outcome.overloaded === true);

async function tryStop(
  request: GenerationRequest,
  stop: Stop,
  said: Said,
  ways: Ways,
  signal: AbortSignal,
  shareMs: number,
): Promise<TryOutcome> {
  const { host } = stop.route;
  const { spoken, pairing, stream, body } = said;
  const { bytes, omitted } = body;
  const asked = { publicModel: stop.model.id, atS: Math.floor(ways.clock.now() / 1_000) };
  const limit = new TimeLimit(ways.clock, shareMs, signal);
  try {
    const outcome = await once(false);
    // A pooled connection that the host had closed meanwhile says nothing about the host: once more, on a fresh one.
    return outcome === "stale" ? answerOf(await once(true)) : outcome;
  } finally {
    limit.stop();
  }

  async function once(fresh: boolean): Promise<TryOutcome | "stale"> {
    const path = ways.surfaces[spoken].path;
    const exchange = ways.transport.open({
      host,
      method: "POST",
      path,
      headers: hostHeaders(host, request, said, ways.clientHeaders),
      body: bytes,
      fresh,
    });
    limit.guard(exchange);
    const reply = await exchange.reply;
    if (reply instanceof HostFault) return reply.stale && !limit.over ? "stale" : faulted(reply, limit);
    const outcome = await judge(reply, exchange);
    if (outcome.kind !== "opened") exchange.cancel();
    return outcome;
  }

  async function judge(reply: HostReply, exchange: Exchange): Promise<TryOutcome> {
    if (reply.status < 200 || reply.status > 299)
      return judgeStatus(reply, stop, ways.surfaces[spoken], ways.clock, limit);
    // A host that does not stream although it was asked to gives the whole answer all the same.
    if (!stream || (!request.stream && !isEventStream(reply)))
      return judgeReply(reply, request, stop, { pairing, asked, omitted }, limit);
    if (!request.stream)
      return collect(reply, pairing.openWhole(request, asked), { stop, omitted }, limit, ways);
    return awaitFirstToken(reply, exchange, pairing.openStream(request, asked), { stop, omitted }, limit);
  }
}

/**
 * The request in a language of the host's: the one that the plan prefers, or another where that one lacks the words. The
 * refusal is the preferred one's.
 */
function sayTo(request: GenerationRequest, { model, route, hostSurface }: Stop, ways: Ways): Said | Refusal {
  const stream = request.stream || takesLong(request, model, route, ways);
  const target = {
    model: route.model,
    stream,
    publicModel: model.id,
    quirks: route.quirks ?? route.host.quirks,
    maxOutputTokens: ways.outputCeiling,
    defaultMaxOutputTokens: Math.min(ways.defaultMaxOutputTokens, model.maxOutputTokens),
  };
  let first: Refusal | null = null;
  for (const spoken of [hostSurface, ...route.host.speaks.filter((other) => other !== hostSurface)]) {
    const pairing = ways.pairing(request.surface, spoken);
    const body = pairing.hostBody(request, target);
    if (!refused(body)) return { spoken, pairing, stream, body };
    first ??= body;
  }
  return first!;
}

interface Said {
  readonly spoken: SurfaceName;
  readonly pairing: Pairing;
  readonly stream: boolean;
  readonly body: HostBody;
}

/**
 * An unstreamed answer shows nothing before its end, so the wait for its first token would be the wait for all of it, and
 * a long one would never come. Where it may be long, the host is asked to stream, and the answer is put together here.
 */
function takesLong(request: GenerationRequest, model: Model, route: Route, ways: Ways): boolean {
  const quirks = route.quirks ?? route.host.quirks;
  const ceiling =
    request.maxOutputTokens ??
    ways.outputCeiling ??
    Math.min(ways.defaultMaxOutputTokens, model.maxOutputTokens);
  // OpenAI streams spoken answers in one coding only.
  return quirks.noStream !== true && ceiling > LONG_ANSWER_TOKENS && !("audio" in request.json);
}

/** What a slow model writes within the 30 seconds that a first token may take. */
const LONG_ANSWER_TOKENS = 1_000;

const isEventStream = ({ headers }: HostReply): boolean =>
  headers.get("content-type")?.includes("event-stream") === true;

const answerOf = (outcome: TryOutcome | "stale"): TryOutcome =>
  outcome === "stale"
    ? { kind: "unreachable", message: "the host closed two connections in a row" }
    : outcome;

async function judgeStatus(
  reply: HostReply,
  stop: Stop,
  surface: Surface,
  clock: Clock,
  limit: TimeLimit,
): Promise<TryOutcome> {
  const body = await readWhole(reply, MAX_ERROR_BYTES);
  if (limit.over) return limit.outcome();
  const { status } = reply;
  const bytes = body instanceof Uint8Array ? body : new Uint8Array();
  const error = surface.readHostError(status, bytes);
  if (status >= 400 && status <= 499 && !HOST_FAILURES.has(status))
    return { kind: "rejected", stop, status, error };
  return {
    kind: "refused",
    message: `status ${status}: ${error.message}`,
    wholeHost: WHOLE_HOST_FAILURES.has(status),
    overloaded: OVERLOAD_STATUSES.has(status),
    restMs: REST_STATUSES.has(status) ? retryAfterMs(reply, clock) : null,
  };
}

async function judgeReply(
  reply: HostReply,
  request: GenerationRequest,
  stop: Stop,
  { pairing, asked, omitted }: { pairing: Pairing; asked: Asked; omitted: readonly string[] },
  limit: TimeLimit,
): Promise<TryOutcome> {
  const body = await readWhole(reply, MAX_REPLY_BYTES);
  if (!(body instanceof Uint8Array)) return faulted(body, limit);
  const read = pairing.readReply(body, request, asked);
  return read.kind === "reply"
    ? { kind: "answered", stop, omitted, reply: read }
    : { kind: "refused", message: read.message };
}

async function awaitFirstToken(
  source: HostReply,
  exchange: Exchange,
  judge: StreamJudge,
  { stop, omitted }: { stop: Stop; omitted: readonly string[] },
  limit: TimeLimit,
): Promise<TryOutcome> {
  const held: Uint8Array[] = [];
  let heldBytes = 0;
  while (heldBytes <= MAX_PRELUDE_BYTES) {
    const read = source.read();
    const next = read instanceof Promise ? await read : read;
    if (next instanceof HostFault) return faulted(next, limit);
    const bytes = next === null ? judge.end() : judge.push(next);
    held.push(bytes);
    heldBytes += bytes.length;
    if (judge.tokenSeen || (judge.terminal !== null && judge.usage !== null && judge.fault === null)) {
      limit.stop();
      const first = held.length === 1 ? bytes : Buffer.concat(held);
      return { kind: "opened", stop, omitted, source, judge, first, cancel: () => exchange.cancel() };
    }
    if (judge.fault !== null) return { kind: "refused", message: judge.fault.message };
    if (next === null || judge.terminal !== null)
      return { kind: "refused", message: "the stream ended without a token" };
  }
  return { kind: "refused", message: `no token within ${MAX_PRELUDE_BYTES} bytes` };
}

/** Reads a stream to its end for a client that wants the answer whole. It has seen nothing, so any failure moves on. */
async function collect(
  source: HostReply,
  judge: WholeJudge,
  { stop, omitted }: { stop: Stop; omitted: readonly string[] },
  limit: TimeLimit,
  { clock, limits }: Ways,
): Promise<TryOutcome> {
  let firstMs: number | null = null;
  const late = (failure: TryOutcome): TryOutcome =>
    firstMs === null || failure.kind === "abandoned"
      ? failure
      : ({ ...failure, lateMs: clock.elapsedMs() - firstMs } as TryOutcome);
  for (let bytes = 0; bytes <= MAX_REPLY_BYTES; ) {
    const read = source.read();
    const next = read instanceof Promise ? await read : read;
    if (next instanceof HostFault) return late(faulted(next, limit));
    if (next === null) judge.end();
    else judge.push(next);
    bytes += next?.length ?? 0;
    if (judge.fault !== null) return late({ kind: "refused", message: judge.fault.message });
    if (judge.terminal !== null) {
      const reply = judge.reply();
      return reply.kind === "reply" && (judge.tokenSeen || judge.usage !== null)
        ? { kind: "answered", stop, omitted, reply }
        : { kind: "refused", message: "the stream ended without a token" };
    }
    if (!judge.tokenSeen) continue;
    firstMs ??= clock.elapsedMs();
    limit.restart(Math.min(limits.chunkGapMs, Math.max(0, limits.totalMs - (clock.elapsedMs() - firstMs))));
  }
  return late({ kind: "refused", message: `the answer is larger than ${MAX_REPLY_BYTES} bytes` });
}

async function readWhole(reply: HostReply, most: number): Promise<Uint8Array | HostFault> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const read = reply.read();
    const next = read instanceof Promise ? await read : read;
    if (next instanceof HostFault) return next;
    if (next === null) return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    chunks.push(next);
    length += next.length;
    if (length > most) return new HostFault("malformed", `the answer is larger than ${most} bytes`);
  }
}

const faulted = (fault: HostFault, limit: TimeLimit): TryOutcome =>
  limit.over
    ? limit.outcome()
    : {
        kind: "unreachable",
        message: `${fault.kind}: ${fault.message}`,
        wholeHost: WHOLE_HOST_FAULTS.has(fault.kind),
      };

/** Seconds or a date, as RFC 9110 has it; null when the host named neither. */
function retryAfterMs({ headers }: HostReply, clock: Clock): number | null {
  const text = headers.get("retry-after");
  if (text === undefined) return null;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - clock.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

function lessonOf(outcome: TryOutcome, ms: number): Lesson {
  switch (outcome.kind) {
    case "opened":
      return { kind: "served", firstTokenMs: ms };
    case "answered":
      return { kind: "served", firstTokenMs: null };
    // What a host thinks of a request, and a client that leaves, say nothing about the host.
    case "rejected":
    case "abandoned":
      return { kind: "nothing" };
    default:
      return { kind: "failed", wholeHost: outcome.wholeHost ?? false, restMs: outcome.restMs ?? null };
  }
}

const detailOf = (outcome: TryOutcome): string | null => {
  if (outcome.kind === "opened" || outcome.kind === "answered") return null;
  return outcome.kind === "rejected" ? outcome.error.message : outcome.message;
};

/** Cancels an exchange when its time is over or the client leaves; whichever came first names the outcome. */
class TimeLimit {
  private exchange: Exchange | null = null;
  private why: "silent" | "abandoned" | null = null;
  private timer;
  private begun = false;
  private readonly onAbort = () => this.end("abandoned");

  constructor(
    private readonly clock: Clock,
    private ms: number,
    private readonly signal: AbortSignal,
  ) {
    this.timer = clock.after(ms, () => this.end("silent"));
    signal.addEventListener("abort", this.onAbort);
  }

  get over(): boolean {
    return this.why !== null;
  }

  /** The answer has begun: from now on so long for more of it. */
  restart(ms: number): void {
    if (this.over) return;
    this.begun = true;
    this.ms = ms;
    this.timer.cancel();
    this.timer = this.clock.after(ms, () => this.end("silent"));
  }

  guard(exchange: Exchange): void {
    this.exchange = exchange;
    if (this.over) exchange.cancel();
  }

  outcome(): TryOutcome {
    const awaited = this.begun ? "nothing more" : "no first token";
    const message = this.why === "silent" ? `${awaited} within ${Math.round(this.ms)} ms` : "the client left";
    return { kind: this.why!, message };
  }

  stop(): void {
    this.timer.cancel();
    this.signal.removeEventListener("abort", this.onAbort);
  }

  private end(why: "silent" | "abandoned"): void {
    this.why ??= why;
    this.exchange?.cancel();
  }
}

/**
 * The operator's headers win over the client's, but for the version of Anthropic's language: the client wrote its body
 * for the one it names. Betas of both are joined. What a client of another language says about its own is not passed on.
 */
function hostHeaders(
  host: Host,
  { surface }: GenerationRequest,
  { stream, spoken }: Said,
  client: Readonly<Record<string, string>>,
): Record<string, string> {
  const passed = surface === spoken ? client : withoutLanguage(client);
  const headers: Record<string, string> = { ...passed, ...host.headers };
  headers["content-type"] = "application/json";
  headers.accept = stream ? "text/event-stream" : "application/json";
  const version = passed["anthropic-version"];
  if (version !== undefined) headers["anthropic-version"] = version;
  else if (spoken === "messages") headers["anthropic-version"] ??= ANTHROPIC_VERSION;
  const betas = [host.headers["anthropic-beta"], passed["anthropic-beta"]].filter(
    (beta) => beta !== undefined,
  );
  if (betas.length === 2) headers["anthropic-beta"] = betas.join(",");
  if (host.apiKey !== null) {
    if (host.auth === "x-api-key") headers["x-api-key"] = host.apiKey;
    else headers.authorization = `Bearer ${host.apiKey}`;
  }
  return headers;
}

/** The one version of Messages there is (docs.anthropic.com, "Versions"), which its hosts insist on. */
const ANTHROPIC_VERSION = "2023-06-01";

const OF_A_LANGUAGE = /^(anthropic|openai|x-stainless)-/;

const withoutLanguage = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_A_LANGUAGE.test(name)));
