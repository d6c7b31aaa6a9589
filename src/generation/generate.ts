import { type Catalog, catalogAt, type SurfaceName } from "../catalog/catalog.ts";
import { priceListOf } from "../customers/keys/key.ts";
import type { Holder } from "../customers/keys/keyring.ts";
import { missingTag } from "../customers/keys/tags.ts";
import type { AnsweredWhole, Opened } from "../hosts/attempt-outcome.ts";
import { type FailoverOutcome, tryHosts } from "../hosts/failover.ts";
import { NO_TOKENS } from "../ledger/charge.ts";
import { untaggedBudget } from "../ledger/counter.ts";
import { type RequestTrace, refusedReceipt } from "../ledger/receipt.ts";
import type { Allowance } from "../ledger/reservation.ts";
import type { InlinePayment } from "../payments/rails/x402/inline.ts";
import { cacheLifetimeMs } from "../routing/cache-lifetime.ts";
import { type Candidate, ceilingAt, type RouteQuery, type StickyRoute } from "../routing/candidate.ts";
import { type ConversationId, conversationOf, MAX_SESSION } from "../routing/conversation.ts";
import { asksOpenTier, idMeantBy, idsMeantBy, sortMeantBy } from "../routing/naming.ts";
import { NO_OVERRIDES, namesOverrides, readOverrides, sortedBy } from "../routing/overrides.ts";
import { makePlan, type Plan } from "../routing/plan.ts";
import { sessionOf } from "../routing/session-ids.ts";
import { type Subject, subjectOf } from "../surfaces/request/refused-request.ts";
import { withoutPrompt } from "../surfaces/request.ts";
import type { GenerationRequest, Surface } from "../surfaces/surface.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import { assert } from "../units/assert.ts";
import type { EpochMs } from "../units/clock.ts";
import { bookkeepingDown, contended, StoreContended, StoreUnreachable } from "../units/errors/bookkeeping.ts";
import {
  errorObject,
  internalError,
  type Refusal,
  refusalHeaders,
  refuse,
  refused,
} from "../units/errors/refusal.ts";
import { suspension } from "../units/errors/suspension-refusal.ts";
import { newReceiptId, type ReceiptId } from "../units/id.ts";
import type { Trace } from "../units/trace-context.ts";
import { type Admitted, admit, checkContext, imposedCeiling, KEY_CHANGED } from "./admission.ts";
import type { GenerationAnswer, GenerationCall, StreamedAnswer, WholeAnswer } from "./answer.ts";
import { Bill, billedBy, declinedModels, type EndedRequest, type RequestEnd } from "./bill.ts";
import { billedTokens, isPromptReported, notePrompt } from "./billed-tokens.ts";
import { clientHeaders } from "./client-headers.ts";
import { ContextWatch, countedRefusal } from "./context-watch.ts";
import type { ReadRequest } from "./counting/counting.ts";
import { StreamDelivery } from "./delivery.ts";
import type { GenerationDeps, GenerationSettings } from "./deps.ts";
import { type BilledAnswer, billedAnswer, noteCosts } from "./handed-bill.ts";
import { joinNamedRun, type NamedRun, namedRun, withoutRun } from "./named-run.ts";
import { PromptCount } from "./prompt-count.ts";
import type { ConversationSize } from "./prompt-sizes.ts";
import { Recount, unkept } from "./recount.ts";
import { crowded, noAnswer, noOverride, notAKey, unpaidRefusal } from "./refusals.ts";
import { requestTags } from "./request-tags.ts";
import { type PricedRequest, sentRequest } from "./sent-request.ts";
import { rateRefusal } from "./shortfall.ts";
import { readUnpaid } from "./unpaid-request.ts";
import { pricedRetentions } from "./unpriced-retention.ts";

/**
 * A generation request from the bearer token to the last byte. Every decision about it is made here, in
 * reading order; the rooms that this calls hold the arithmetic and the I/O.
 */
