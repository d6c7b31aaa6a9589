import type { Model } from "../catalog/catalog.ts";
import { type AttemptRecord, LOST_HEDGE } from "../ledger/receipt.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { Health, Observation } from "../routing/health.ts";
import { routeOf, withoutNativeFallbacks } from "../routing/native-fallbacks.ts";
import type { Plan } from "../routing/plan.ts";
import { changedRequest } from "../surfaces/messages/changed-request.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { Deadlines } from "../units/deadlines.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import type { RandomBytes } from "../units/random.ts";
import { childSpan, formatTraceparent, type TraceContext } from "../units/trace-context.ts";
import {
  type AnsweredWhole,
  type Declined,
  decliningIn,
  type HostAttemptOutcome,
  type Opened,
  type Rejected,
} from "./attempt-outcome.ts";
import { observationOf, recordsOf } from "./attempt-record.ts";
import { firstToEnd, type Hedged } from "./hedging.ts";
import {
  HostAttempt,
  type HostAttemptCall,
  type HostAttemptDeps,
  type HostAttemptLimits,
} from "./host-attempt.ts";
import {
  type HostRequest,
  hostRequestFor,
  type OutputCeilings,
  type PairingOf,
  type PreparedRequest,
} from "./host-request.ts";
import { refusesFallbacks } from "./host-status.ts";
import type { KeyRequest } from "./slots/host-key-slots.ts";
import type { HostSlots, Slot } from "./slots/host-slots.ts";
import { TimeLimit } from "./time-limit.ts";

/**
 * Walks the plan until a host answers. It returns only with the first token in hand (or with the whole
 * answer, when it is not streamed). That is the commit point: nothing after it can try another host, and
 * everything before it may fail freely, because the client has seen nothing.
 */
export function tryHosts(
  request: GenerationRequest,
  plan: Plan,
  call: FailoverCall,
  deps: FailoverDeps,
): Promise<FailoverOutcome> {
  deps.health.begin();
  return new Failover(request, plan, call, deps).run();
}

/** What all attempts are made with, made once. */
export interface FailoverDeps extends HostAttemptDeps {
  readonly pairing: PairingOf;
  readonly health: Health;
  readonly slots: HostSlots;
  readonly deadlines: Deadlines;
  readonly random: RandomBytes;
  /** Called with each try, once health has learnt from it. */
  tried(candidate: Candidate, outcome: AttemptRecord["outcome"], observation: Observation): void;
}

/** What differs from one request to the next. */
export interface FailoverCall extends HostAttemptCall, OutputCeilings {
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  readonly limits: FailoverLimits;
  /** The request as written for the plan's first host; null if it is yet to be written. */
  readonly prepared: PreparedRequest | null;
  /** Keys take turns in a host's queue. */
  readonly keyId: string;
  /** Stays with one of a host's keys; null: any. */
  readonly conversation: number | null;
  /** Whose request it is. */
  readonly balanceId: BalanceId;
  /** Parent of each try's span; null when nobody traces. */
  readonly trace: TraceContext | null;
}

export interface FailoverLimits extends HostAttemptLimits {
  /** From the first try to the first token, over all hosts. */
  readonly firstTokenMs: number;
  readonly maxHosts: number;
  /** See hosts/hedging; null: never. */
  readonly hedgeMs: number | null;
}

export type FailoverOutcome = { readonly tries: readonly AttemptRecord[] } & (
  | Opened
  | AnsweredWhole
  | Rejected
  | { readonly kind: "exhausted"; readonly timedOut: boolean; readonly waitedMs: number }
  | { readonly kind: "untranslatable"; readonly refusal: Refusal }
  /** No host was tried, because each had as many requests as it takes. */
  | { readonly kind: "crowded" }
  | Abandoned
);

/** The client left. */
interface Abandoned {
  readonly kind: "abandoned";
  /** Was working for it then, and may charge for that. */
  readonly workingHost: Candidate | null;
}

/** One request on its way along the plan; at most two hosts are asked at the same time. */
class Failover {
  private deadlineMs: number;
  /** The plan's candidates, followed by those that were passed over the first time. */
  private candidates: readonly Candidate[];
  /** How many of these are the plan's. */
  private listed: number;
  private next = 0;
  /** In the order in which they began. */
  private readonly running: RunningAttempt[] = [];
  private readonly tries: (readonly AttemptRecord[])[] = [];
  private startedAttempts = 0;
  /** Started attempts that followed another key of the same host. */
  private followedKeys = 0;
  private hedged = false;
  private crowded = false;
  private untranslatable: Refusal | null = null;
  /** The first answer that declined: the client gets it if nobody answers otherwise. */
  private declined: Declined["answer"] | null = null;
  /** A model has declined, with an answer or an error. */
  private mayFallBack = false;
  /** The last host's verdict on the request that it moved on from. */
  private verdict: Rejected | null = null;
  /** The models that it moved on from so, or that declined. */
  private excluded: readonly Model[] = [];
  /** A host that was working when the client left; one that charges for that, if there is one. */
  private workingHost: Candidate | null = null;

