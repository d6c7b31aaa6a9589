import { type Catalog, catalogAt, type SurfaceName } from "../catalog/catalog.ts";
import { priceListOf } from "../customers/keys/key.ts";
import type { Holder } from "../customers/keys/keyring.ts";
import { missingTag } from "../customers/keys/tags.ts";
import { untaggedBudget } from "../ledger/counter.ts";
import { refusedReceipt } from "../ledger/receipt.ts";
import type { Allowance } from "../ledger/reservation.ts";
import type { InlinePayment } from "../payments/rails/x402/inline.ts";
import type { StickyRoute } from "../routing/candidate.ts";
import { type ConversationId, conversationOf, type Opening } from "../routing/conversation.ts";
import { asksOpenTier, idMeantBy, idsMeantBy, sortMeantBy } from "../routing/naming.ts";
import { NO_OVERRIDES, namesOverrides, readOverrides, sortedBy } from "../routing/overrides.ts";
import { makePlan } from "../routing/plan.ts";
import { type Subject, subjectOf } from "../surfaces/request/refused-request.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import { assert } from "../units/assert.ts";
import { bookkeepingDown, contended, StoreContended, StoreUnreachable } from "../units/errors/bookkeeping.ts";
import { internalError, type Refusal, refused } from "../units/errors/refusal.ts";
import { suspension } from "../units/errors/suspension-refusal.ts";
import { admit, KEY_CHANGED } from "./admission.ts";
import type { GenerationAnswer, GenerationCall, WholeAnswer } from "./answer.ts";
import {
  type ArrivedRequest,
  arrived,
  errorAnswer,
  type ReportedState,
  requestTrace,
} from "./arrived-request.ts";
import { ContextWatch, checkContext } from "./context-check.ts";
import type { ReadRequest } from "./counting/counting.ts";
import type { GenerationDeps } from "./deps.ts";
import { joinNamedRun, type NamedRun, namedRun, withoutRun } from "./named-run.ts";
import { PromptCount } from "./prompt-count.ts";
import { crowded, noOverride, notAKey, unpaidRefusal } from "./refusals.ts";
import { requestTags } from "./request-tags.ts";
import { sentRequest } from "./sent-request.ts";
import { type PlannedRequest, serve } from "./serving.ts";
import { rateRefusal } from "./shortfall.ts";
import { readUnpaid } from "./unpaid-request.ts";
import { pricedRetentions } from "./unpriced-retention.ts";

/**
 * A generation request from the bearer token to the last byte. Every decision until it holds money is made here, in
 * reading order; ./serving takes it from there. The rooms that both call hold the arithmetic and the I/O.
 */
export function generator(
  deps: GenerationDeps,
): (surface: SurfaceName, call: GenerationCall) => Promise<GenerationAnswer> {
  return (surface, call) => new RequestFlow(deps, arrived(SURFACES[surface], call, deps)).answer();
}

/** One request, until it is refused or holds what it may cost. Its members are what a refusal says of it. */
class RequestFlow implements ReportedState {
  private holder: Holder | null = null;
  private request: GenerationRequest | null = null;
  allowances = NO_ALLOWANCES;
  payment: InlinePayment | null = null;

  constructor(
    private readonly deps: GenerationDeps,
    private readonly arrival: ArrivedRequest,
  ) {}

