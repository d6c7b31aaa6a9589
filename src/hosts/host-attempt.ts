import type { Host } from "../catalog/catalog.ts";
import type { HostFaultKind } from "../ledger/receipt.ts";
import { type Candidate, ceilingAt } from "../routing/candidate.ts";
import { chainOf } from "../routing/handed-fallbacks.ts";
import { mostAnswerBytes } from "../surfaces/events/answer-bounds.ts";
import { readHostError } from "../surfaces/host-error.ts";
import { NO_BYTES } from "../surfaces/json/bytes.ts";
import type {
  AnswerMetadata,
  GenerationRequest,
  HostError,
  ReadReply,
  StreamJudge,
  Usage,
  WholeJudge,
} from "../surfaces/surface.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import { withoutByteOrderMark } from "../units/byte-order-mark.ts";
import type { Clock } from "../units/clock.ts";
import type { ReceiptId } from "../units/id.ts";
import { type Destinations, ownHeaders } from "./destination.ts";
import { type HandedAnswer, servingIn } from "./handed-answer.ts";
import type { HostRequest } from "./host-request.ts";
import { redact } from "./redact.ts";
import type { KeyLease } from "./slots/host-key-slots.ts";
import type { Slot } from "./slots/host-slots.ts";
import type { TimeLimit } from "./time-limit.ts";
import {
  beginsWhole,
  type HostBytes,
  type HostExchange,
  HostFault,
  type HostReply,
  isStream,
  type Read,
  type Transport,
} from "./transport.ts";

/** Asks one host for a first token (or for its whole answer, where that is wanted). */
export class HostAttempt {
  private exchange: HostExchange | null = null;
  /** When the first token of a collected answer arrived. */
  private firstMs: number | null = null;
  /** Status of the reply. */
  private status = 0;

  constructor(
    private readonly request: GenerationRequest,
    private readonly candidate: Candidate,
    private readonly hostRequest: HostRequest,
    private readonly call: HostAttemptCall,
    private readonly deps: HostAttemptDeps,
    private readonly limit: TimeLimit,
    private readonly slot: Slot,
  ) {}

  /**
   * Runs until the answer is here, the host fails, or time is up. The place at the host is then released,
   * except for an opened stream, which keeps it until the host is done.
   */
  async run(): Promise<HostAttemptOutcome> {
    const { limit, slot, deps } = this;
    let outcome: HostAttemptOutcome | null = null;
    try {
      let reply = await this.send(false);
      // A pooled connection that the host had closed in the meantime says nothing about the host: retry once,
      // on a fresh one.
      if (isStale(reply, limit)) reply = await this.send(true);
      try {
        const judged = reply instanceof HostFault ? this.faulted(reply) : this.judge(reply);
        outcome = withoutSecrets(
          judged instanceof Promise ? await judged : judged,
          this.candidate.route.host,
        );
      } catch (error) {
        outcome = this.unreadable(error);
      }
      const { key } = slot;
      if (key !== undefined && key !== null) outcome = judgedKey(outcome, key, this.candidate, deps.clock);
      return outcome;
    } finally {
      limit.stop();
      if (outcome?.kind === "opened" && !outcome.isWhole) {
        outcome.occupy(slot);
      } else {
        if (outcome !== null && ANSWERS.has(outcome.kind)) this.exchange?.done();
        else this.exchange?.cancel();
        if (outcome !== null && overloads(outcome)) slot.overloaded();
        slot.release();
      }
    }
  }

  private send(fresh: boolean): Promise<HostReply | HostFault> {
    const { request, call, deps, limit } = this;
    const { host } = this.candidate.route;
    const { spoken, stream, body } = this.hostRequest;
    const exchange = deps.transport.open({
      to: deps.destinations.at(host, spoken, stream, this.slot.key?.key),
      headers: ownHeaders(host, request.surface, spoken, call.clientHeaders, body),
      body: body.parts,
      fresh,
    });
    this.exchange = exchange;
    limit.guard(exchange);
    return exchange.reply;
  }

