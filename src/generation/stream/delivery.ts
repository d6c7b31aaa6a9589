import type { Host } from "../../catalog/catalog.ts";
import type { Opened } from "../../hosts/attempt-outcome.ts";
import { endedTries } from "../../hosts/native-fallback-answer.ts";
import { redact } from "../../hosts/redact.ts";
import type { Billed, GenerationRequest } from "../../surfaces/surface.ts";
import { SURFACES } from "../../surfaces/surfaces.ts";
import { bookkeepingDown } from "../../units/errors/bookkeeping.ts";
import { errorObject, internalError, type Refusal } from "../../units/errors/refusal.ts";
import type { Sink, StreamedAnswer } from "../answer.ts";
import { notePrompt } from "../billed-tokens.ts";
import type { GenerationDeps, GenerationSettings } from "../deps.ts";
import { aheadOf } from "../expected-output.ts";
import type { Hold } from "../hold.ts";
import {
  billedBy,
  costOfEnd,
  type EndedRequest,
  type HoldSettlement,
  type RequestEnd,
} from "../hold-settlement.ts";
import { type BilledAnswer, billedAnswer, noteCosts } from "../native-fallback-bill.ts";
import type { ConversationSize } from "../prompt-sizes.ts";
import type { Recount } from "../recount.ts";
import { upstreamError } from "../refusals.ts";
import { type StreamStop, streamStop } from "./out-of-credit.ts";
import { type RelayContext, type RelayEnd, relay } from "./relay.ts";
import { RunningCount } from "./running-count.ts";
import { RunningStream } from "./running-stream.ts";

/**
 * A stream that is ready for its client: the first token is in hand and the hold is durable. From here on no
 * other host can be asked; whatever happens, the stream ends with a charge for what was delivered.
 */
export class StreamDelivery implements StreamedAnswer {
  readonly kind = "stream";
  readonly status = 200;
  cameToNothing = false;
  private started = false;

  constructor(
    readonly headers: Readonly<Record<string, string>>,
    private readonly context: DeliveryContext,
  ) {
    // A client may leave before the response is pulled. Then nobody runs the stream, but its hold must still
    // be settled.
    const { signal } = context;
    if (signal.aborted) this.handleEvent();
    else signal.addEventListener("abort", this);
  }

  run(sink: Sink): Promise<void> {
    if (this.started) {
      // Pulled after the client had left.
      sink.close();
      return Promise.resolve();
    }
    this.started = true;
    this.context.signal.removeEventListener("abort", this);
    return deliver(this.context, sink, this);
  }

  /** @internal The client leaves. */
  handleEvent(): void {
    void this.run(DEAD_SINK);
  }
}

/**
 * What a delivery needs. It may take minutes, so nothing here keeps the prompt alive, which may be megabytes.
 */
