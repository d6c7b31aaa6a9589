import type { GenerationAnswer } from "../../generation/answer.ts";
import { tooMuchUnpaid } from "../../generation/refusals.ts";
import {
  type Continuation,
  type ConversationMemory,
  Lanes,
  MAX_LANES,
} from "../../surfaces/responses/conversation-memory.ts";
import { type CreateEvent, orphanResult, readCreateEvent } from "../../surfaces/responses/create-event.ts";
import {
  errorAnswerEvent,
  errorEvent,
  ProtocolError,
  protocolError,
} from "../../surfaces/responses/error-event.ts";
import { HOUR_MS } from "../../units/clock.ts";
import { type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { type BalanceId, newReceiptId } from "../../units/id.ts";
import { paysFor } from "../body-room.ts";
import type { HttpDeps } from "../deps.ts";
import { SMALL_BYTES } from "../prompt-body.ts";
import { ClientSocket, GOING_AWAY, type ServerSocket, TOO_MUCH } from "./client-socket.ts";
import { type AnswerEnd, EventFrames } from "./event-frames.ts";
import { answerTurn, type TurnSender } from "./turn.ts";

/**
 * A WebSocket of Responses (developers.openai.com, "WebSocket mode"). Turns of a lane follow each other, those of
 * different lanes run next to each other. What they continue is known to the connection alone, and gone with it.
 */
export class ResponsesConnection {
  private socket: ClientSocket | null = null;
  private readonly leaving = new AbortController();
  private readonly lanes: Lanes;
  private readonly waiting: WaitingTurn[] = [];
  /** Bytes of turns that wait or are under way. */
  private turnBytes = 0;
  /** Lanes with a turn under way. */
  private readonly busy = new Set<string | null>();
  private isEnding = false;
  /** The gateway stops; what is under way still ends. */
  private isLeaving = false;
  private hasSent = false;
  /** Could still pay for the largest message, when that was last looked at. */
  private pays: boolean;
  private openedMs = 0;
  private lastActivityMs = 0;
  /** When the client last took some of what waits for it, or nothing waited. */
  private tookMs = 0;
  private idleSinceMs = 0;

  constructor(
    private readonly opener: Opener,
    memory: ConversationMemory,
    private readonly deps: HttpDeps,
    private readonly onClosed: (connection: ResponsesConnection, sentTooMuch: boolean) => void,
  ) {
    this.lanes = new Lanes(memory, opener.balance);
    this.pays = opener.pays;
  }

  opened(socket: ServerSocket): void {
    this.socket = new ClientSocket(socket);
    this.openedMs = this.lastActivityMs = this.tookMs = this.idleSinceMs = this.nowMs;
  }

  noteActivity(): void {
    this.lastActivityMs = this.nowMs;
  }

  taken(): void {
    this.noteActivity();
    this.tookMs = this.nowMs;
    this.socket?.taken();
  }

  /** The client left, was asked to, or sent a larger message than the server takes. */
  closed(sentTooMuch = false): void {
    this.isEnding = true;
    this.waiting.length = 0;
    this.socket?.closed();
    this.leaving.abort();
    this.lanes.close();
    this.onClosed(this, sentTooMuch);
  }

  get isBusy(): boolean {
    return this.busy.size > 0;
  }

  received(message: string | Uint8Array): void {
    this.noteActivity();
    this.hasSent = true;
    const isDraining = this.isLeaving && this.isBusy;
    if (this.isEnding && !isDraining) return;
    if (this.isOld) return this.refuse(tooOld(), null);
    const isUnpaid = !this.pays && message.length > SMALL_BYTES;
    const tooMuch = isUnpaid ? this.tooMuchUnpaid(message.length) : null;
    if (tooMuch !== null) return this.refuseLast(tooMuch);
    if (message.length > SMALL_BYTES) this.recheckCredit().catch((error) => this.fault(error));
    if (typeof message !== "string") return this.refuseEvent(notText(), null);
    const event = readCreateEvent(Buffer.from(message));
    if ("why" in event) return this.refuseEvent(event.why, event.streamId);
    const why = isDraining ? stopping() : this.refusalFor(event);
    if (why !== null) return this.refuseEvent(why, event.streamId);
    this.waiting.push({ event, isUnpaid });
    this.turnBytes += event.bytes;
    this.goOn();
  }

  /**
   * No further turn starts, and the client of each that waits learns it; the connection is closed once those under way are
   * over.
   */
  leave(): void {
    this.isEnding = this.isLeaving = true;
    for (const { event } of this.waiting.splice(0)) {
      this.turnBytes -= event.bytes;
      this.refuse(stopping(), event.streamId);
    }
    if (!this.isBusy) this.socket?.end(GOING_AWAY, "the gateway is stopping");
  }

  /** Now and then: shows proxies on the way that the connection is used, and ends what is over. */
  keepAlive(): void {
    const { nowMs, socket } = this;
    if (socket?.isBehind !== true) this.tookMs = nowMs;
    // Who sends pings and reads nothing keeps a host's place as well as who is gone.
    if (nowMs - Math.min(this.lastActivityMs, this.tookMs) > SILENT_MS) socket?.abandon();
    else if (this.isBusy || this.isEnding) socket?.ping();
    else if (this.isOld) this.expire();
    else if (nowMs - this.idleSinceMs > (this.pays && this.hasSent ? IDLE_MS : SHORT_IDLE_MS))
      socket?.end(GOING_AWAY, "nothing was asked for a long time");
    else socket?.ping();
  }

  private expire(): void {
    this.isEnding = true;
    this.refuse(tooOld(), null);
    this.socket?.end(GOING_AWAY, "the connection has reached its age");
  }

  /** Large messages of who could not pay for them: the bytes are here, and looking through them costs as much again. */
  private tooMuchUnpaid(length: number): Refusal | null {
    const { balance, network } = this.opener;
    const taken = this.deps.bodies.unpaid.take({ balance, network }, length);
    return typeof taken === "number" ? tooMuchUnpaid(taken) : null;
  }

  /** Counts what a client sends from the moment its credit is spent, it is suspended or its key has ended. */
  private async recheckCredit(): Promise<void> {
    const { clock, keyring } = this.deps.keyDeps;
    const { secret, balance, pays } = this.opener;
    const holder = pays ? await keyring.identify(secret, clock.now()) : null;
    const mayPay = holder !== null && holder.balance.suspended === null;
    this.pays = mayPay && (await paysFor(balance, this.deps.config.settings.bodyBytes, this.deps));
  }

  private get isOld(): boolean {
    return this.nowMs - this.openedMs > LIFETIME_MS;
  }

  private refusalFor({ streamId, bytes }: CreateEvent): Refusal | ProtocolError | null {
    if (!this.lanes.admits(streamId))
      return protocolError("websocket_stream_limit_reached", String(MAX_LANES));
    const isFull =
      this.waiting.length >= MAX_WAITING ||
      // Together they fit in the memory that the connection took for them.
      (this.turnBytes > 0 && this.turnBytes + bytes > this.deps.sockets.messageBytes);
    return isFull ? tooManyWaiting(this.deps.sockets.messageBytes) : null;
  }

  /** Begins what may begin, in the order of arrival. */
  private goOn(): void {
    for (let at = 0; at < this.waiting.length && this.busy.size < MAX_AT_ONCE; ) {
      const turn = this.waiting[at]!;
      const { event } = turn;
      if (this.busy.has(event.streamId)) at += 1;
      else {
        this.waiting.splice(at, 1);
        this.busy.add(event.streamId);
        void this.take(turn);
      }
    }
  }

  private async take(waiting: WaitingTurn): Promise<void> {
    await this.turn(waiting).catch((error) => this.fault(error));
    this.busy.delete(waiting.event.streamId);
    this.turnBytes -= waiting.event.bytes;
    this.idleSinceMs = this.nowMs;
    if (!this.isEnding) this.goOn();
    else if (!this.isBusy) this.socket?.end(GOING_AWAY, "the gateway is stopping");
  }

  private fault(error: unknown): void {
    this.deps.onFault(error, newReceiptId(this.deps.clock.now(), this.deps.random));
    this.socket?.abandon();
  }

  private async turn({ event, isUnpaid }: WaitingTurn): Promise<void> {
    const { streamId, previousResponseId } = event;
    const from = this.lanes.resume(previousResponseId, streamId);
    if (from === null)
      return this.refuseEvent(protocolError("previous_response_not_found", previousResponseId!), streamId);
    try {
      await this.turnFrom(from, event, isUnpaid);
    } finally {
      from.release();
    }
  }

  /** What it continues may be forgotten meanwhile: nothing here keeps it. */
  private async turnFrom(from: Continuation, event: CreateEvent, isUnpaid: boolean): Promise<void> {
    const { streamId, previousResponseId } = event;
    const isChecked =
      previousResponseId !== null &&
      event.items.length <= MAX_CHECKED_BYTES &&
      // Nothing is counted yet, and looking for calls takes time for each byte.
      (this.pays || from.bytes + event.bytes <= SMALL_BYTES);
    const orphan = isChecked ? orphanResult(event, from.items() ?? []) : null;
    const sender = { ...this.opener, isUnpaid, signal: this.leaving.signal };
    const answer = orphan ?? (await answerTurn(event, from, sender, this.deps));
    if (answer instanceof ProtocolError || refused(answer) || isRefusal(answer)) await this.recheckCredit();
    let end: AnswerEnd = { isServed: false };
    const ended = (outcome: AnswerEnd) => {
      end = outcome;
      if (outcome.isServed)
        this.lanes.keep(streamId, outcome.responseId, from, [event.items, ...outcome.items]);
    };
    if (refused(answer) && answer === orphan) this.refuseEvent(answer, streamId);
    else if (answer instanceof ProtocolError || refused(answer)) this.refuse(answer, streamId);
    else if (answer instanceof Uint8Array) await this.frames(streamId, {}, ended).write(answer);
    else if (answer.kind === "stream")
      await answer.run(this.frames(streamId, gatewayHeaders(answer.headers), ended));
    else this.socket!.notify(errorAnswerEvent(answer, streamId));
    if (!end.isServed && previousResponseId !== null) this.lanes.failed(streamId, previousResponseId);
  }

  private frames(
    streamId: string | null,
    headers: Readonly<Record<string, string>>,
    ended: (end: AnswerEnd) => void,
  ): EventFrames {
    return new EventFrames(this.socket!, streamId, headers, ended);
  }

  /** What is refused before it is a turn counts as a request without credit, too. */
  private refuseEvent(why: Refusal | ProtocolError, streamId: string | null): void {
    const { balance, blocks } = this.opener;
    const waitS = this.deps.unpaidRequests.waitS(balance, blocks, { bytes: 0, writes: false });
    if (waitS === null) this.refuse(why, streamId);
    else this.refuseLast(tooMuchUnpaid(waitS));
  }

  private refuseLast(why: Refusal): void {
    this.isEnding = true;
    this.refuse(why, null);
    this.socket?.end(TOO_MUCH, "too much was sent without credit");
  }

  private refuse(why: Refusal | ProtocolError, streamId: string | null): void {
    const { clock, random } = this.deps;
    const { baseUrl } = this.deps.config.settings;
    if (refused(why)) this.deps.generation.turnedAway("responses", why.code);
    this.socket?.notify(errorEvent(why, streamId, { baseUrl, receipt: newReceiptId(clock.now(), random) }));
  }

  private get nowMs(): number {
    return this.deps.clock.elapsedMs();
  }
}

/** Who opened the connection. */
export interface Opener extends Omit<TurnSender, "isUnpaid" | "signal"> {
  readonly balance: BalanceId;
  /** Could pay for the largest message. */
  readonly pays: boolean;
  /** As wide as one may be had for nothing (see `wideNetwork`). */
  readonly network: string;
}

interface WaitingTurn {
  readonly event: CreateEvent;
  /** A large message whose bytes were counted as read for nothing when it came. */
  readonly isUnpaid: boolean;
}

const isRefusal = (answer: GenerationAnswer | Uint8Array): boolean =>
  "status" in answer && answer.status >= 400;

/** OpenAI's figures. */
const MAX_AT_ONCE = 16;
const LIFETIME_MS = HOUR_MS;
/** Turns that wait for their lane. */
const MAX_WAITING = 64;
/** A client answers pings within this, or has sent a message of the largest size at 100 kB a second. */
const SILENT_MS = 120_000;
/** Between turns: tools may run that long, and people think. */
const IDLE_MS = 1_800_000;
/** For senders who pay nothing, and before the first message: one that is never finished looks like none. */
const SHORT_IDLE_MS = 120_000;
/** Larger input is parsed once, where all requests are. */
const MAX_CHECKED_BYTES = 1_048_576;

/** What an answer's headers tell next to its events. */
const gatewayHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-gateway-")));

const tooOld = (): ProtocolError =>
  protocolError("websocket_connection_limit_reached", String(LIFETIME_MS / 60_000));

const stopping = (): Refusal =>
  refuse(
    "model_unavailable",
    "The gateway is stopping; this turn was not started, and nothing was charged. Send it again over a new connection.",
    { retryAfterS: 1, shouldRetry: true },
  );

const notText = (): Refusal =>
  refuse("invalid_request", "Send each event as one text message of JSON; binary messages are not read.");

const tooManyWaiting = (mostBytes: number): Refusal =>
  refuse(
    "rate_limited",
    `At most ${MAX_WAITING} turns wait on a connection, and those that wait or are being answered may have ${mostBytes} bytes together. Send this one again once an answer has ended, or with POST.`,
    { retryAfterS: 1 },
  );
