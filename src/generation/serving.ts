import type { Catalog } from "../catalog/catalog.ts";
import { NO_TOKENS } from "../catalog/tokens.ts";
import type { Holder } from "../customers/keys/keyring.ts";
import type { AnsweredWhole, Opened } from "../hosts/attempt-outcome.ts";
import { type FailoverOutcome, tryHosts } from "../hosts/failover.ts";
import { cacheLifetimeMs } from "../routing/cache-lifetime.ts";
import { type Candidate, ceilingAt } from "../routing/candidate.ts";
import type { ConversationId } from "../routing/conversation.ts";
import type { Plan } from "../routing/plan.ts";
import { withoutPrompt } from "../surfaces/request.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { bookkeepingDown } from "../units/errors/bookkeeping.ts";
import { internalError, type Refusal, refuse } from "../units/errors/refusal.ts";
import { type Admitted, imposedCeiling } from "./admission.ts";
import type { GenerationAnswer, StreamedAnswer, WholeAnswer } from "./answer.ts";
import {
  type ArrivedRequest,
  errorAnswer,
  headersOf,
  type ReportedState,
  requestTrace,
} from "./arrived-request.ts";
import { billedTokens, isPromptReported, notePrompt } from "./billed-tokens.ts";
import { clientHeaders } from "./client-headers.ts";
import { type ContextCheck, type ContextWatch, countedRefusal } from "./context-check.ts";
import type { GenerationDeps, GenerationSettings } from "./deps.ts";
import {
  billedBy,
  declinedModels,
  type EndedRequest,
  HoldSettlement,
  type RequestEnd,
} from "./hold-settlement.ts";
import { type BilledAnswer, billedAnswer, noteCosts } from "./native-fallback-bill.ts";
import type { PromptCount } from "./prompt-count.ts";
import { Recount, unkept } from "./recount.ts";
import { noAnswer } from "./refusals.ts";
import type { PricedRequest } from "./sent-request.ts";
import { StreamDelivery } from "./stream/delivery.ts";

/** The hosts that a request may be tried on, and its conversation. */
export interface PlannedRequest {
  readonly plan: Plan;
  /** Null where there is no choice between hosts to remember. */
  readonly conversation: ConversationId | null;
  /** The conversation's sticky route is not where every process would begin. */
  readonly isElsewhere: boolean;
  /** It wants the default fallbacks of a model that has none. */
  readonly lacksFallbacks: boolean;
}

/** A request that holds money. */
export interface HeldRequest extends ReportedState {
  readonly arrival: ArrivedRequest;
  readonly holder: Holder;
  /** At the prices of the key's list. */
  readonly catalog: Catalog;
  /** With all of its members, and without the run that it names. */
  readonly request: GenerationRequest;
  readonly sent: PricedRequest;
  /** Its plan is `admitted`'s, which the hold covers. */
  readonly planned: Omit<PlannedRequest, "plan">;
  readonly admitted: Admitted;
  readonly prompt: PromptCount;
  /** Null where the prompt takes little of its model's context. */
  readonly context: ContextCheck | null;
  readonly watch: ContextWatch | null;
}

/** Takes a request from its hold to its answer: tries it at its hosts, and settles it once. Never rejects. */
export const serve = (held: HeldRequest, deps: GenerationDeps): Promise<GenerationAnswer> =>
  new ServingFlow(held, deps).answer();

class ServingFlow {
  private readonly settlement: HoldSettlement;
  private opened: Opened | null = null;

  constructor(
    private readonly held: HeldRequest,
    private readonly deps: GenerationDeps,
  ) {
    const { arrival, request, admitted, catalog } = held;
    const trace = requestTrace(arrival, request);
    const { reservation } = admitted.hold;
    this.settlement = new HoldSettlement(deps, reservation, arrival.startedMs, trace, catalog.priceVersion);
  }