export function generator(
  deps: GenerationDeps,
): (surface: SurfaceName, call: GenerationCall) => Promise<GenerationAnswer> {
  return (surface, call) => new RequestFlow(deps, SURFACES[surface], call).answer();
}

/**
 * What a request keeps for its next pass. It passes through all checks again after its key changed while it waited, and
 * after it paid for credit.
 */
interface Pass {
  readonly keyChanges: number;
  /** What a thread read of the body of a sender without credit. */
  readonly read: ReadRequest | null;
  readonly prompt: PromptCount | null;
  /** Set from the request's turn to pay for credit itself. */
  readonly payment: InlinePayment | null;
}

const FIRST_PASS: Pass = { keyChanges: 0, read: null, prompt: null, payment: null };

/** One request, up to its answer. Its fields fill in the order of the rooms, and again in each pass. */
class RequestFlow {
  private readonly id: ReceiptId;
  private readonly at: EpochMs;
  private readonly startedMs: number;
  private readonly settings: GenerationSettings;
  /** At the prices of the key's list, as of the latest pass. */
  private catalog: Catalog;
  private readonly trace: Trace | null;
  private pass: Pass = FIRST_PASS;
  private holder: Holder | null = null;
  private request: GenerationRequest | null = null;
  /** The request with the size of what hosts are sent of it. */
  private sent: PricedRequest | null = null;
  /** Open Tier allowances that the request draws on; empty on the paid tier. */
  private allowances: readonly Allowance[] = [];
  private conversation: ConversationId | null = null;
  /** Null where the prompt takes little of its model's context. */
  private promptSize: ConversationSize | null = null;
  /** The conversation's sticky route is not where every process would begin. */
  private isElsewhere = false;
  /** It wants the default fallbacks of a model that has none. */
  private lacksFallbacks = false;
  private bill: Bill | null = null;
  private opened: Opened | null = null;

  constructor(
    private readonly deps: GenerationDeps,
    private readonly surface: Surface,
    private readonly call: GenerationCall,
  ) {
    this.at = deps.clock.now();
    this.id = newReceiptId(this.at, deps.random);
    this.startedMs = deps.clock.elapsedMs();
    this.trace = deps.reporting.openTrace(call.headers);
    this.settings = deps.settings();
    this.catalog = deps.catalog();
  }