  constructor(
    private readonly request: GenerationRequest,
    private readonly plan: Plan,
    private readonly call: FailoverCall,
    private readonly deps: FailoverDeps,
  ) {
    this.deadlineMs = deps.clock.elapsedMs() + call.limits.firstTokenMs;
    const { candidates } = plan;
    const own = candidates.findIndex(({ isFallback }) => isFallback === true);
    this.candidates = own === -1 ? candidates : candidates.slice(0, own);
    this.listed = this.candidates.length;
  }

  async run(): Promise<FailoverOutcome> {
    const { running } = this;
    const { signal } = this.call;
    try {
      for (;;) {
        // A host that drains is read on: it charges for all of its answer in any case.
        if (signal.aborted && running.length === 0) return this.end(this.abandoned());
        if (running.length === 0) {
          const started = this.start();
          if (!(started instanceof Promise ? await started : started))
            return signal.aborted ? this.end(this.abandoned()) : this.exhausted();
        }
        const ended =
          running.length > 1 || this.mayHedge()
            ? await firstToEnd(running, this.call.limits.hedgeMs!, this.deps.clock)
            : running[0]!;
        if (ended === null) {
          this.hedged = true;
          await this.start();
          continue;
        }
        const outcome = this.outcomeAfter(ended, await ended.ended);
        if (outcome !== null) return this.end(outcome);
      }
    } catch (error) {
      // A bug of ours: no host may go on working for nobody.
      this.leave(LOST_HEDGE);
      throw error;
    }
  }

  /**
   * Asks the next host; false when there is none left. Synchronous, unless the request has to wait in a host's queue.
   */
  private start(): boolean | Promise<boolean> {
    const { call } = this;
    const { signal, limits } = call;
    const { clock, health, slots, pairing } = this.deps;
    while (
      this.next < this.candidates.length &&
      this.hostsTried < limits.maxHosts &&
      clock.elapsedMs() < this.deadlineMs
    ) {
      // The client may have left while the request waited.
      if (signal.aborted) return false;
      const at = this.next++;
      const candidate = this.candidates[at]!;
      if (this.excluded.includes(candidate.model)) continue;
      // With what an entry of `fallbacks` changes for the candidate's model.
      const { changes } = candidate;
      const request = changes === undefined ? this.request : changedRequest(this.request, changes);
      const hostRequest = refused(request)
        ? request
        : hostRequestFor(request, candidate, call, pairing, call.prepared);
      if (refused(request) || refused(hostRequest)) {
        this.untranslatable ??= hostRequest as Refusal;
        continue;
      }
      const isLast = at >= this.listed - 1;
      const slot = slots.take(candidate.route.host, this.keyRequest(candidate), candidate.route.free);
      if (!isLast && (slot === null || !health.usable(candidate.route))) {
        // The host is full, resting, or being probed by another request: try it after the others.
        slot?.release();
        this.candidates = [...this.candidates, candidate];
        continue;
      }
      if (this.hostsTried > 0 && !health.mayRetry(candidate.model, candidate.route)) {
        slot?.release();
        return false;
      }
      if (slot !== null) {
        this.startAttempt(candidate, request, hostRequest, slot);
        return true;
      }
      // Nobody waits for a slot while another host is already being asked.
      if (this.running.length === 0) return this.startQueued(candidate, request, hostRequest);
      this.crowded = true;
    }
    return false;
  }

  private async startQueued(
    candidate: Candidate,
    request: GenerationRequest,
    hostRequest: HostRequest,
  ): Promise<boolean> {
    const { clock, slots } = this.deps;
    const { keyId, balanceId, signal } = this.call;
    const leftMs = this.deadlineMs - clock.elapsedMs();
    const { host, free: isFree } = candidate.route;
    const waitMs = Math.min(MAX_QUEUE_MS, leftMs / 2);
    const slot = await slots.wait(
      host,
      { keyId, balanceId, isFree },
      waitMs,
      signal,
      this.keyRequest(candidate),
    );
    if (slot === null) {
      this.crowded = true;
      return this.start();
    }
    // The client may have left just as its turn came.
    if (signal.aborted) {
      slot.release();
      return false;
    }
    this.startAttempt(candidate, request, hostRequest, slot);
    return true;
  }