  async answer(): Promise<GenerationAnswer> {
    const { deps, settlement } = this;
    const { request, sent, watch } = this.held;
    const { reservation } = settlement;
    try {
      // Written while the host works, because a stream's first byte waits for it. A whole answer waits only
      // for its settlement.
      if (request.stream) void deps.journal.durable(reservation.sequence);
      const outcome = await this.runFailover();
      settlement.tries = outcome.tries;
      // Both await here and not in a function of their own, because each async call costs four objects.
      switch (outcome.kind) {
        case "opened": {
          this.opened = outcome;
          if (!outcome.judge.isDeclined) this.noteServed(outcome.candidate);
          const firstTokenMs = settlement.elapsedMs();
          const durable = deps.journal.durable(reservation.sequence);
          if (durable === true || (await durable))
            return this.stream(outcome, servedRequest(sent.priced, outcome), firstTokenMs);
          outcome.cancel();
          return await this.failed(bookkeepingDown());
        }
        case "answered": {
          if (!outcome.reply.isDeclined) this.noteServed(outcome.candidate);
          const billed = this.billed(outcome, servedRequest(sent.priced, outcome));
          const ended = this.settle(outcome, billed instanceof Promise ? await billed : billed);
          if (ended.durable === true || (await ended.durable)) return this.whole(outcome, ended);
          settlement.takeBack(ended);
          return this.error(bookkeepingDown());
        }
        case "abandoned":
          if (watch !== null && watch.tooLong !== null) return await this.failed(watch.tooLong);
          return await this.left(outcome.workingHost);
        default:
          return await this.failed(await this.whyUnanswered(outcome));
      }
    } catch (error) {
      deps.onFault(error, this.held.arrival.id);
      this.opened?.cancel();
      settlement.abandon();
      return this.error(internalError());
    }
  }

  private runFailover(): Promise<FailoverOutcome> {
    const { arrival, holder, request, sent, planned, admitted, watch } = this.held;
    const { call, settings, trace, id } = arrival;
    const { rotationId, balanceId } = holder.key;
    return tryHosts(
      request,
      admitted.plan,
      {
        signal: watch?.signal ?? call.signal,
        limits: this.limitsLeft(),
        clientHeaders: clientHeaders(call.headers),
        outputCeiling: imposedCeiling(request, admitted),
        defaultMaxOutputTokens: settings.defaultMaxOutputTokens,
        prepared: sent.prepared,
        keyId: rotationId,
        balanceId,
        conversation: planned.conversation,
        trace,
        receipt: id,
      },
      this.deps,
    );
  }

  /** Time spent counting is deducted from the time for a first token. */
  private limitsLeft(): GenerationSettings["attempts"] {
    const { attempts } = this.held.arrival.settings;
    const spentMs = this.settlement.elapsedMs();
    if (spentMs < NOTABLE_MS) return attempts;
    return { ...attempts, firstTokenMs: Math.max(NOTABLE_MS, attempts.firstTokenMs - spentMs) };
  }

  /** Keeps where the conversation was served, for its next turn. */
  private noteServed(candidate: Candidate): void {
    const { request, planned, admitted } = this.held;
    const { conversation, isElsewhere } = planned;
    if (conversation === null || candidate.isExplored === true) return;
    const { route } = candidate;
    this.deps.affinity.served(conversation, candidate, {
      isHome: route === admitted.plan.home && !isElsewhere,
      keptMs: cacheLifetimeMs(request, route),
    });
  }

  private stream(opened: Opened, request: GenerationRequest, firstTokenMs: number): StreamedAnswer {
    const { deps, held, settlement } = this;
    const { settings, call } = held.arrival;
    const headers = {
      ...this.headers("text/event-stream", opened),
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    };
    const isFree = settlement.reservation.request.amount === 0;
    const isReported = isPromptReported(opened.judge.usage, { request, model: opened.candidate.model });
    // Counting a long prompt takes seconds of a thread, for which nobody would pay here.
    const prompt = isFree || isReported ? null : deps.prompts.keep(request.body);
    return new StreamDelivery(headers, {
      deps,
      settings,
      request: withoutPrompt(request),
      promptSize: held.context?.size ?? null,
      opened,
      settlement,
      counts: new Recount(deps.counting, opened.candidate, prompt),
      hold: held.admitted.hold,
      firstTokenMs,
      signal: call.signal,
    });
  }

  private billed(
    { reply, candidate, chain }: AnsweredWhole,
    request: GenerationRequest,
  ): BilledAnswer | Promise<BilledAnswer> {
    const { usage, countedTokens: estimate, isDeclined, texts, writers } = reply;
    const text = wholeText(estimate, texts);
    const counts = new Recount(this.deps.counting, candidate, unkept(request.body));
    const isFree = isDeclined && candidate.route.host.refusals === "free";
    const by = { candidate, chain, writers };
    return billedAnswer({ usage, text, isLeft: false, isFree }, by, request, counts);
  }