  /** Never rejects. */
  // biome-ignore lint/complexity/noExcessiveLinesPerFunction: every decision about a request, in order, in one block.
  async answer(): Promise<GenerationAnswer> {
    const { deps, call, surface, settings } = this;
    try {
      while (true) {
        const found = deps.keyring.identify(call.secret, deps.clock.now());
        const holder = found instanceof Promise ? await found : found;
        if (holder === null) return this.refusal(notAKey(call.secret, settings.dashboardUrl));
        if (holder.balance.suspended !== null) {
          return this.refusal(suspension(holder.balance.suspended, settings.contact));
        }
        this.holder = holder;
        const priceList = priceListOf(holder);
        this.catalog = catalogAt(deps.catalog(), priceList);

        // Before the body is parsed, so that a key at a hundred times its rate does not cost a hundred times as
        // much.
        const tooOften = deps.ledger.overRate(holder.key);
        if (tooOften !== null) return this.refusal(rateRefusal(tooOften, settings.dashboardUrl));
        const isFirst = this.pass === FIRST_PASS;
        const unpaid = isFirst ? unpaidRefusal(holder.balance.id, call, deps.unpaidRequests) : null;
        if (unpaid !== null) return this.refusal(unpaid);

        const inThread = call.isUnpaid ? (this.pass.read ?? (await this.readUnpaid())) : null;
        const read = inThread === null ? surface.readRequest(call.body) : inThread.read;
        if (refused(read)) return this.refusal(read, inThread?.subject ?? subjectOf(call.body));
        const meant = idMeantBy(read.model, this.catalog, deps.suggest);
        if (refused(meant)) return this.refusal(meant, read);
        const request = meant === read.model ? read : { ...read, model: meant };
        this.request = request;

        if (asksOpenTier(request.model, this.catalog)) {
          this.allowances = deps.allowances(holder.balance, call.blocks());
          // Loaded before anything is refused, so that every answer can say what remains.
          await deps.ledger.counters.of(holder.key, [], this.allowances, this.at);
        }
        const planned = this.plan(request, holder, inThread);
        if (refused(planned)) return this.refusal(planned);
        const plan = pricedRetentions(planned, request, inThread === null ? deps.pairing : null, settings);
        if (refused(plan)) return this.refusal(plan);
        // After a body was read in a thread, only its short members are here.
        const sent = inThread === null ? this.sentTo(plan, request) : { priced: request, prepared: null };
        this.sent = sent;
        const { priced } = sent;
        const prompt = this.pass.prompt ?? this.promptCount(priced, holder);
        const context = checkContext(priced, plan, () => this.sizeOf(request, priced, holder, inThread));
        this.promptSize = context?.size ?? null;
        const tooLong = context?.doubt === "large" ? await context.refusal(prompt) : null;
        if (tooLong !== null) return this.refusal(tooLong);
        // A host that may well serve it need not wait for the count.
        const watch = context?.doubt === "small" ? new ContextWatch(context, prompt, call.signal) : null;

        // Before anything is held: shedding must cost less than serving.
        if (this.areAllFull(plan)) return this.refusal(crowded(request, plan, deps.chance));
        if (!deps.journal.healthy) return this.refusal(bookkeepingDown());
        const tags = requestTags(call.headers, request, holder, deps.userPseudonym);
        if (refused(tags)) return this.refusal(tags);
        const untagged = untaggedBudget(holder.budgets, tags);
        if (untagged !== null) return this.refusal(missingTag(untagged));
        const named = namedRun(call.headers, request);
        if (refused(named)) return this.refusal(named);
        const run = named === null ? null : await joinNamedRun(named, holder.key, call, deps);
        if (refused(run)) return this.refusal(run);
        const { id: receipt, allowances } = this;
        const { key, budgets } = holder;
        const admission = {
          receipt,
          key,
          budgets,
          priceList,
          tags,
          run,
          request: priced,
          prompt,
          plan,
          allowances,
          settings,
        };
        const admitting = admit(admission, deps);
        const admitted = admitting instanceof Promise ? await admitting : admitting;
        if (admitted === KEY_CHANGED) {
          // As of this moment it may spend less, other models, or nothing.
          const keyChanges = this.pass.keyChanges + 1;
          if (keyChanges === MAX_KEY_CHANGES) return this.refusal(contended());
          this.pass = { ...this.pass, keyChanges, read: inThread, prompt };
          continue;
        }
        if (refused(admitted)) {
          const payment = await this.payment(admitted, holder);
          if (refused(payment)) return this.refusal(payment);
          this.pass = { ...this.pass, read: inThread, prompt, payment };
          continue;
        }
        this.pass.payment?.end();
        const whole = inThread === null && named?.isMember !== true ? request : this.parsed(request, named);
        this.request = whole;
        const { reservation } = admitted.hold;
        const bill = new Bill(
          deps,
          reservation,
          this.startedMs,
          this.requestTrace(),
          this.catalog.priceVersion,
        );
        this.bill = bill;

        // Written while the host works, because a stream's first byte waits for it. A whole answer waits only
        // for its settlement.
        if (request.stream) void deps.journal.durable(reservation.sequence);
        const outcome = await this.attempt(whole, admitted, holder, watch?.signal ?? call.signal);
        bill.tries = outcome.tries;
        // Both await here and not in a function of their own, because each async call costs four objects.
        switch (outcome.kind) {
          case "opened": {
            this.opened = outcome;
            if (!outcome.judge.isDeclined) this.served(outcome.candidate, admitted.plan);
            const firstTokenMs = bill.elapsedMs();
            const durable = deps.journal.durable(reservation.sequence);
            if (durable === true || (await durable))
              return this.stream(outcome, servedRequest(priced, outcome), admitted, bill, firstTokenMs);
            outcome.cancel();
            return await this.failed(bookkeepingDown(), bill);
          }
          case "answered": {
            if (!outcome.reply.isDeclined) this.served(outcome.candidate, admitted.plan);
            const billed = this.billed(outcome, servedRequest(priced, outcome));
            const ended = this.settle(outcome, billed instanceof Promise ? await billed : billed, bill);
            if (ended.durable === true || (await ended.durable)) return this.whole(outcome, ended, bill);
            bill.takeBack(ended);
            return this.errorAnswer(bookkeepingDown());
          }
          case "abandoned": {
            const { workingHost } = outcome;
            if (watch !== null && watch.tooLong !== null) return await this.failed(watch.tooLong, bill);
            const cost = workingHost === null ? null : await this.costOfLeaving(workingHost, priced);
            const nothing = refuse("invalid_request", "The client disconnected before the answer began.");
            return await this.unanswered(nothing, bill, { state: "cancelled", tokens: NO_TOKENS, ...cost });
          }
          default: {
            const { catalog } = this;
            const counted = context === null ? null : await countedRefusal(outcome, context, prompt);
            if (counted !== null) return await this.failed(counted, bill);
            const why = noAnswer(outcome, {
              request,
              plan: admitted.plan,
              key,
              catalog,
              routeState: deps.health,
              chance: deps.chance,
            });
            return await this.failed(why, bill);
          }
        }
      }
    } catch (error) {
      // The store is only read before anything is held.
      if (error instanceof StoreContended && this.bill === null) return this.refusal(contended());
      deps.onFault(error, this.id);
      if (error instanceof StoreUnreachable && this.bill === null) return this.refusal(bookkeepingDown());
      this.opened?.cancel();
      this.bill?.abandon();
      return this.errorAnswer(internalError());
    } finally {
      this.pass.payment?.end();
    }
  }