  /** Never rejects. */
  // biome-ignore lint/complexity/noExcessiveLinesPerFunction: every check of a request, in order, in one block.
  async answer(): Promise<GenerationAnswer> {
    const { deps, arrival } = this;
    const { call, surface, settings, id: receipt } = arrival;
    let keyChanges = 0;
    /** What a thread read of the body of a sender without credit. */
    let inThread: ReadRequest | null = null;
    let prompt: PromptCount | null = null;
    try {
      // All checks are made again after the key changed while the request waited, and after it paid for credit.
      for (let isFirst = true; ; isFirst = false) {
        const found = deps.keyring.identify(call.secret, deps.clock.now());
        const holder = found instanceof Promise ? await found : found;
        if (holder === null) return this.refusal(notAKey(call.secret, settings.dashboardUrl));
        if (holder.balance.suspended !== null) {
          return this.refusal(suspension(holder.balance.suspended, settings.contact));
        }
        this.holder = holder;
        const { key, budgets } = holder;
        const priceList = priceListOf(holder);
        const catalog = catalogAt(deps.catalog(), priceList);

        // Before the body is parsed, so that a key at a hundred times its rate does not cost a hundred times as
        // much.
        const tooOften = deps.ledger.overRate(key);
        if (tooOften !== null) return this.refusal(rateRefusal(tooOften, settings.dashboardUrl));
        const unpaid = isFirst ? unpaidRefusal(holder.balance.id, call, deps.unpaidRequests) : null;
        if (unpaid !== null) return this.refusal(unpaid);

        const work = { surface: surface.name, body: call.body, counting: false };
        if (call.isUnpaid) inThread ??= await readUnpaid(work, call, deps.counting);
        const read = inThread === null ? surface.readRequest(call.body) : inThread.read;
        if (refused(read)) return this.refusal(read, inThread?.subject ?? subjectOf(call.body));
        const meant = idMeantBy(read.model, catalog, deps.suggest);
        if (refused(meant)) return this.refusal(meant, read);
        const request = meant === read.model ? read : { ...read, model: meant };

        const isFree = asksOpenTier(request.model, catalog);
        const allowances = isFree ? deps.allowances(holder.balance, call.blocks()) : NO_ALLOWANCES;
        this.request = request;
        this.allowances = allowances;
        // Loaded before anything is refused, so that every answer can say what remains.
        if (isFree) await deps.ledger.counters.of(key, [], allowances, arrival.at);
        const opening = inThread?.opening;
        const planned = this.plan(request, holder, catalog, opening);
        if (refused(planned)) return this.refusal(planned);
        const pairing = inThread === null ? deps.pairing : null;
        const plan = pricedRetentions(planned.plan, request, pairing, settings);
        if (refused(plan)) return this.refusal(plan);
        // After a body was read in a thread, only its short members are here.
        const sent =
          pairing === null
            ? { priced: request, prepared: null }
            : sentRequest(request, plan, settings.defaultMaxOutputTokens, pairing);
        const { priced } = sent;
        const { firstTokenMs } = settings.attempts;
        prompt ??= new PromptCount(priced, holder.balance.id, deps.counting, call, firstTokenMs);
        const context = checkContext(priced, plan, () => {
          const known =
            planned.conversation ??
            conversationOf(request, call.headers, holder.balance.id, opening).conversation;
          return deps.promptSizes.of(known, priced);
        });
        const tooLong = context?.doubt === "large" ? await context.refusal(prompt) : null;
        if (tooLong !== null) return this.refusal(tooLong);
        // A host that may well serve it need not wait for the count.
        const watch = context?.doubt === "small" ? new ContextWatch(context, prompt, call.signal) : null;

        // Before anything is held: shedding must cost less than serving.
        if (plan.candidates.every(({ route }) => deps.slots.full(route.host, key, route.free)))
          return this.refusal(crowded(request, plan, deps.chance));
        if (!deps.journal.healthy) return this.refusal(bookkeepingDown());
        const tags = requestTags(call.headers, request, holder, deps.userPseudonym);
        if (refused(tags)) return this.refusal(tags);
        const untagged = untaggedBudget(budgets, tags);
        if (untagged !== null) return this.refusal(missingTag(untagged));
        const named = namedRun(call.headers, request);
        if (refused(named)) return this.refusal(named);
        const run = named === null ? null : await joinNamedRun(named, key, call, deps);
        if (refused(run)) return this.refusal(run);
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
          keyChanges += 1;
          if (keyChanges === MAX_KEY_CHANGES) return this.refusal(contended());
          continue;
        }
        if (refused(admitted)) {
          const payment = await this.pay(admitted, holder);
          if (refused(payment)) return this.refusal(payment);
          this.payment = payment;
          continue;
        }
        const isWhole = inThread === null && named?.isMember !== true;
        const held = {
          arrival,
          holder,
          catalog,
          request: isWhole ? request : this.parsed(request, named),
          sent,
          planned,
          admitted,
          prompt,
          context,
          watch,
          allowances,
          payment: this.payment,
        };
        return serve(held, deps);
      }
    } catch (error) {
      // The store is only read before anything is held.
      if (error instanceof StoreContended) return this.refusal(contended());
      deps.onFault(error, receipt);
      if (error instanceof StoreUnreachable) return this.refusal(bookkeepingDown());
      return errorAnswer(internalError(), arrival, this, deps);
    } finally {
      this.payment?.end();
    }
  }

  /**
   * The payment with which the request is checked again, in turn with others of the balance, where credit is all that it
   * lacks; otherwise the refusal, which says what to pay where that would help.
   */
  private async pay(refusal: Refusal, holder: Holder): Promise<InlinePayment | Refusal> {
    const { payments } = this.deps;
    const { call } = this.arrival;
    const { payment } = this;
    const { lacking } = refusal.details;
    if (payments === null || lacking === undefined) return refusal;
    if (payment !== null) return (await payment.pay(refusal, lacking)) ?? payment;
    const header = call.headers.get("payment-signature");
    if (header === null) return payments.offered(refusal, holder.balance, lacking);
    return payments.begin(header, refusal, { ...holder, blocks: () => call.blocks() }, lacking);
  }

  /** A request with all of its members, where it was read in a thread, but without the run that it names. */
  private parsed(request: GenerationRequest, named: NamedRun | null): GenerationRequest {
    const read = this.arrival.surface.readRequest(named?.isMember ? withoutRun(request) : request.body);
    assert(!refused(read), "a request was read and refused afterwards");
    return { ...read, model: request.model };
  }

  private plan(
    request: GenerationRequest,
    { key, balance }: Holder,
    catalog: Catalog,
    opening: Opening | undefined,
  ): PlannedRequest | Refusal {
    const { deps } = this;
    const { call, settings } = this.arrival;
    const isFree = this.allowances.length > 0;
    if (isFree) {
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
    const mayFallBackNatively = overrides.mayFallBackNatively && json.fallback_credit_token == null;
    // With a single host of one key there is no choice to remember, and free requests are not to fill the memory.
    const routes = catalog.models.get(model)?.routes;
    const isOneHost = routes?.length === 1 && routes[0]!.host.keys === undefined;
    let conversation: ConversationId | null = null;
    let known: StickyRoute | null = null;
    let sticky: StickyRoute | null = null;
    if (!isFree && !isOneHost) {
      const named = conversationOf(request, call.headers, balance.id, opening);
      conversation = named.conversation;
      known = deps.affinity.stickyRoute(conversation);
      if (named.turned) sticky = known;
    }
    const plan = makePlan(
      {
        model,
        surface,
        stream: request.stream,
        overrides: sortedBy(
          sort,
          overrides === NO_OVERRIDES ? overrides : { ...overrides, moreModels, mayFallBackNatively },
        ),
        allowedModels: key.allowedModels,
        policy: key.policy ?? null,
        promptEstimate,
        // Needed only when the client asks for hosts that support all of them.
        members: overrides.provider.requireParameters ? Object.keys(json) : [],
        maxHosts: settings.attempts.maxHosts,
        order: settings.order,
        sticky,
        conversation,
        by: balance.id,
        chance: deps.chance,
        catalog,
        routeState: deps.health,
      },
      deps.suggest,
    );
    if (refused(plan)) return plan;
    const lacksFallbacks =
      request.overrides.fallbacks === "default" &&
      !plan.candidates.some(({ isFallback }) => isFallback === true);
    return { plan, conversation, isElsewhere: known !== null, lacksFallbacks };
  }

  /** Answers a request that opened no hold. */
  private refusal(refusal: Refusal, subject = subjectIn(this.request)): WholeAnswer {
    const { deps, arrival, holder, request } = this;
    const receipt = refusedReceipt({
      id: arrival.id,
      createdAt: arrival.at,
      surface: arrival.surface.name,
      modelRequested: subject?.model ?? "",
      stream: subject?.stream ?? false,
      totalMs: deps.clock.elapsedMs() - arrival.startedMs,
      errorCode: refusal.code,
    });
    const trace = requestTrace(arrival, request);
    deps.reporting.finished({ ...receipt, keyId: holder?.key.id ?? null, trace });
    if (holder !== null) {
      const { id: keyId, balanceId } = holder.key;
      deps.receipts.keepRefused({ ...receipt, keyId, balanceId });
    }
    return errorAnswer(refusal, arrival, this, deps);
  }
}

const NO_ALLOWANCES: readonly Allowance[] = [];

const subjectIn = (request: GenerationRequest | null): Subject | null =>
  request === null ? null : { model: request.requestedModel, stream: request.stream };

/** Nobody changes a key as often as that while a request waits. */
const MAX_KEY_CHANGES = 8;