  private judge(reply: HostReply): HostAttemptOutcome | Promise<HostAttemptOutcome> {
    const { request, deps } = this;
    const { pairing, stream } = this.hostRequest;
    this.status = reply.status;
    if (reply.status < 200 || reply.status > 299) return this.judgeStatus(reply);
    const endS = () => Math.floor(deps.clock.now() / 1_000);
    const metadata = this.metadata(endS);
    if (!stream) {
      const body = readWhole(reply, this.mostWholeBytes);
      return body instanceof Promise ? this.awaitWhole(body, metadata) : this.judgeWhole(body, metadata);
    }
    if (!request.stream) return this.collect(reply, pairing.openWhole(request, metadata), metadata);
    const judge = pairing.openStream(request, metadata);
    judge.limitTo(this.mostBytes);
    return this.awaitFirstToken(reply, judge, metadata);
  }

  private metadata(endS: () => number): AnswerMetadata {
    const { chain, candidate } = this;
    const about = { publicModel: candidate.model.id, atS: endS(), endS };
    return chain === null
      ? about
      : { ...about, idOf: (writers) => servingIn(chain, { writers, usage: null }).model.id };
  }

  /** The models that may have a part in the answer; null: only one may. */
  private get chain(): readonly Candidate[] | null {
    const { candidate, hostRequest } = this;
    return candidate.handed === undefined || hostRequest.spoken !== "messages" ? null : chainOf(candidate);
  }

  /** Who serves, as far as the answer has shown. */
  private serving(answer: HandedAnswer): Candidate {
    const { chain, candidate } = this;
    return chain === null ? candidate : servingIn(chain, answer);
  }

  /** Most bytes of the answer, by the client's ceiling or the model's longest. */
  private get mostBytes(): number {
    const { request, chain, candidate } = this;
    let most = 0;
    for (const one of chain ?? [candidate]) {
      const longest = one.model.maxOutputTokens;
      const ceiling = one === candidate ? request.maxOutputTokens : ceilingAt(one, request);
      most += Math.min(ceiling ?? longest, longest) * request.choices;
    }
    return mostAnswerBytes(most);
  }

  private get mostWholeBytes(): number {
    return Math.min(this.mostBytes, MAX_REPLY_BYTES);
  }

  private async awaitWhole(
    body: Promise<Uint8Array | HostFault>,
    metadata: AnswerMetadata,
  ): Promise<HostAttemptOutcome> {
    return this.judgeWhole(await body, metadata);
  }

  private judgeWhole(read: Uint8Array | HostFault, metadata: AnswerMetadata): HostAttemptOutcome {
    if (read instanceof HostFault) return this.faulted(read);
    const body = withoutByteOrderMark(read);
    const { request, hostRequest } = this;
    const { pairing, spoken } = hostRequest;
    if (request.stream) {
      const events = isStream(body) ? body : SURFACES[spoken].synthesizeStream(body);
      return events instanceof Uint8Array ? this.allAtOnce(events, metadata) : this.failed(events);
    }
    if (isStream(body)) return this.collected(body, pairing.openWhole(request, metadata));
    const reply = pairing.readReply(body, request, metadata);
    return reply.kind === "reply" ? this.answered(reply) : this.failed(reply.error);
  }

  private collected(events: Uint8Array, judge: WholeJudge): HostAttemptOutcome {
    judge.push(events);
    judge.end();
    return judge.fault === null ? this.completed(judge) : this.failed(judge.fault);
  }

  private completed(judge: WholeJudge): HostAttemptOutcome {
    const reply = judge.reply();
    return reply.kind === "reply" && saysAnything(judge)
      ? this.answered(reply)
      : { kind: "refused", message: "the stream ended without a token" };
  }

  /**
   * An error behind a good status. That a prompt is too long or against its rules, OpenAI says only in the
   * stream; it is no less a verdict on the request.
   */
  private failed(error: HostError): HostAttemptOutcome {
    const { candidate, status } = this;
    return error.isVerdict
      ? { kind: "rejected", candidate, status, error }
      : {
          kind: "refused",
          message: error.kept,
          ofAccount: error.blames === "account",
          wholeHost: error.blames === "account",
        };
  }