  private get hostsTried(): number {
    return this.startedAttempts - this.followedKeys;
  }

  /** Undefined where the host has one key. */
  private keyRequest({ route }: Candidate): KeyRequest | undefined {
    if (route.host.keys === undefined) return undefined;
    const { promptEstimate, maxOutputTokens } = this.request;
    const tokens = promptEstimate + (maxOutputTokens ?? 0);
    const model = route.free ? `${route.model}\nfree` : route.model;
    return { conversation: this.call.conversation, model, tokens };
  }

  /** The same host has its turn again before the next one: it has another key, or takes another request. */
  private addKey(candidate: Candidate): void {
    this.followedKeys += 1;
    this.candidates = this.candidates.toSpliced(this.next, 0, candidate);
    this.listed += 1;
  }

  private startAttempt(
    candidate: Candidate,
    request: GenerationRequest,
    hostRequest: HostRequest,
    slot: Slot,
  ): void {
    const { call, deps } = this;
    const { clock, health, deadlines, random } = deps;
    const startedMs = clock.elapsedMs();
    health.enter(candidate.route);
    if (candidate.isExplored === true) health.noteExploration(candidate.route, call.balanceId);
    const { ms, early } = this.limitOf(candidate, hostRequest, startedMs);
    const drains = candidate.route.host.onDisconnect === "drain";
    const limit = new TimeLimit(clock, deadlines, ms, drains ? null : call.signal, early);
    const span = call.trace === null ? null : childSpan(call.trace, random);
    const ended = new HostAttempt(
      request,
      candidate,
      hostRequest,
      traced(call, span),
      deps,
      limit,
      slot,
    ).run();
    this.running.push({
      candidate,
      streams: hostRequest.stream,
      limit,
      at: this.startedAttempts++,
      startedMs,
      ended,
      span,
    });
  }

  /**
   * The remaining time is divided among the remaining hosts, but no host gets more than it is worth waiting
   * for. How long a whole answer takes depends on its length, so nobody is given up for one that takes longer
   * than others.
   */
  private limitOf(
    candidate: Candidate,
    hostRequest: HostRequest,
    nowMs: number,
  ): { readonly ms: number; readonly early: boolean } {
    const { limits } = this.call;
    const { health } = this.deps;
    const left = Math.min(limits.maxHosts - this.hostsTried, this.candidates.length - this.next + 1);
    const shareMs = (this.deadlineMs - nowMs) / left;
    const other = this.request.stream && hostRequest.stream ? this.readyAfter(1) : null;
    if (other === null) return { ms: shareMs, early: false };
    const waitMs =
      health.firstTokenWaitMs(candidate.route, other.route, candidate.model, this.request.promptEstimate) ??
      shareMs;
    return { ms: Math.min(shareMs, waitMs), early: waitMs < shareMs };
  }

  /** The host that would be asked next, once `more` others have started. */
  private readyAfter(more: number): Candidate | null {
    if (this.hostsTried + more >= this.call.limits.maxHosts) return null;
    for (let at = this.next; at < this.candidates.length; at++) {
      const candidate = this.candidates[at]!;
      if (!this.excluded.includes(candidate.model) && this.deps.health.usable(candidate.route))
        return candidate;
    }
    return null;
  }

  private mayHedge(): boolean {
    const { hedgeMs } = this.call.limits;
    if (hedgeMs === null || this.hedged || !this.request.stream) return false;
    return this.running[0]!.streams && this.readyAfter(0) !== null;
  }

  /** The outcome of the request, if this try decides it; null when another host is tried. */
  private outcomeAfter(ended: RunningAttempt, outcome: HostAttemptOutcome): FinalOutcome | null {
    if (this.running[0] === ended) this.running.shift();
    else this.running.pop();
    this.note(ended, outcome);
    // Time after a first token was not spent waiting for one.
    if ("lateMs" in outcome) this.deadlineMs += outcome.lateMs ?? 0;
    switch (outcome.kind) {
      case "opened":
      case "answered":
        return outcome;
      case "declined":
        return this.afterDecline(outcome.answer);
      case "abandoned":
        if (this.workingHost?.route.host.billsCancelled !== "prompt") this.workingHost = ended.candidate;
        return this.running.length === 0 ? this.abandoned() : null;
      case "rejected":
        if (refusesFallbacks(outcome)) this.addWithoutFallbacks(outcome.candidate);
        else if (!this.movesOn(outcome)) return outcome;
        return null;
      case "refused":
        if (outcome.hasOtherKey === true) this.addKey(ended.candidate);
        return null;
      default:
        return null;
    }
  }