  /**
   * The payment with which the request is checked again, in turn with others of the balance, where credit is all that it
   * lacks; otherwise the refusal, which says what to pay where that would help.
   */
  private async payment(refusal: Refusal, holder: Holder): Promise<InlinePayment | Refusal> {
    const { payments } = this.deps;
    const { payment } = this.pass;
    const { lacking } = refusal.details;
    if (payments === null || lacking === undefined) return refusal;
    if (payment !== null) return (await payment.pay(refusal, lacking)) ?? payment;
    const header = this.call.headers.get("payment-signature");
    if (header === null) return payments.offered(refusal, holder.balance, lacking);
    return payments.begin(header, refusal, { ...holder, blocks: () => this.call.blocks() }, lacking);
  }

  private readUnpaid(): Promise<ReadRequest> {
    const { call, surface, deps } = this;
    const { body } = call;
    return readUnpaid({ surface: surface.name, body, counting: false }, call, deps.counting);
  }

  /** A request with all of its members, where it was read in a thread, but without the run that it names. */
  private parsed(request: GenerationRequest, named: NamedRun | null): GenerationRequest {
    const read = this.surface.readRequest(named?.isMember ? withoutRun(request) : request.body);
    assert(!refused(read), "a request was read and refused afterwards");
    return { ...read, model: request.model };
  }

  private promptCount(request: GenerationRequest, { balance }: Holder): PromptCount {
    const { deps, call, settings } = this;
    return new PromptCount(request, balance.id, deps.counting, call, settings.attempts.firstTokenMs);
  }