  /** All of an answer comes with its first token. */
  private allAtOnce(events: Uint8Array, metadata: AnswerMetadata): HostAttemptOutcome {
    const { request, hostRequest } = this;
    const judge = hostRequest.pairing.openStream(request, metadata);
    const first = judge.push(events);
    if (judge.fault !== null) return this.failed(judge.fault);
    if (!saysAnything(judge)) return { kind: "refused", message: "the answer is empty" };
    return this.openedWhole(judge, first);
  }

  /** A streamed answer of which all is here. */
  private openedWhole(judge: StreamJudge, first: Uint8Array): Opened | Declined {
    const { omitted } = this.hostRequest.body;
    const opened = new Opened(
      this.serving(judge),
      omitted,
      ALL_READ,
      judge,
      first,
      this.exchange!,
      true,
      this.chain,
    );
    return judge.isDeclined ? { kind: "declined", answer: opened } : opened;
  }

  private answered(reply: AnsweredWhole["reply"]): AnsweredWhole | Declined {
    const { hostRequest, chain } = this;
    const candidate = this.serving(reply);
    const { omitted } = hostRequest.body;
    const answer = { kind: "answered", candidate, omitted, reply, chain } as const;
    return reply.isDeclined ? { kind: "declined", answer } : answer;
  }

  private async judgeStatus(reply: HostReply): Promise<HostAttemptOutcome> {
    const { candidate, limit, deps } = this;
    const body = await readWhole(reply, MAX_ERROR_BYTES);
    if (limit.over) return limit.outcome();
    const { status } = reply;
    const bytes = body instanceof Uint8Array ? withoutByteOrderMark(body) : NO_BYTES;
    const error = readHostError(status, bytes);
    const isClients = status >= 400 && status <= 499 && !HOST_FAILURES.has(status);
    if (isClients && error.blames === "request") return { kind: "rejected", candidate, status, error };
    const ofAccount = error.blames === "account";
    return {
      kind: "refused",
      status,
      message: `status ${status}: ${error.kept}`,
      ofAccount,
      wholeHost: ofAccount || WHOLE_HOST_FAILURES.has(status),
      certain: !(isClients || DOUBTFUL_STATUSES.has(status)),
      // Fewer at once do not fill an account.
      overloaded: !ofAccount && OVERLOAD_STATUSES.has(status),
      restMs: REST_STATUSES.has(status) ? (retryAfterMs(reply, deps.clock) ?? error.restMs) : null,
    };
  }

  private async awaitFirstToken(
    source: HostReply,
    judge: StreamJudge,
    metadata: AnswerMetadata,
  ): Promise<HostAttemptOutcome> {
    const held: Uint8Array[] = [];
    const most = MAX_PRELUDE_BYTES + REPEATED_REQUEST * this.request.body.length;
    for (let readBytes = 0; readBytes <= most; ) {
      const read = source.read();
      const next = read instanceof Promise ? await read : read;
      if (next instanceof HostFault) return this.faulted(next);
      // A host that ignores `stream` still gives the whole answer.
      if (held.length === 0 && next !== null && beginsWhole(next, source))
        return this.judgeWhole(await readOn(source, this.mostWholeBytes, [], next), metadata);
      const bytes = next === null ? judge.end() : judge.push(next);
      held.push(bytes);
      readBytes += next?.length ?? 0;
      if (judge.tokenSeen || (judge.isComplete && judge.fault === null && saysAnything(judge))) {
        this.limit.stop();
        const first = held.length === 1 ? bytes : Buffer.concat(held);
        if (judge.isDeclined) return this.openedWhole(judge, first);
        return new Opened(
          this.serving(judge),
          this.hostRequest.body.omitted,
          source.takeBody(),
          judge,
          first,
          this.exchange!,
          false,
          this.chain,
        );
      }
      if (judge.fault !== null) return this.failed(judge.fault);
      if (next === null || judge.isComplete)
        return { kind: "refused", message: "the stream ended without a token" };
    }
    return { kind: "refused", message: `no token within ${most} bytes` };
  }