  /** The host has its turn again, without `fallbacks`, which are then the gateway's to try. */
  private addWithoutFallbacks(candidate: Candidate): void {
    this.deps.health.refusesFallbacks(
      candidate.route,
      candidate.nativeFallbacks!.map(routeOf),
      this.call.balanceId,
    );
    this.addKey(withoutNativeFallbacks(candidate));
  }

  /** Another model may answer, but no other host of one that declined. */
  private afterDecline(answer: Declined["answer"]): FinalOutcome | null {
    this.declined ??= answer;
    if (this.plan.movesOn === "never") return this.declined;
    this.excluded = [...this.excluded, ...decliningIn(answer)];
    this.addFallbacks();
    return null;
  }

  /** The operator's fallbacks have their turn once a model has declined. */
  private addFallbacks(): void {
    if (this.mayFallBack) return;
    this.mayFallBack = true;
    const fallbacks = this.plan.candidates.filter(({ isFallback }) => isFallback === true);
    this.candidates = [...this.candidates, ...fallbacks];
    this.listed = this.candidates.length;
  }

  /** Whether somebody else is asked although a host found something wrong with the request. */
  private movesOn(rejected: Rejected): boolean {
    const { movesOn } = this.plan;
    const { contextTooLong, isPolicy } = rejected.error;
    const toNextModel = movesOn === "always" || (movesOn === "unfit" && (contextTooLong || isPolicy));
    // With a good status it came as the first event, after which the next host has its turn (contract §6). Every
    // host says so of a prompt that is too long.
    if (!toNextModel && (contextTooLong || rejected.status >= 300)) return false;
    this.verdict = rejected;
    if (toNextModel) this.excluded = [...this.excluded, rejected.candidate.model];
    if (isPolicy) this.addFallbacks();
    return true;
  }

  private note({ candidate, at, startedMs, span }: RunningAttempt, outcome: HostAttemptOutcome): void {
    const { deps, call } = this;
    const ms = deps.clock.elapsedMs() - startedMs;
    this.tries[at] = recordsOf(outcome, candidate, ms, span && { id: span.spanId, startedMs });
    const observation = observationOf(outcome, ms, this.request.promptEstimate, call.balanceId);
    deps.health.observe(candidate.route, observation);
    deps.tried(candidate, outcome.kind, observation);
  }

  private end(outcome: FinalOutcome): FailoverOutcome {
    this.leave(outcome.kind === "abandoned" ? "abandoned" : LOST_HEDGE);
    return Object.assign(outcome, { tries: this.tries.flat() });
  }

  private abandoned(): Abandoned {
    return { kind: "abandoned", workingHost: this.workingHost };
  }

  /** Leaves whatever host is still being asked. */
  private leave(why: "abandoned" | typeof LOST_HEDGE): void {
    for (const running of this.running) {
      running.limit.end(why);
      this.note(running, running.limit.outcome());
      // Its first token may have come in the same turn of the loop.
      running.ended.then(
        (late) => late.kind === "opened" && late.cancel(),
        () => {},
      );
    }
  }

  private exhausted(): FailoverOutcome {
    const { untranslatable, verdict, declined } = this;
    const tries = this.tries.flat();
    if (declined !== null) return Object.assign(declined, { tries });
    if (verdict !== null && tries.at(-1)?.outcome === "rejected") return { ...verdict, tries };
    if (tries.length === 0 && this.crowded) return { kind: "crowded", tries };
    if (tries.length === 0 && untranslatable !== null)
      return { kind: "untranslatable", refusal: untranslatable, tries };
    const { firstTokenMs } = this.call.limits;
    const waitedMs = this.deps.clock.elapsedMs() - (this.deadlineMs - firstTokenMs);
    // Timers fire a little early or late, so the last share may end just before the whole does.
    return { kind: "exhausted", timedOut: waitedMs >= firstTokenMs - TIMER_SLACK_MS, waitedMs, tries };
  }
}

const TIMER_SLACK_MS = 2;
/** The longest wait for a slot at a host. Beyond that, a client does better to come back later. */
const MAX_QUEUE_MS = 5_000;

const traced = (call: FailoverCall, span: TraceContext | null): HostAttemptCall =>
  span === null
    ? call
    : { ...call, clientHeaders: { ...call.clientHeaders, traceparent: formatTraceparent(span) } };

type FinalOutcome = Opened | AnsweredWhole | Rejected | Abandoned;

/** A host that is being asked. */
interface RunningAttempt extends Hedged {
  readonly candidate: Candidate;
  /** It was asked for a stream. */
  readonly streams: boolean;
  readonly limit: TimeLimit;
  /** Its index among the tries. */
  readonly at: number;
  readonly ended: Promise<HostAttemptOutcome>;
  readonly span: TraceContext | null;
}
