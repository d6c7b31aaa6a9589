import type { Host } from "../catalog/catalog.ts";
import { type Candidate, ceilingAt } from "../routing/candidate.ts";
import { chainOf } from "../routing/native-fallbacks.ts";
import { mostAnswerBytes } from "../surfaces/events/answer-bounds.ts";
import { NO_BYTES } from "../surfaces/json/bytes.ts";
import type {
  AnswerMetadata,
  GenerationRequest,
  HostError,
  StreamJudge,
  WholeJudge,
} from "../surfaces/surface.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import { withoutByteOrderMark } from "../units/byte-order-mark.ts";
import type { Clock } from "../units/clock.ts";
import type { ReceiptId } from "../units/id.ts";
import {
  type AnsweredWhole,
  answerOf,
  type Declined,
  type HostAttemptOutcome,
  Opened,
  readOf,
  tokensIn,
} from "./attempt-outcome.ts";
import { type Destinations, ownHeaders } from "./destination.ts";
import type { HostRequest } from "./host-request.ts";
import { judgeStatus } from "./host-status.ts";
import { type NativeFallbackAnswer, servingIn } from "./native-fallback-answer.ts";
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
  type Transport,
} from "./transport.ts";
import { readOn, readWhole } from "./whole-body.ts";

/** Asks one host for a first token (or for its whole answer, where that is wanted). */
export class HostAttempt {
  private exchange: HostExchange | null = null;
  /** When the first token of a collected answer arrived. */
  private firstMs: number | null = null;
  private status = 0;
  /** The models that may have a part in the answer; null: only one may. */
  private readonly chain: readonly Candidate[] | null;

  constructor(
    private readonly request: GenerationRequest,
    private readonly candidate: Candidate,
    private readonly hostRequest: HostRequest,
    private readonly call: HostAttemptCall,
    private readonly deps: HostAttemptDeps,
    private readonly limit: TimeLimit,
    private readonly slot: Slot,
  ) {
    const hasFallbacks = candidate.nativeFallbacks !== undefined && hostRequest.spoken === "messages";
    this.chain = hasFallbacks ? chainOf(candidate) : null;
  }

  /**
   * Runs until the answer is here, the host fails, or time is up. The place at the host is then released,
   * except for an opened stream, which keeps it until the host is done.
   */
  async run(): Promise<HostAttemptOutcome> {
    const { limit, slot } = this;
    let outcome: HostAttemptOutcome | null = null;
    try {
      let reply = await this.send(false);
      // A pooled connection that the host had closed in the meantime says nothing about the host: retry once,
      // on a fresh one.
      if (reply instanceof HostFault && reply.stale && !limit.over) reply = await this.send(true);
      try {
        const judged = reply instanceof HostFault ? this.faulted(reply) : this.judgeReply(reply);
        outcome = withoutSecrets(
          judged instanceof Promise ? await judged : judged,
          this.candidate.route.host,
        );
      } catch (error) {
        outcome = this.unreadable(error);
      }
      const { key } = slot;
      if (key !== null) outcome = judgedKey(outcome, key, this.candidate);
      return outcome;
    } finally {
      limit.stop();
      if (outcome?.kind === "opened" && !outcome.isWhole) {
        outcome.occupy(slot);
      } else {
        if (outcome !== null && answerOf(outcome) !== null) this.exchange?.done();
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

  private judgeReply(reply: HostReply): HostAttemptOutcome | Promise<HostAttemptOutcome> {
    const { request } = this;
    const { pairing, stream } = this.hostRequest;
    this.status = reply.status;
    if (reply.status < 200 || reply.status > 299) return this.judgeError(reply);
    const metadata = this.metadata();
    if (!stream) {
      const body = readWhole(reply, this.mostWholeBytes);
      return body instanceof Promise
        ? body.then((read) => this.judgeWhole(read, metadata))
        : this.judgeWhole(body, metadata);
    }
    if (!request.stream) return this.collect(reply, pairing.openWhole(request, metadata), metadata);
    const judge = pairing.openStream(request, metadata);
    judge.limitTo(this.mostBytes);
    return this.awaitFirstToken(reply, judge, metadata);
  }

  private metadata(): AnswerMetadata {
    const { chain, candidate, deps } = this;
    const endS = () => Math.floor(deps.clock.now() / 1_000);
    const about = { publicModel: candidate.model.id, atS: endS(), endS };
    return chain === null
      ? about
      : { ...about, idOf: (writers) => servingIn(chain, { writers, usage: null }).model.id };
  }

  /** Who serves, as far as the answer has shown. */
  private serving(answer: NativeFallbackAnswer): Candidate {
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
    return this.opened(judge, first, null);
  }

  /** `rest`: null where all of it is here, as it is of one that was declined. */
  private opened(judge: StreamJudge, first: Uint8Array, rest: HostReply | null): Opened | Declined {
    const { isDeclined } = judge;
    const isWhole = rest === null || isDeclined;
    const opened = new Opened(
      this.serving(judge),
      this.hostRequest.body.omitted,
      isWhole ? ALL_READ : rest.takeBody(),
      judge,
      first,
      this.exchange!,
      isWhole,
      this.chain,
    );
    return isDeclined ? { kind: "declined", answer: opened } : opened;
  }

  private answered(reply: AnsweredWhole["reply"]): AnsweredWhole | Declined {
    const { hostRequest, chain } = this;
    const candidate = this.serving(reply);
    const { omitted } = hostRequest.body;
    const answer = { kind: "answered", candidate, omitted, reply, chain } as const;
    return reply.isDeclined ? { kind: "declined", answer } : answer;
  }

  private async judgeError(reply: HostReply): Promise<HostAttemptOutcome> {
    const body = await readWhole(reply, MAX_ERROR_BYTES);
    if (this.limit.over) return this.limit.outcome();
    const bytes = body instanceof Uint8Array ? withoutByteOrderMark(body) : NO_BYTES;
    return judgeStatus(reply, bytes, this.candidate, this.deps.clock);
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
        return this.opened(judge, first, source);
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
function judgedKey(outcome: HostAttemptOutcome, key: KeyLease, { route }: Candidate): HostAttemptOutcome {
  if (outcome.kind !== "refused") return noteAnswer(outcome, key);
  const { status, ofAccount = false, restMs = null } = outcome;
  if (status === 401 || (status === 403 && ofAccount)) key.refused(outcome.message);
  else if (ofAccount && !route.free) key.limited(null, restMs);
  else if (ofAccount || status === 429) key.limited(key.model, restMs);
  else return outcome;
  if (key.hasOther) return { ...outcome, hasOtherKey: true };
  // The host rests until the first of its keys has.
  return status === 429 ? { ...outcome, restMs: key.restMs } : outcome;
}

function noteAnswer(outcome: HostAttemptOutcome, key: KeyLease): HostAttemptOutcome {
  if (answerOf(outcome) === null) return outcome;
  key.served();
  const isOver = outcome.kind === "answered" || (outcome.kind === "opened" && outcome.isWhole);
  const usage = isOver ? readOf(outcome).usage : null;
  if (usage !== null) key.used(tokensIn(usage));
  return outcome;
}

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

/** Faults that concern the whole host, whatever the model. */
const WHOLE_HOST_FAULTS = new Set<HostFault["kind"]>(["dns", "refused", "tls", "connect_timeout"]);

const ALL_READ: HostBytes = { next: () => null };

const overloads = (outcome: HostAttemptOutcome): boolean =>
  (outcome.kind === "silent" && outcome.early !== true) ||
  (outcome.kind === "refused" && outcome.overloaded === true && outcome.hasOtherKey !== true);