  /**
   * Reads a stream to its end for a client that wants the answer whole. The client has seen nothing, so any
   * failure moves on.
   */
  private async collect(
    source: HostReply,
    judge: WholeJudge,
    metadata: AnswerMetadata,
  ): Promise<HostAttemptOutcome> {
    const { clock } = this.deps;
    const { limits } = this.call;
    const most = this.mostWholeBytes;
    for (let bytes = 0; bytes <= most; ) {
      const read = source.read();
      const next = read instanceof Promise ? await read : read;
      if (next instanceof HostFault) return this.late(this.faulted(next));
      if (bytes === 0 && next !== null && beginsWhole(next, source))
        return this.judgeWhole(await readOn(source, this.mostWholeBytes, [], next), metadata);
      if (next === null) judge.end();
      else judge.push(next);
      bytes += next?.length ?? 0;
      if (judge.fault !== null) return this.late(this.failed(judge.fault));
      if (judge.isComplete) return this.completed(judge);
      if (!judge.tokenSeen) continue;
      this.firstMs ??= clock.elapsedMs();
      const leftMs = Math.max(0, limits.totalMs - (clock.elapsedMs() - this.firstMs));
      this.limit.restart(Math.min(limits.chunkGapMs, leftMs));
    }
    return this.late({ kind: "refused", message: `the answer is larger than ${most} bytes` });
  }

  /** A bug of ours that this answer brought to light. The next host's answer may be readable. */
  private unreadable(error: unknown): HostAttemptOutcome {
    this.deps.onFault(error, this.call.receipt);
    if (this.limit.over) return this.late(this.limit.outcome());
    return this.late({ kind: "refused", message: "its answer could not be read" });
  }

  private late(failure: HostAttemptOutcome): HostAttemptOutcome {
    return this.firstMs === null || failure.kind === "abandoned"
      ? failure
      : ({ ...failure, lateMs: this.deps.clock.elapsedMs() - this.firstMs } as HostAttemptOutcome);
  }

  private faulted(fault: HostFault): HostAttemptOutcome {
    if (this.limit.over) return this.limit.outcome();
    return {
      kind: "unreachable",
      fault: fault.kind,
      message: fault.stale ? "the host closed two connections in a row" : `${fault.kind}: ${fault.message}`,
      wholeHost: WHOLE_HOST_FAULTS.has(fault.kind),
    };
  }
}

/**
 * At a host with several keys, what the outcome says of the one that was used. While another key can serve the
 * request, a failure of this one says nothing about the host.
 */
function judgedKey(
  outcome: HostAttemptOutcome,
  key: KeyLease,
  { route }: Candidate,
  clock: Clock,
): HostAttemptOutcome {
  if (outcome.kind !== "refused") return noteAnswer(outcome, key, clock);
  const { status, ofAccount = false, restMs = null } = outcome;
  if (status === 401 || (status === 403 && ofAccount)) key.refused(outcome.message);
  else if (ofAccount) key.limited(null, restMs);
  else if (status === 429) key.limited(route.model, restMs);
  else return outcome;
  if (key.hasOther) return { ...outcome, hasOtherKey: true };
  // The host rests until the first of its keys has.
  return status === 429 ? { ...outcome, restMs: key.restMs } : outcome;
}

function noteAnswer(outcome: HostAttemptOutcome, key: KeyLease, clock: Clock): HostAttemptOutcome {
  if (!ANSWERS.has(outcome.kind)) return outcome;
  key.served();
  const usage =
    outcome.kind === "answered"
      ? outcome.reply.usage
      : outcome.kind === "opened" && outcome.isWhole
        ? outcome.judge.usage
        : null;
  if (usage !== null) key.used(tokensIn(usage), clock.elapsedMs());
  return outcome;
}

const tokensIn = ({ input, cacheRead, cacheWrite, output }: Usage): number =>
  input + cacheRead + cacheWrite + output;