  /** What is known of the size of the conversation's prompt, of which hosts are sent `priced`. */
  private sizeOf(
    request: GenerationRequest,
    priced: GenerationRequest,
    { balance }: Holder,
    inThread: ReadRequest | null,
  ): ConversationSize {
    const { call, deps, conversation } = this;
    const opening = inThread?.opening ?? null;
    const known = conversation ?? conversationOf(request, call.headers, balance.id, opening).conversation;
    return deps.promptSizes.of(known, priced);
  }

  private sentTo(plan: Plan, request: GenerationRequest): PricedRequest {
    return sentRequest(request, plan, this.settings.defaultMaxOutputTokens, this.deps.pairing);
  }

  private areAllFull({ candidates }: Plan): boolean {
    for (const { route } of candidates) if (!this.deps.slots.full(route.host)) return false;
    return true;
  }

  private plan(
    request: GenerationRequest,
    { key, balance }: Holder,
    inThread: ReadRequest | null,
  ): Plan | Refusal {
    const { deps, catalog, call, settings } = this;
    if (this.allowances.length > 0) {
      const override = namesOverrides(request.overrides);
      if (override !== null) return noOverride(override);
    }
    const overrides = readOverrides(request.overrides, request.surface);
    if (refused(overrides)) return overrides;
    const moreModels = idsMeantBy(overrides.moreModels, catalog, deps.suggest);
    if (refused(moreModels)) return moreModels;
    const sort = sortMeantBy(request.requestedModel, catalog);
    const { model, surface, promptEstimate, json } = request;
    // Hosts refuse `fallbacks` next to the token of an earlier refusal.
    const mayBeHanded = overrides.mayBeHanded && json.fallback_credit_token == null;
    // With a single host of one key there is no choice to remember, and free requests are not to fill the memory.
    const routes = catalog.models.get(model)?.routes;
    const isOneHost = routes?.length === 1 && routes[0]!.host.keys === undefined;
    const mayMove = this.allowances.length === 0 && !isOneHost;
    let sticky: StickyRoute | null = null;
    if (mayMove) {
      const { conversation, turned } = conversationOf(request, call.headers, balance.id, inThread?.opening);
      this.conversation = conversation;
      const known = deps.affinity.stickyRoute(conversation);
      this.isElsewhere = known !== null;
      if (turned) sticky = known;
    }
    const query: RouteQuery = {
      model,
      surface,
      stream: request.stream,
      overrides: sortedBy(
        sort,
        overrides === NO_OVERRIDES ? overrides : { ...overrides, moreModels, mayBeHanded },
      ),
      allowedModels: key.allowedModels,
      policy: key.policy ?? null,
      promptEstimate,
      // Needed only when the client asks for hosts that support all of them.
      members: overrides.provider.requireParameters ? Object.keys(json) : [],
      maxHosts: settings.attempts.maxHosts,
      order: settings.order,
      sticky,
      conversation: this.conversation,
      by: balance.id,
      chance: deps.chance,
    };
    const plan = makePlan(query, catalog, deps.health, deps.suggest);
    const isDefault = request.overrides.fallbacks === "default";
    this.lacksFallbacks =
      isDefault && !refused(plan) && !plan.candidates.some(({ isFallback }) => isFallback === true);
    return plan;
  }

  private attempt(
    request: GenerationRequest,
    admitted: Admitted,
    { key }: Holder,
    signal: AbortSignal,
  ): Promise<FailoverOutcome> {
    const { settings, trace } = this;
    const { headers } = this.call;
    const call = {
      signal,
      limits: this.limitsLeft(),
      clientHeaders: clientHeaders(headers),
      outputCeiling: imposedCeiling(request, admitted),
      defaultMaxOutputTokens: settings.defaultMaxOutputTokens,
      prepared: this.sent!.prepared,
      keyId: key.rotationId,
      balanceId: key.balanceId,
      conversation: this.conversation,
      trace,
      receipt: this.id,
    };
    return tryHosts(request, admitted.plan, call, this.deps);
  }