interface DeliveryContext {
  readonly deps: GenerationDeps;
  readonly settings: GenerationSettings;
  readonly request: GenerationRequest;
  /** Null where the prompt takes little of its model's context. */
  readonly promptSize: ConversationSize | null;
  readonly opened: Opened;
  readonly settlement: HoldSettlement;
  readonly counts: Recount;
  readonly hold: Hold;
  /** Time from the request's arrival until the stream was opened. */
  readonly firstTokenMs: number;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

const DEAD_SINK: Sink = { write: () => false, close() {} };

/** Never rejects. */
async function deliver(context: DeliveryContext, sink: Sink, delivery: StreamDelivery): Promise<void> {
  const { deps, opened, settlement, hold } = context;
  try {
    noteServing(context);
    const firstTokens = opened.judge.countedTokens;
    const relayed = await relay(relayContext(context, sink), opened.takeFirst());
    const end = ofCustomers(relayed, opened.candidate.route.host);
    const stop = end.kind === "out_of_credit" ? stopOf(context) : null;
    noteStreamEnd(end, firstTokens, context);
    const counting = billedOf(end, context);
    // Nothing of the settlement has started, and until it has, the hold stands.
    const billed = counting instanceof Promise ? await counting : counting;
    const hostCost = noteEnded(billed, context);
    const requestEnd = endOf(end, billed, stop, context);
    const covering = requestEnd.state === "written_off" ? null : hold.cover(costOfEnd(requestEnd));
    if (covering !== null) await covering;
    const ended = settlement.settle(requestEnd, hostCost);
    const isDurable = ended.durable === true || (await ended.durable);
    settlement.report(ended, isDurable);
    delivery.cameToNothing = end.kind !== "complete" && ended.settled.charged === 0;
    const last = lastFrames(end, stop, context, ended, isDurable);
    if (last !== null) await sink.write(last);
  } catch (error) {
    deps.onFault(error, settlement.reservation.request.receipt);
    opened.cancel();
    settlement.abandon();
    await sink.write(failure(internalError(), context, null));
  } finally {
    deps.delivered.remove(settlement.reservation);
    context.counts.drop();
    sink.close();
  }
}

/** From here on a crash is billed, at the price of who serves and for what was delivered. */
function noteServing({ deps, opened, settlement, counts, firstTokenMs }: DeliveryContext): void {
  const { judge, candidate } = opened;
  deps.ledger.serves(settlement.reservation, {
    model: candidate.model.id,
    host: candidate.route.host.id,
    price: candidate.price,
    attempts: settlement.tries,
    firstTokenMs,
  });
  deps.delivered.add(settlement.reservation, judge.text, counts.family);
}

function relayContext(context: DeliveryContext, sink: Sink): RelayContext {
  const { deps, settings, request, opened, settlement, hold, signal } = context;
  return {
    source: opened.source,
    judge: opened.judge,
    sink,
    signal,
    onDisconnect: opened.candidate.route.host.onDisconnect,
    limits: {
      chunkGapMs: settings.chunkGapMs,
      deadlineMs: settlement.startedMs + settings.totalMs,
      keepaliveMs: settings.keepaliveMs ?? Number.POSITIVE_INFINITY,
    },
    keepalive: SURFACES[request.surface].keepalive,
    clock: deps.clock,
    deadlines: deps.deadlines,
    meter: hold.begin(runningOf(context)),
    host: opened,
    open: deps.openStreams,
  };
}

/** What health learns: how the stream ended, and how fast the host wrote, which neither one piece nor a slow client shows. */
function noteStreamEnd(end: RelayEnd, firstTokens: number, context: DeliveryContext): void {
  const { deps, opened, settlement, firstTokenMs } = context;
  const isTimed = !opened.isWhole && !("isHeldUp" in end);
  deps.health.streamEnded(opened.candidate.route, {
    kind: end.kind,
    tokens: opened.judge.countedTokens - firstTokens,
    ms: isTimed ? settlement.elapsedMs() - firstTokenMs : 0,
    by: settlement.reservation.request.key.balanceId,
  });
}

function runningOf({ deps, request, opened, settlement, counts }: DeliveryContext): RunningStream {
  const { judge, candidate, chain } = opened;
  const pace = deps.expected.paceOf(candidate.route, deps.health);
  const ahead = aheadOf(pace, deps.expected.growth);
  const count = new RunningCount(judge.text, counts);
  const { price } = candidate;
  return new RunningStream(request, judge, price, pace, settlement.startedMs, ahead, count, chain !== null);
}

function billedOf(
  end: RelayEnd,
  { opened, request, counts }: DeliveryContext,
): BilledAnswer | Promise<BilledAnswer> {
  const { judge, candidate, chain } = opened;
  const { usage, text, writers, isDeclined } = judge;
  const isLeft = end.kind === "client_left" && end.isReadWhole !== true;
  const isFree = isDeclined && candidate.route.host.refusals === "free";
  return billedAnswer({ usage, text, isLeft, isFree }, { candidate, chain, writers }, request, counts);
}

/** What is learnt of an answer that has ended, before its bill is settled. Returns its host's cost, where that is known. */
function noteEnded(billed: BilledAnswer, { deps, request, promptSize, opened, settlement }: DeliveryContext) {
  const { judge, chain } = opened;
  if (promptSize !== null && billed.charges.length === 0)
    notePrompt(promptSize, judge.usage, { request, model: billed.candidate.model });
  if (chain !== null) settlement.tries = endedTries(settlement.tries, chain, judge);
  return noteCosts(deps.hostCosts, billed, judge.usage);
}

function stopOf({ deps, settings, settlement, hold }: DeliveryContext): StreamStop {
  const block = deps.keyring.blockOf(settlement.reservation.request.key, deps.clock.now());
  return streamStop(hold.shortfall, block, settings);
}

/** The customer gets the reason why the host failed. */
const ofCustomers = (end: RelayEnd, host: Host): RelayEnd =>
  end.kind === "host_failed" ? { ...end, message: redact(end.message, host) } : end;

function endOf(
  end: RelayEnd,
  { tokens, from, candidate, charges }: BilledAnswer,
  stop: StreamStop | null,
  { settings, firstTokenMs }: DeliveryContext,
): RequestEnd {
  const common = { candidate, charges, firstTokenMs, tokens, from };
  switch (end.kind) {
    case "complete":
      return { ...common, state: "settled" };
    case "host_failed":
    case "cut": {
      const isClients = end.kind === "cut" && end.by === "client";
      const isWrittenOff = !isClients && tokens.output < settings.writeOffTokens;
      return { ...common, state: isWrittenOff ? "written_off" : "settled", errorCode: "upstream_error" };
    }
    case "client_left":
      return { ...common, state: "cancelled" };
    case "out_of_credit":
      return { ...common, state: "settled", errorCode: stop!.code };
  }
}

/** What tells the bill, and the end mark or the error that takes its place; null when nobody is there. */
function lastFrames(
  end: RelayEnd,
  stop: StreamStop | null,
  context: DeliveryContext,
  ended: EndedRequest,
  isDurable: boolean,
): Uint8Array | null {
  if (end.kind === "client_left") return null;
  if (!isDurable) return failure(bookkeepingDown(), context, null);
  const bill = billedBy(ended, context.opened.chain !== null);
  if (end.kind === "complete") return context.opened.judge.last(bill);
  const { settled } = ended;
  const why =
    end.kind === "out_of_credit" ? stop!.refusal(settled.charged) : upstreamError(end.message, settled);
  return failure(why, context, bill);
}

const failure = (refusal: Refusal, { opened, settings }: DeliveryContext, bill: Billed | null): Uint8Array =>
  opened.judge.fail(errorObject(refusal, settings.baseUrl), bill);