  private settle({ reply }: AnsweredWhole, billed: BilledAnswer): EndedRequest {
    const { usage } = reply;
    const { arrival, context, request } = this.held;
    const { candidate, tokens, from, charges } = billed;
    if (context !== null && charges.length === 0)
      notePrompt(context.size, usage, { request, model: candidate.model });
    const hostCost = noteCosts(this.deps.hostCosts, billed, usage);
    // A host that drains was read to its end although the client had left.
    const state = arrival.call.signal.aborted ? "cancelled" : "settled";
    const firstTokenMs = this.settlement.elapsedMs();
    return this.settlement.settle({ state, tokens, from, candidate, charges, firstTokenMs }, hostCost);
  }

  private whole(answered: AnsweredWhole, ended: EndedRequest): WholeAnswer {
    this.settlement.report(ended, true);
    const headers = this.headers("application/json", answered);
    const body = answered.reply.body(billedBy(ended, answered.chain !== null));
    return { kind: "whole", status: 200, headers, body };
  }

  private failed(refusal: Refusal): Promise<WholeAnswer> {
    return this.unanswered(refusal, { state: "failed", tokens: NO_TOKENS, errorCode: refusal.code });
  }

  private async whyUnanswered(outcome: Parameters<typeof noAnswer>[0]): Promise<Refusal> {
    const { holder, request, admitted, catalog, context, prompt } = this.held;
    const { health: routeState, chance } = this.deps;
    const counted = context === null ? null : await countedRefusal(outcome, context, prompt);
    const { plan } = admitted;
    return counted ?? noAnswer(outcome, { request, plan, key: holder.key, catalog, routeState, chance });
  }

  /** A host that a client left before the first token charges for the prompt that it was sent, or for nothing. */
  private async left(candidate: Candidate | null): Promise<WholeAnswer> {
    const refusal = refuse("invalid_request", "The client disconnected before the answer began.");
    if (candidate?.route.host.billsCancelled !== "prompt")
      return this.unanswered(refusal, {
        state: "cancelled",
        tokens: NO_TOKENS,
        ...(candidate && { candidate }),
      });
    const request = this.held.sent.priced;
    const counts = new Recount(this.deps.counting, candidate, unkept(request.body));
    const answer = { usage: null, text: wholeText(0, () => []), isLeft: true, isFree: false };
    const billed = await billedTokens(answer, { request, model: candidate.model }, counts);
    return this.unanswered(refusal, { state: "cancelled", candidate, ...billed });
  }

  /** Gives back what the end does not cost and answers with the error, once both are durable. */
  private async unanswered(refusal: Refusal, end: RequestEnd): Promise<WholeAnswer> {
    const ended = this.settlement.settle(end);
    const isDurable = ended.durable === true || (await ended.durable);
    this.settlement.report(ended, isDurable);
    return this.error(isDurable ? refusal : bookkeepingDown());
  }

  private error(refusal: Refusal): WholeAnswer {
    return errorAnswer(refusal, this.held.arrival, this.held, this.deps);
  }

  private headers(contentType: string, { candidate, omitted }: ServedAnswer): Record<string, string> {
    const { arrival, planned } = this.held;
    const headers = headersOf(contentType, arrival, this.held, this.deps);
    // Whatever was not sent to the host is named, never dropped silently.
    const all = planned.lacksFallbacks ? [...omitted, "fallbacks"] : omitted;
    if (all.length > 0) headers["x-gateway-omitted"] = all.join(", ");
    const declined = declinedModels(this.settlement.tries);
    if (declined.length > 0) {
      headers["x-gateway-declined"] = declined.join(", ");
      headers["x-gateway-model"] = candidate.model.id;
    }
    return headers;
  }
}

/** What was written of an answer that came at once. */
function wholeText(estimate: number, texts: () => readonly string[]) {
  const all = () => ({ texts: texts(), unkept: 0 });
  return { estimate, estimateSinceReport: 0, all, sinceReport: all };
}

/** With the ceiling that an entry of `fallbacks` names for the model that serves, where no other has a part in it. */
const servedRequest = (
  request: GenerationRequest,
  { candidate, chain }: Pick<Opened, "candidate" | "chain">,
): GenerationRequest =>
  candidate.changes === undefined || chain !== null
    ? request
    : { ...request, maxOutputTokens: ceilingAt(candidate, request) };

type ServedAnswer = Pick<AnsweredWhole, "candidate" | "omitted">;

const NOTABLE_MS = 1_000;