  /** Time spent counting is deducted from the time for a first token. */
  private limitsLeft(): GenerationSettings["attempts"] {
    const { attempts } = this.settings;
    const spentMs = this.deps.clock.elapsedMs() - this.startedMs;
    if (spentMs < NOTABLE_MS) return attempts;
    return { ...attempts, firstTokenMs: Math.max(NOTABLE_MS, attempts.firstTokenMs - spentMs) };
  }

  private stream(
    opened: Opened,
    request: GenerationRequest,
    { hold }: Admitted,
    bill: Bill,
    firstTokenMs: number,
  ): StreamedAnswer {
    const { deps, settings, call } = this;
    const headers = {
      ...this.headers("text/event-stream", opened),
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    };
    const isFree = bill.reservation.request.amount === 0;
    const isReported = isPromptReported(opened.judge.usage, { request, model: opened.candidate.model });
    // Counting a long prompt takes seconds of a thread, for which nobody would pay here.
    const prompt = isFree || isReported ? null : deps.prompts.keep(request.body);
    return new StreamDelivery(headers, {
      deps,
      settings,
      request: withoutPrompt(request),
      promptSize: this.promptSize,
      opened,
      bill,
      counts: new Recount(deps.counting, opened.candidate, prompt),
      hold,
      firstTokenMs,
      signal: call.signal,
    });
  }

  private billed(
    { reply, candidate, chain }: AnsweredWhole,
    request: GenerationRequest,
  ): BilledAnswer | Promise<BilledAnswer> {
    const { usage, countedTokens: estimate, isDeclined, texts, writers } = reply;
    const all = () => ({ texts: texts(), unkept: 0 });
    const text = { estimate, estimateSinceReport: 0, all, sinceReport: all };
    const counts = new Recount(this.deps.counting, candidate, unkept(request.body));
    const isFree = isDeclined && candidate.route.host.refusals === "free";
    const by = { candidate, chain, writers };
    return billedAnswer({ usage, text, isLeft: false, isFree }, by, request, counts);
  }

  private settle({ reply, chain }: AnsweredWhole, billed: BilledAnswer, bill: Bill): EndedRequest {
    const { usage } = reply;
    const { promptSize } = this;
    const { candidate, tokens, from, charges } = billed;
    if (promptSize !== null && charges.length === 0)
      notePrompt(promptSize, usage, { request: this.request!, model: candidate.model });
    const hostCost = noteCosts(this.deps.hostCosts, billed, usage);
    // A host that drains was read to its end although the client had left.
    const state = this.call.signal.aborted ? "cancelled" : "settled";
    const isHanded = chain !== null;
    const firstTokenMs = bill.elapsedMs();
    return bill.settle({ state, tokens, from, candidate, charges, isHanded, firstTokenMs }, hostCost);
  }

  private whole(answered: AnsweredWhole, ended: EndedRequest, bill: Bill): WholeAnswer {
    bill.report(ended, true);
    const headers = this.headers("application/json", answered);
    return { kind: "whole", status: 200, headers, body: answered.reply.body(billedBy(ended)) };
  }

  private served(candidate: Candidate, { home }: Plan): void {
    const { conversation, request, deps } = this;
    if (conversation === null || candidate.isExplored === true) return;
    const { route } = candidate;
    deps.affinity.served(conversation, candidate, {
      isHome: route === home && !this.isElsewhere,
      keptMs: cacheLifetimeMs(request!, route),
    });
  }

  private failed(refusal: Refusal, bill: Bill): Promise<WholeAnswer> {
    return this.unanswered(refusal, bill, { state: "failed", tokens: NO_TOKENS, errorCode: refusal.code });
  }

