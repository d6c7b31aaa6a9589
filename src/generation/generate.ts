import type { Catalog, SurfaceName } from "../catalog/catalog.ts";
import {
  type ErrorObject,
  errorObject,
  type Refusal,
  refusalHeaders,
  refuse,
  refused,
  sentence,
} from "../errors/refusal.ts";
import { suspension } from "../errors/suspension.ts";
import { type AttemptLimits, attempt, type HealthDesk, type Outcome, type Try } from "../hosts/attempt.ts";
import type { Destinations } from "../hosts/destination.ts";
import type { Transport } from "../hosts/transport.ts";
import type { Opened, Rejected } from "../hosts/try.ts";
import type { Balance, Budget, Key } from "../keys/key.ts";
import { costOf, NO_PROMPT, NO_TOKENS, type Tokens, worstCase } from "../ledger/charge.ts";
import type { Allowance, Ending, Ledger, Reservation, Settled, Settlement } from "../ledger/ledger.ts";
import type { HostSlots } from "../limits/host-slots.ts";
import type { Affinity, Home } from "../routing/affinity.ts";
import { type Conversation, conversationOf } from "../routing/conversation.ts";
import type { Lesson } from "../routing/health.ts";
import { namesOverrides, readOverrides } from "../routing/overrides.ts";
import {
  alternativesSentence,
  asksOpenTier,
  makePlan,
  type Plan,
  soonestMs,
  workingAlternatives,
} from "../routing/plan.ts";
import type { StreamEnd } from "../routing/speed.ts";
import type { HostOrder, Roads, Stop, Wish } from "../routing/stop.ts";
import { type RelayEnd, relay } from "../stream/relay.ts";
import { withoutPrompt } from "../surfaces/request.ts";
import type { GenerationRequest, Pairing, Surface, Usage } from "../surfaces/surface.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import { type BalanceId, newReceiptId, type ReceiptId } from "../units/id.ts";
import type { RandomBytes } from "../units/random.ts";
import { newSpanId, type Trace } from "../units/trace-context.ts";
import { formatUsd, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import {
  type Admitted,
  admit,
  bookkeepingDown,
  checkContext,
  type Desk,
  longestAnswer,
  rateRefusal,
} from "./admission.ts";
import type { Answer, Call, Sink, StreamedAnswer, WholeAnswer } from "./answer.ts";
import { clientHeaders } from "./client-headers.ts";
import { deliveredTokens, Meter, usedTokens } from "./metering.ts";
import { type CountingDesk, PromptCount } from "./prompt-count.ts";
import { type Finished, formatReceipt, type Receipt, type RequestTrace } from "./receipt.ts";

/**
 * The way of a generation request, from the bearer token to the last byte. Every decision about one is taken here, in the
 * order in which it reads; the rooms it calls hold the arithmetic and the I/O.
 */
export function generator(house: House): (surface: SurfaceName, call: Call) => Promise<Answer> {
  return (surface, call) => new Run(house, house.surfaces[surface], call).answer();
}

/** Everything a request passes through. `catalog` and `settings` answer anew after a reload. */
export interface House {
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly ledger: Ledger;
  readonly journal: Durability;
  readonly transport: Transport;
  readonly destinations: Destinations;
  readonly surfaces: Readonly<Record<SurfaceName, Surface>>;
  pairing(client: SurfaceName, host: SurfaceName): Pairing;
  readonly roads: Roads;
  readonly health: HealthDesk;
  readonly affinity: Affinity;
  readonly slots: HostSlots;
  observe(stop: Stop, outcome: Try["outcome"], lesson: Lesson): void;
  /** Told of each relayed stream's end, for health. */
  ended(stop: Stop, end: StreamEnd): void;
  catalog(): Catalog;
  settings(): Settings;
  /** The sentence that suggests the closest published id, and where the catalog is. */
  suggest(id: string): string;
  identify(secret: string, at: EpochMs): Holder | null | Promise<Holder | null>;
  allowances(holder: Holder, call: Call): readonly Allowance[];
  /** The host of a free route reported a charge. */
  charged(stop: Stop): void;
  readonly counting: CountingDesk;
  /** The request's place in a trace; null when nobody traces. */
  openTrace(headers: Headers): Trace | null;
  /** Told of each request's end, once. */
  finished(done: Finished): void;
  /** Keeps the receipt of a request that opened no hold, in memory. */
  keepRefused(receipt: Receipt & { readonly balanceId: BalanceId }): void;
  onFault(error: unknown, receipt: ReceiptId): void;
}

export interface Settings {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  readonly attempts: AttemptLimits;
  readonly order: HostOrder;
  readonly chunkGapMs: number;
  readonly totalMs: number;
  readonly writeOffTokens: number;
  readonly defaultMaxOutputTokens: number;
  readonly openTierRpm: number | null;
}

/** Who a live key belongs to. */
export interface Holder {
  readonly key: Key;
  readonly balance: Balance;
  readonly budgets: readonly Budget[];
}

/** See store/journal. */
export interface Durability {
  durable(sequence: number): true | Promise<boolean>;
  readonly healthy: boolean;
}

/** One request. Its fields fill in the order of the rooms. */
class Run {
  private readonly id: ReceiptId;
  private readonly at: EpochMs;
  private readonly startedMs: number;
  private readonly settings: Settings;
  private readonly catalog: Catalog;
  private holder: Holder | null = null;
  /** Of the Open Tier, that it draws on; empty on the paid tier. */
  private allowances: readonly Allowance[] = [];
  private request: GenerationRequest | null = null;
  private admitted: Admitted | null = null;
  private tries: readonly Try[] = [];
  private opened: Opened | null = null;
  /** When the stream was opened. */
  private firstTokenMs = 0;
  private conversation: Conversation | null = null;
  private readonly trace: Trace | null;

  constructor(
    private readonly house: House,
    private readonly surface: Surface,
    private call: Call,
  ) {
    this.at = house.clock.now();
    this.id = newReceiptId(this.at, house.random);
    this.startedMs = house.clock.elapsedMs();
    this.trace = house.openTrace(call.headers);
    this.settings = house.settings();
    this.catalog = house.catalog();
  }

  /** Never rejects. */
  async answer(): Promise<Answer> {
    const { house, call, surface } = this;
    try {
      const holder = await this.identify();
      if (refused(holder)) return this.refusal(holder);
      this.holder = holder;

      // Before the body is parsed: a key that sends a hundred times what it may must not cost a hundred times as much.
      const tooOften = house.ledger.overRate(holder.key);
      if (tooOften !== null) return this.refusal(rateRefusal(tooOften, this.settings.dashboardUrl));

      const request = surface.readRequest(call.body);
      if (refused(request)) return this.refusal(request);
      this.request = request;

      if (asksOpenTier(request.model, this.catalog)) {
        this.allowances = house.allowances(holder, call);
        // Loaded before anything is refused, so that every answer can say what remains.
        await house.ledger.lane(holder.key, [], this.allowances, this.at);
      }
      const plan = this.plan(request, holder);
      if (refused(plan)) return this.refusal(plan);
      const prompt = new PromptCount(request, holder.balance.id, house.counting);
      const fits = checkContext(request, prompt, plan);
      const tooLong = fits instanceof Promise ? await fits : fits;
      if (tooLong !== null) return this.refusal(tooLong);

      // Before anything is held: shedding must cost less than serving.
      if (this.areAllFull(plan)) return this.refusal(this.crowded(plan));
      if (!house.journal.healthy) return this.refusal(bookkeepingDown());
      const { id: receipt, allowances } = this;
      const { key, budgets } = holder;
      const ask = { receipt, key, budgets, request, prompt, plan, allowances };
      const admitting = admit(ask, this.desk());
      const admitted = admitting instanceof Promise ? await admitting : admitting;
      if (refused(admitted)) return this.refusal(admitted);
      this.admitted = admitted;

      const outcome = await this.attempt(request, plan, admitted);
      this.tries = outcome.tries;
      if (this.conversation !== null && (outcome.kind === "opened" || outcome.kind === "answered"))
        house.affinity.served(this.conversation, outcome.stop);
      switch (outcome.kind) {
        case "opened":
          this.letGo(request);
          return await this.open(outcome, admitted);
        case "answered":
          return await this.whole(outcome, request, admitted);
        default:
          return await this.failed(
            this.failure(outcome, plan),
            outcome.kind === "abandoned" ? "cancelled" : "failed",
          );
      }
    } catch (error) {
      house.onFault(error, this.id);
      return this.crashed();
    }
  }

  /** An unhandled failure: what was held is given back, and nothing of the cause is told. */
  private crashed(): WholeAnswer {
    this.opened?.cancel();
    if (this.admitted?.reservation.isOpen === true) {
      const { receipt } = this.settle({
        state: "failed",
        cost: ZERO_USD,
        tokens: NO_TOKENS,
        errorCode: "internal_error",
      });
      this.house.finished(receipt);
    }
    return this.errorAnswer(internalError());
  }

  private identify(): Holder | Refusal | Promise<Holder | Refusal> {
    const { house, call, at, settings } = this;
    if (call.secret === null) return missingKey();
    const found = house.identify(call.secret, at);
    return found instanceof Promise ? identified(found, settings) : admissible(found, settings);
  }

  private areAllFull({ stops }: Plan): boolean {
    for (const { route } of stops) if (!this.house.slots.full(route.host)) return false;
    return true;
  }

  private plan(request: GenerationRequest, { key, balance }: Holder): Plan | Refusal {
    const { house, catalog, call } = this;
    if (this.allowances.length > 0) {
      const override = namesOverrides(request.overrides);
      if (override !== null) {
        const message = `\`${override}\` is a routing override, which the Open Tier refuses. Remove it, or name a paid model.`;
        return refuse("invalid_request", message, { param: override });
      }
    }
    const overrides = readOverrides(request.overrides, request.surface);
    if (refused(overrides)) return overrides;
    const { model, surface, promptEstimate, json } = request;
    const { maxHosts } = this.settings.attempts;
    const { allowedModels } = key;
    // Where there is one host, there is no choice to remember.
    let home: Home | null = null;
    if (catalog.models.get(model)?.routes.length !== 1) {
      const { conversation, turned } = conversationOf(request, call.headers, balance.id);
      this.conversation = conversation;
      if (turned) home = house.affinity.home(conversation);
    }
    // Members are only looked at where the client asks for hosts that obey all of them.
    const members = overrides.provider.requireParameters ? Object.keys(json) : [];
    const wish: Wish = {
      model,
      surface,
      overrides,
      allowedModels,
      promptEstimate,
      members,
      maxHosts,
      order: this.settings.order,
      home,
    };
    return makePlan(wish, catalog, house.roads, house.suggest);
  }

  private attempt(request: GenerationRequest, plan: Plan, admitted: Admitted): Promise<Outcome> {
    const { house, call, settings, trace } = this;
    const ways = {
      transport: house.transport,
      destinations: house.destinations,
      clock: house.clock,
      limits: settings.attempts,
      surfaces: house.surfaces,
      pairing: house.pairing,
      clientHeaders: clientHeaders(call.headers),
      outputCeiling: this.imposedCeiling(request, plan, admitted),
      defaultMaxOutputTokens: settings.defaultMaxOutputTokens,
      slots: house.slots,
      keyId: this.holder!.key.lineage,
      health: house.health,
      observe: house.observe,
      openSpan: () => (trace === null ? null : { ...trace, spanId: newSpanId(house.random) }),
      onFault: (error: unknown) => house.onFault(error, this.id),
    };
    return attempt(request, plan, ways, call.signal);
  }

  /**
   * An unstreamed answer cannot be stopped midway. Where the client named no ceiling and there is room in plenty, the model's
   * own is held; otherwise the host is told the one that is held already. Only to look whether the answer would be covered is
   * not enough: many requests at once would each find the same room.
   */
  private imposedCeiling(
    request: GenerationRequest,
    plan: Plan,
    { reservation, outputCeiling }: Admitted,
  ): number | null {
    if (request.stream || request.maxOutputTokens !== null || plan.tier === "open") return null;
    const longest = longestAnswer(plan) * request.choices;
    const beyond = worstCase(NO_PROMPT, Math.max(0, longest - outputCeiling), reservation.want.price);
    const { ledger } = this.house;
    if (beyond === 0) return null;
    const plenty = ledger.coversMore(reservation, (beyond * PLENTY) as NanoUsd);
    return plenty && ledger.extend(reservation, beyond) ? null : outputCeiling / request.choices;
  }

  private async whole(
    { reply, stop, omitted }: Extract<Outcome, { kind: "answered" }>,
    request: GenerationRequest,
    { reservation }: Admitted,
  ): Promise<Answer> {
    this.doubtFree(stop, reply.usage);
    const { tokens, from } = usedTokens(reply.usage, reply.countedTokens, request);
    const cost = costOf(tokens, stop.price);
    const settlement = this.settle({
      state: "settled",
      cost,
      tokens,
      from,
      stop,
      firstTokenMs: this.elapsedMs(),
    });
    const { durable } = settlement;
    if (durable === true || (await durable)) {
      this.house.finished(settlement.receipt);
      return {
        kind: "whole",
        status: 200,
        headers: this.headers("application/json", omitted),
        body: reply.body,
      };
    }
    // The answer is not given, so it must not cost anything either.
    const failed: End = { state: "failed", cost: ZERO_USD, tokens: NO_TOKENS, errorCode: "internal_error" };
    const nothing = { charged: ZERO_USD, writtenOff: ZERO_USD, lost: ZERO_USD, held: settlement.held };
    const receipt = this.receipt(failed, nothing, reservation);
    const isBack = this.house.ledger.takeBack(reservation, settlement, formatReceipt(receipt));
    this.house.finished(isBack ? receipt : unrecorded(settlement.receipt));
    return this.errorAnswer(bookkeepingDown());
  }

  /** A stream may last for minutes, and no host will be sent the prompt any more, which may be megabytes. */
  private letGo(request: GenerationRequest): void {
    this.call = { ...NO_CALL, signal: this.call.signal };
    this.request = withoutPrompt(request);
  }

  private async open(opened: Opened, { reservation }: Admitted): Promise<Answer> {
    this.opened = opened;
    this.firstTokenMs = this.elapsedMs();
    const durable = this.house.journal.durable(reservation.sequence);
    if (!(durable === true || (await durable))) {
      opened.cancel();
      return this.failed(bookkeepingDown(), "failed");
    }
    const headers = {
      ...this.headers("text/event-stream", opened.omitted),
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    };
    return new Delivery(headers, this, this.call.signal);
  }

  /** @internal Once, by the Delivery. */
  async stream(sink: Sink): Promise<void> {
    const { house, settings, call, firstTokenMs } = this;
    const opened = this.opened!;
    const request = this.request!;
    const { reservation, outputCeiling } = this.admitted!;
    const { judge, stop } = opened;
    try {
      const line = {
        source: opened.source,
        judge,
        sink,
        signal: call.signal,
        onDisconnect: stop.route.host.onDisconnect,
        limits: { chunkGapMs: settings.chunkGapMs, deadlineMs: this.startedMs + settings.totalMs },
        clock: house.clock,
        meter: new Meter(house.ledger, reservation, request, stop.price, outputCeiling),
        host: opened,
      };
      const end = await relay(line, opened.takeFirst());
      house.ended(stop, {
        kind: end.kind,
        tokens: judge.countedTokens,
        ms: this.elapsedMs() - firstTokenMs,
      });
      this.doubtFree(stop, judge.usage);
      const settled = this.settle(this.streamEnd(end, opened, request, firstTokenMs));
      const durable = settled.durable === true || (await settled.durable);
      this.house.finished(durable ? settled.receipt : unrecorded(settled.receipt));
      const last = this.lastFrames(end, opened, settled, durable);
      if (last !== null) await sink.write(last);
    } catch (error) {
      house.onFault(error, this.id);
      this.crashed();
      await sink.write(judge.fail(this.errorObject(internalError())));
    } finally {
      sink.close();
    }
  }

  private doubtFree(stop: Stop, usage: Usage | null): void {
    if (stop.route.free && usage?.costUsd !== undefined && usage.costUsd > 0) this.house.charged(stop);
  }

  private streamEnd(
    end: RelayEnd,
    { judge, stop }: Opened,
    request: GenerationRequest,
    firstTokenMs: number,
  ): End {
    const common = { stop, firstTokenMs };
    switch (end.kind) {
      case "complete": {
        const { tokens, from } = usedTokens(judge.usage, judge.countedTokens, request);
        return { ...common, state: "settled", cost: costOf(tokens, stop.price), tokens, from };
      }
      case "host_failed": {
        const tokens = deliveredTokens(judge.usage, judge.countedTokens, request);
        const writeOff = tokens.output < this.settings.writeOffTokens;
        const state = writeOff ? "written_off" : "settled";
        return {
          ...common,
          state,
          writeOff,
          cost: costOf(tokens, stop.price),
          tokens,
          errorCode: "upstream_error",
        };
      }
      case "client_left": {
        const tokens = deliveredTokens(judge.usage, end.delivered, request);
        return { ...common, state: "cancelled", cost: costOf(tokens, stop.price), tokens };
      }
      case "out_of_credit": {
        const tokens = deliveredTokens(judge.usage, judge.countedTokens, request);
        return {
          ...common,
          state: "settled",
          cost: costOf(tokens, stop.price),
          tokens,
          errorCode: "insufficient_credit",
        };
      }
    }
  }

  private lastFrames(
    end: RelayEnd,
    { judge }: Opened,
    settled: Settled,
    durable: boolean,
  ): Uint8Array | null {
    if (end.kind === "client_left") return null;
    if (!durable) return judge.fail(this.errorObject(bookkeepingDown()));
    if (end.kind === "complete") return judge.terminal;
    const refusal =
      end.kind === "host_failed" ? upstreamError(end.message, settled) : stoppedForCredit(settled);
    return judge.fail(this.errorObject(refusal));
  }

  private failure(outcome: Exclude<Outcome, { kind: "opened" | "answered" }>, plan: Plan): Refusal {
    switch (outcome.kind) {
      case "unsayable":
        return outcome.refusal;
      case "rejected":
        return rejection(outcome, this.request!);
      case "abandoned":
        return refuse("invalid_request", "The client left before the answer began.");
      case "crowded":
        return this.crowded(plan);
      case "exhausted":
        return this.exhaustion(outcome.timedOut, outcome.waitedMs, plan);
    }
  }

  /** Nothing was tried or charged: the gateway sheds what its hosts cannot take, and streams in flight go on. */
  private crowded(plan: Plan): Refusal {
    const retryAfterS = 1 + Math.floor(this.house.roads.chance() * MOST_RETRY_S);
    const code =
      plan.tier === "open" ? "no_free_route" : plan.auto ? "auto_unresolvable" : "model_unavailable";
    return refuse(
      code,
      `Every host of ${this.request!.model} has as many requests as it takes; 0 were tried, and nothing was charged. Retry in ${retryAfterS} s.`,
      { retryAfterS, shouldRetry: true },
    );
  }

  private exhaustion(timedOut: boolean, waitedMs: number, plan: Plan): Refusal {
    const { model } = this.request!;
    const count = this.tries.length;
    const tried = `${count} ${count === 1 ? "host was" : "hosts were"} tried`;
    if (timedOut) {
      const seconds = Math.round(waitedMs / 100) / 10;
      return refuse(
        "request_timeout",
        `No host produced a first token for ${model} within ${seconds} s; ${tried}.`,
      );
    }
    if (plan.tier === "open") {
      return refuse(
        "no_free_route",
        `No free route of ${model} answered; ${tried}. The request was not switched to a paid model and nothing was charged; adding credit does not help.`,
      );
    }
    const restMs = soonestMs(plan.stops, this.house.roads);
    const rest = restMs === 0 ? {} : { retryAfterS: Math.ceil(restMs / 1_000) };
    if (plan.auto !== null) {
      const models = [...new Set(this.tries.map((one) => one.model))].join(", ");
      const { skipped } = plan.auto;
      const others = skipped.length === 0 ? "" : ` Skipped were ${skipped.join(", ")}.`;
      return refuse(
        "auto_unresolvable",
        `Every candidate of ${model} failed (${models}); ${tried}.${others}`,
        rest,
      );
    }
    const { surface } = this.request!;
    const wish = { surface, allowedModels: this.holder!.key.allowedModels };
    const others = workingAlternatives(model, this.catalog, this.house.roads, wish);
    return refuse(
      "model_unavailable",
      `All hosts of ${model} failed: ${tried}. ${alternativesSentence(others)}`,
      rest,
    );
  }

  /** Gives the hold back and answers with the error, once both are durable. */
  private async failed(refusal: Refusal, state: "failed" | "cancelled"): Promise<WholeAnswer> {
    // A client that leaves made no mistake, and no error is told to anybody.
    const code = state === "cancelled" ? {} : { errorCode: refusal.code };
    const { durable, receipt } = this.settle({ state, cost: ZERO_USD, tokens: NO_TOKENS, ...code });
    const isDurable = durable === true || (await durable);
    this.house.finished(isDurable ? receipt : unrecorded(receipt));
    return this.errorAnswer(isDurable ? refusal : bookkeepingDown());
  }

  /** Who calls it says what became of the request, once it is known whether its end could be recorded. */
  private settle(end: End): Settlement & { durable: true | Promise<boolean>; receipt: Ended } {
    const { house, admitted } = this;
    const { reservation } = admitted!;
    const served = end.tokens.output > 0 || end.state === "settled";
    const ending: Ending = {
      state: end.state,
      cost: end.cost,
      writeOff: end.writeOff ?? false,
      rateTokens: end.tokens.input + end.tokens.cacheRead + end.tokens.cacheWrite + end.tokens.output,
      allowanceUsed: served,
    };
    let receipt: Ended;
    const settlement = house.ledger.settle(reservation, ending, (settled) => {
      receipt = this.receipt(end, settled, reservation);
      return formatReceipt(receipt);
    });
    return { ...settlement, durable: house.journal.durable(settlement.sequence), receipt: receipt! };
  }

  private receipt(end: End, settled: Settled, { want }: Reservation): Ended {
    const { request, tries } = this;
    return {
      id: this.id,
      createdAt: want.at,
      state: end.state,
      surface: this.surface.name,
      keyId: want.key.id,
      modelRequested: request!.model,
      model: end.stop?.model.id ?? null,
      host: end.stop?.route.host.id ?? null,
      attempts: tries,
      stream: request!.stream,
      tokens: end.tokens,
      tokensFrom: end.from ?? "counted",
      price: end.stop?.price ?? want.price,
      cost: settled.charged,
      held: settled.held,
      writeOff: settled.writtenOff,
      firstTokenMs: end.firstTokenMs ?? null,
      totalMs: this.elapsedMs(),
      errorCode: end.errorCode ?? null,
      trace: this.requestTrace(),
    };
  }

  private requestTrace(): RequestTrace | null {
    const { trace, startedMs, at: startedAt } = this;
    return trace === null ? null : { ...trace, startedAt, startedMs };
  }

  /** Answers a request that opened no hold. */
  private refusal(refusal: Refusal): WholeAnswer {
    const { request, holder } = this;
    const receipt = {
      id: this.id,
      createdAt: this.at,
      state: "refused" as const,
      surface: this.surface.name,
      // Kept in memory, and a name that is not in the catalog may be as long as a body.
      modelRequested: (request?.model ?? "").slice(0, MAX_KEPT_MODEL),
      model: null,
      host: null,
      attempts: [],
      stream: request?.stream ?? false,
      tokens: NO_TOKENS,
      tokensFrom: "counted" as const,
      price: null,
      cost: ZERO_USD,
      held: ZERO_USD,
      writeOff: ZERO_USD,
      firstTokenMs: null,
      totalMs: this.elapsedMs(),
      errorCode: refusal.code,
    };
    this.house.finished({ ...receipt, keyId: holder?.key.id ?? null, trace: this.requestTrace() });
    if (holder !== null) {
      const { id: keyId, balanceId } = holder.key;
      this.house.keepRefused({ ...receipt, keyId, balanceId });
    }
    return this.errorAnswer(refusal);
  }

  private errorAnswer(refusal: Refusal): WholeAnswer {
    return {
      kind: "whole",
      status: refusal.status,
      headers: { ...this.headers("application/json"), ...refusalHeaders(refusal) },
      body: this.surface.errorBody(this.errorObject(refusal), this.id),
    };
  }

  private errorObject(refusal: Refusal): ErrorObject {
    return errorObject(refusal, this.settings.baseUrl);
  }

  private headers(contentType: string, omitted = NOTHING): Record<string, string> {
    const headers: Record<string, string> = {
      "content-type": contentType,
      "x-gateway-receipt": this.id,
      "x-request-id": this.id,
      "request-id": this.id,
    };
    if (this.allowances.length > 0) {
      const remaining = this.house.ledger.remaining(this.allowances, this.house.clock.now());
      if (remaining !== null) headers["x-gateway-open-tier-remaining"] = String(remaining);
    }
    // What the host was not sent is never dropped in silence.
    if (omitted.length > 0) headers["x-gateway-omitted"] = omitted.join(", ");
    return headers;
  }

  private desk(): Desk {
    const { house, settings } = this;
    const { dashboardUrl, defaultMaxOutputTokens, openTierRpm } = settings;
    const { ledger, clock } = house;
    return { ledger, clock, dashboardUrl, defaultMaxOutputTokens, openTierRpm };
  }

  private elapsedMs(): number {
    return this.house.clock.elapsedMs() - this.startedMs;
  }
}

/** What is written, and told, of a request that held something. */
type Ended = Receipt & Finished;

/** A stream that is ready for its client. */
class Delivery implements StreamedAnswer {
  readonly kind = "stream";
  readonly status = 200;
  private begun = false;

  constructor(
    readonly headers: Readonly<Record<string, string>>,
    private readonly request: Pick<Run, "stream">,
    private readonly signal: AbortSignal,
  ) {
    // A client may leave before the response is pulled: then nobody will run the stream, and its hold must still be settled.
    if (signal.aborted) this.handleEvent();
    else signal.addEventListener("abort", this);
  }

  async run(sink: Sink): Promise<void> {
    // Pulled after the client had left.
    if (this.begun) return sink.close();
    this.begun = true;
    this.signal.removeEventListener("abort", this);
    return this.request.stream(sink);
  }

  /** @internal The client leaves. */
  handleEvent(): void {
    void this.run(DEAD_SINK);
  }
}

/** How a request that held something ended. */
interface End {
  readonly state: Exclude<Receipt["state"], "refused" | "recovered">;
  readonly cost: NanoUsd;
  readonly tokens: Tokens;
  readonly from?: "host" | "counted";
  readonly writeOff?: boolean;
  readonly stop?: Stop;
  readonly firstTokenMs?: number;
  readonly errorCode?: Refusal["code"];
}

const NOTHING: readonly string[] = [];

/** An answer that may become long leaves room for so many, so that those beside it are not refused. */
const PLENTY = 4;

/** Spread, so that those who were shed together do not come back together. */
const MOST_RETRY_S = 5;

const MAX_KEPT_MODEL = 200;

/** What the client saw of it: an error in place of the answer, or of its end. */
const unrecorded = (receipt: Ended): Ended => ({ ...receipt, errorCode: "internal_error" });

const NO_CALL: Omit<Call, "signal"> = {
  secret: null,
  headers: new Headers(),
  body: new Uint8Array(),
  blocks: () => [],
};

const DEAD_SINK: Sink = { write: () => false, close() {} };

const identified = async (found: Promise<Holder | null>, settings: Settings): Promise<Holder | Refusal> =>
  admissible(await found, settings);

function admissible(holder: Holder | null, settings: Settings): Holder | Refusal {
  if (holder === null) return invalidKey(settings);
  const { suspended } = holder.balance;
  return suspended === null ? holder : suspension(suspended);
}

const missingKey = (): Refusal =>
  refuse("missing_api_key", "No API key was sent. Send the header `Authorization: Bearer <API_KEY>`.");

const invalidKey = ({ dashboardUrl }: Settings): Refusal =>
  refuse(
    "invalid_api_key",
    `The API key is unknown, revoked or expired. Keys begin with \`or-live-\` and are created in the dashboard (${dashboardUrl}) or with POST /v1/keys.`,
  );

const internalError = (): Refusal =>
  refuse(
    "internal_error",
    "Something failed inside the gateway. Retry, and report the receipt id in x-gateway-receipt.",
  );

function rejection({ stop, error }: Rejected, request: GenerationRequest): Refusal {
  const { model } = stop;
  const details = error.param === null ? {} : { param: error.param };
  if (error.contextTooLong) {
    return refuse(
      "context_too_long",
      `The prompt of about ${request.promptEstimate} tokens exceeds the context of ${model.id}, ${model.contextLength} tokens. The host says: ${error.message}`,
      details,
    );
  }
  return refuse("invalid_request", `The host of ${model.id} refused the request: ${error.message}`, details);
}

function upstreamError(message: string, { charged, writtenOff }: Settled): Refusal {
  const money =
    writtenOff > 0 || charged === 0
      ? "Nothing was charged."
      : `The tokens delivered cost ${formatUsd(charged)}.`;
  return refuse(
    "upstream_error",
    `The upstream host failed while the answer was streaming: ${sentence(message)} ${money}`,
  );
}

const stoppedForCredit = ({ charged }: Settled): Refusal =>
  refuse(
    "insufficient_credit",
    `The answer was stopped because the balance, or a spend cap of the key, does not cover more of it. The tokens delivered cost ${formatUsd(charged)}. Add credit or raise the cap, and send the request again.`,
  );