/** A host's words go to customers, into receipts and into the log. */
function withoutSecrets(outcome: HostAttemptOutcome, host: Host): HostAttemptOutcome {
  if (outcome.kind === "rejected") {
    const { message, kept, param } = outcome.error;
    const clean = {
      message: redact(message, host),
      kept: redact(kept, host),
      param: param && redact(param, host),
    };
    return { ...outcome, error: { ...outcome.error, ...clean } };
  }
  return "message" in outcome ? { ...outcome, message: redact(outcome.message, host) } : outcome;
}

/** A stream that ended: an empty one is an answer where the host says what it used or why it stopped. */
const saysAnything = ({ tokenSeen, usage, stoppedShort }: StreamJudge): boolean =>
  tokenSeen || usage !== null || stoppedShort;

const isStale = (reply: HostReply | HostFault, limit: TimeLimit): boolean =>
  reply instanceof HostFault && reply.stale && !limit.over;

/** What every host attempt uses. */
export interface HostAttemptDeps {
  readonly transport: Transport;
  readonly destinations: Destinations;
  readonly clock: Clock;
  /** Called with a mistake in the gateway that an answer brought to light. */
  onFault(error: unknown, receipt: ReceiptId): void;
}

/** What differs from one client's call to the next. */
export interface HostAttemptCall {
  readonly limits: HostAttemptLimits;
  /** The client's headers that the host should see, lower-case names. */
  readonly clientHeaders: Readonly<Record<string, string>>;
  readonly receipt: ReceiptId;
}

/** Limits on an answer that is collected: silence inside it, and its whole duration. */
export interface HostAttemptLimits {
  readonly chunkGapMs: number;
  readonly totalMs: number;
}

export type HostAttemptOutcome =
  | Opened
  | AnsweredWhole
  | Declined
  | Rejected
  | HostFailure
  | { readonly kind: "abandoned" | "outrun"; readonly message: string };

interface HostFailure {
  readonly kind: "refused" | "unreachable" | "silent";
  readonly message: string;
  /** The error status that the host answered with. */
  readonly status?: number;
  /** What broke below HTTP. */
  readonly fault?: HostFaultKind;
  /** It concerns the whole host, not only this model. */
  readonly wholeHost?: boolean;
  /** It concerns the gateway's account or key there. */
  readonly ofAccount?: boolean;
  /** Only the key of this attempt failed, and the host has others for the request. */
  readonly hasOtherKey?: boolean;
  /** It is the host's own doing: no request could have caused it. */
  readonly certain?: boolean;
  /** The host has too much to do. */
  readonly overloaded?: boolean;
  /** The host asks to be left alone for this long. */
  readonly restMs?: number | null;
  /** It was given up before its share of the time was over, because another host was ready. */
  readonly early?: boolean;
  /** It failed this long after its first token, while its answer was collected. */
  readonly lateMs?: number;
}

/**
 * A stream whose first token is here. It may last for minutes, so it keeps nothing of what it was opened
 * with.
 */
export class Opened {
  readonly kind = "opened";
  private slot: Slot | null = null;

  constructor(
    readonly candidate: Candidate,
    /** Fields of the request that were not sent to the host: see `Pairing`. */
    readonly omitted: readonly string[],
    readonly source: HostBytes,
    readonly judge: StreamJudge,
    private first: Uint8Array,
    private readonly exchange: HostExchange,
    /** The host gave its answer in one piece, and has nothing to do for it any more. */
    readonly isWhole = false,
    /** The models of its host that may have a part in it, the one requested first; null: only one may. */
    readonly chain: readonly Candidate[] | null = null,
  ) {}

  /** The place at the host, given back when the stream is over. */
  occupy(slot: Slot): void {
    this.slot = slot;
  }

  /** What has come so far, for the client. */
  takeFirst(): Uint8Array {
    const { first } = this;
    this.first = NO_BYTES;
    return first;
  }

  /** Stops the host, however far it is; one that has said its last word only has to end its body. */
  cancel(): void {
    if (this.judge.isComplete) this.exchange.done();
    else this.exchange.cancel();
    const { usage } = this.judge;
    if (usage !== null) this.slot?.used?.(tokensIn(usage));
    this.slot?.release();
  }
}