  /** A host that a client left before the first token charges for the prompt that it was sent, or for nothing. */
  private async costOfLeaving(
    candidate: Candidate,
    request: GenerationRequest,
  ): Promise<Partial<RequestEnd>> {
    if (candidate.route.host.billsCancelled !== "prompt") return { candidate: candidate };
    const nothing = () => ({ texts: [], unkept: 0 });
    const text = { estimate: 0, estimateSinceReport: 0, all: nothing, sinceReport: nothing };
    const counts = new Recount(this.deps.counting, candidate, unkept(request.body));
    const about = { request, model: candidate.model };
    const { tokens, from } = await billedTokens(
      { usage: null, text, isLeft: true, isFree: false },
      about,
      counts,
    );
    return { candidate: candidate, tokens, from };
  }

  /** Gives back what the end does not cost and answers with the error, once both are durable. */
  private async unanswered(refusal: Refusal, bill: Bill, end: RequestEnd): Promise<WholeAnswer> {
    const ended = bill.settle(end);
    const isDurable = ended.durable === true || (await ended.durable);
    bill.report(ended, isDurable);
    return this.errorAnswer(isDurable ? refusal : bookkeepingDown());
  }

  /** Answers a request that opened no hold. */
  private refusal(refusal: Refusal, subject: Subject | null = this.subject()): WholeAnswer {
    const { deps, holder } = this;
    const receipt = refusedReceipt({
      id: this.id,
      createdAt: this.at,
      surface: this.surface.name,
      modelRequested: subject?.model ?? "",
      stream: subject?.stream ?? false,
      totalMs: deps.clock.elapsedMs() - this.startedMs,
      errorCode: refusal.code,
    });
    deps.reporting.finished({ ...receipt, keyId: holder?.key.id ?? null, trace: this.requestTrace() });
    if (holder !== null) {
      const { id: keyId, balanceId } = holder.key;
      deps.receipts.keepRefused({ ...receipt, keyId, balanceId });
    }
    return this.errorAnswer(refusal);
  }

  private subject(): Subject | null {
    const { request } = this;
    return request === null ? null : { model: request.requestedModel, stream: request.stream };
  }

  private errorAnswer(refusal: Refusal): WholeAnswer {
    const error = errorObject(refusal, this.settings.baseUrl);
    return {
      kind: "whole",
      status: refusal.status,
      headers: { ...this.headers("application/json"), ...refusalHeaders(refusal) },
      body: this.surface.errorBody(error, this.id),
    };
  }

  private headers(contentType: string, answer?: ServedAnswer): Record<string, string> {
    const headers: Record<string, string> = {
      "content-type": contentType,
      "x-gateway-receipt": this.id,
      "x-request-id": this.id,
      "request-id": this.id,
    };
    if (this.allowances.length > 0) {
      const remaining = this.deps.ledger.remaining(this.allowances, this.deps.clock.now());
      if (remaining !== null) headers["x-gateway-open-tier-remaining"] = String(remaining);
    }
    const { payment } = this.pass;
    if (payment?.response != null) headers["payment-response"] = payment.response;
    if (answer === undefined) return headers;
    const { candidate } = answer;
    // Whatever was not sent to the host is named, never dropped silently.
    const omitted = this.lacksFallbacks ? [...answer.omitted, "fallbacks"] : answer.omitted;
    if (omitted.length > 0) headers["x-gateway-omitted"] = omitted.join(", ");
    const declined = declinedModels(this.bill!.tries);
    if (declined.length > 0) {
      headers["x-gateway-declined"] = declined.join(", ");
      headers["x-gateway-model"] = candidate.model.id;
    }
    return headers;
  }

  private requestTrace(): RequestTrace | null {
    const { trace, startedMs, at: startedAt, request, call } = this;
    if (trace === null) return null;
    const named = request === null || !trace.sampled ? null : sessionOf(call.headers, request.json);
    return { ...trace, startedAt, startedMs, conversation: named?.slice(0, MAX_SESSION) ?? null };
  }
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
/** Nobody changes a key as often as that while a request waits. */
const MAX_KEY_CHANGES = 8;