export interface AnsweredWhole {
  readonly kind: "answered";
  readonly candidate: Candidate;
  readonly omitted: readonly string[];
  readonly reply: Extract<ReadReply, { kind: "reply" }>;
  /** As of `Opened`. */
  readonly chain: readonly Candidate[] | null;
}

/** The host declined, which another model may not: see `isDeclined` in surfaces. */
export interface Declined {
  readonly kind: "declined";
  /** What it said: a refusal without content. */
  readonly answer: Opened | AnsweredWhole;
}

export interface Rejected {
  readonly kind: "rejected";
  readonly candidate: Candidate;
  readonly status: number;
  readonly error: HostError;
}

const ANSWERS: ReadonlySet<HostAttemptOutcome["kind"]> = new Set(["opened", "answered", "declined"]);

/** Unstreamed answers and error bodies are read whole, up to this. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;
/** Bytes of roles, pings and comments that may come before the first token. */
const MAX_PRELUDE_BYTES = 1024 * 1024;
/**
 * Responses repeat the request's instructions and tools in two events before that, and some hosts spell a letter
 * of two bytes in six.
 */
const REPEATED_REQUEST = 2 * 3;

/**
 * Statuses by which a host fails: its own trouble, or the gateway's standing with it, not the client's
 * request. Groq's 498 is a want of capacity, its 499 a request that it cancelled. 410 is a model that the host
 * has given up.
 */
const HOST_FAILURES = new Set([401, 402, 403, 404, 405, 407, 408, 409, 410, 421, 425, 429, 498, 499]);
/** Statuses and faults that concern the whole host, whatever the model. */
const WHOLE_HOST_FAILURES = new Set([401, 402, 407]);
const WHOLE_HOST_FAULTS = new Set<HostFault["kind"]>(["dns", "refused", "tls", "connect_timeout"]);
/** Statuses by which a host may speak of the request alone, or of how long it takes. */
const DOUBTFUL_STATUSES = new Set([403, 404, 405, 408, 409, 410, 421, 425, 499, 504, 524]);
/** Statuses that say: fewer at once. Anthropic's 529 is "overloaded". */
const OVERLOAD_STATUSES = new Set([408, 429, 498, 503, 504, 529]);
/** Statuses whose `Retry-After` is obeyed. */
const REST_STATUSES = new Set([429, 503]);

const ALL_READ: HostBytes = { next: () => null };

/** Synchronous when all of it is here, as a small answer usually is with its head. */
function readWhole(reply: HostReply, most: number): Uint8Array | HostFault | Promise<Uint8Array | HostFault> {
  const first = reply.read();
  if (!(first instanceof Uint8Array) || first.length > most) return readOn(reply, most, [], first);
  const next = reply.read();
  return next === null ? first : readOn(reply, most, [first], next);
}

async function readOn(
  reply: HostReply,
  most: number,
  chunks: Uint8Array[],
  read: Read | Promise<Read>,
): Promise<Uint8Array | HostFault> {
  let length = chunks[0]?.length ?? 0;
  for (let next = await read; ; next = await reply.read()) {
    if (next instanceof HostFault) return next;
    if (next === null) return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    chunks.push(next);
    length += next.length;
    if (length > most) return new HostFault("malformed", `the answer is larger than ${most} bytes`);
  }
}

const overloads = (outcome: HostAttemptOutcome): boolean =>
  (outcome.kind === "silent" && outcome.early !== true) ||
  (outcome.kind === "refused" && outcome.overloaded === true && outcome.hasOtherKey !== true);

/**
 * Seconds or a date, as RFC 9110 has it, or OpenAI's and Azure's milliseconds; null when the host named none.
 */
function retryAfterMs({ headers }: HostReply, clock: Clock): number | null {
  const exact = headers.get("retry-after-ms");
  if (exact !== undefined && NUMBER.test(exact)) return Math.ceil(Number(exact));
  const text = headers.get("retry-after");
  if (text === undefined) return null;
  const ms = NUMBER.test(text) ? Math.ceil(Number(text) * 1_000) : Date.parse(text) - clock.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/** Some hosts send fractions, which a date parser takes for a month and a day. */
const NUMBER = /^\d{1,9}(\.\d{1,9})?$/;
