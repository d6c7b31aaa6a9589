import type { HostBytes, Read, ReadListener } from "../../hosts/transport.ts";
import type { StreamJudge } from "../../surfaces/surface.ts";
import type { Clock } from "../../units/clock.ts";
import type { Deadline, Deadlines } from "../../units/deadlines.ts";
import type { OpenStreams } from "./open-streams.ts";

/**
 * Relays a stream from host to client, beginning with the bytes that held the first token: read, judge,
 * write. Returns the one reason for which it ended. It does not send the end mark, which has to wait for the
 * settlement.
 */
export function relay(context: RelayContext, first: Uint8Array): Promise<RelayEnd> {
  return new Promise((ended, failed) => new Relay(context, ended, failed).begin(first));
}

export interface RelayContext {
  readonly source: HostBytes;
  readonly judge: StreamJudge;
  readonly sink: { write(bytes: Uint8Array): boolean | Promise<boolean> };
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** What to do with the host then: stop it, or read it to its end. */
  readonly onDisconnect: "cancel" | "drain";
  readonly limits: RelayLimits;
  readonly clock: Pick<Clock, "elapsedMs">;
  readonly deadlines: Deadlines;
  readonly meter: StreamMeter;
  /** Sent to a client that has received nothing for `keepaliveMs`. */
  readonly keepalive: Uint8Array;
  readonly host: { cancel(): void };
  readonly open: OpenStreams;
}

interface StreamMeter {
  /**
   * Called with the delivered tokens after each chunk; false stops the stream, because the balance does not cover
   * more.
   */
  covers(deliveredTokens: number, nowMs: number): boolean;
  /** After it did not cover what came: when to ask it once more, or null if that is final. */
  more(): Promise<void> | null;
  /** When it wants to be asked again although nothing came. It may be put off, and never comes nearer. */
  readonly dueMs: number;
}

interface RelayLimits {
  /** Longest silence of the host inside a stream. */
  readonly chunkGapMs: number;
  /** Monotonic time at which the answer is cut off. */
  readonly deadlineMs: number;
  /** Longest silence towards the client; proxies on the way give a silent connection up. */
  readonly keepaliveMs: number;
}

export type RelayEnd =
  /** `isHeldUp`: it waited for the client on the way, so its time says nothing about the host. */
  | { readonly kind: "complete"; readonly isHeldUp?: true }
  | { readonly kind: "host_failed"; readonly message: string }
  /** The host is not to blame: time ran out while the client took nothing, or the gateway is stopping. */
  | { readonly kind: "cut"; readonly message: string; readonly by: "client" | "gateway" }
  /**
   * `delivered` output tokens had been given to the client when it left. `isReadWhole`: it left before the first
   * byte, and all of the answer was read in its place.
   */
  | { readonly kind: "client_left"; readonly delivered: number; readonly isReadWhole?: true }
  | { readonly kind: "out_of_credit" };

/**
 * One stream on its way. The host's bytes push it on, an event at a time, without a promise for each: there
 * may be thousands of streams, and whatever an event touches has to be fetched into the processor's caches.
 * It notices the host's silence, in which the client is given signs of life, the deadline, and a client that
 * leaves while the host is silent.
 */
class Relay implements ReadListener, Deadline {
  /** The client has left. */
  private hasLeft = false;
  /** The client left before it was given anything, and the host is read to its end all the same. */
  private isReadWhole = false;
  private halted = false;
  private over = false;
  private delivered = 0;
  private endTaking: ((isTaken: true) => void) | null = null;
  private heldUp = false;
  /** The meter is waited for; the client is as held up as by its own slowness. */
  private awaitsMeter = false;
  private cutBy: "client" | "gateway" | null = null;
  private reason: string | null = null;
  private touchedMs: number;
  /** When the client was last given something. Before that, it is given no sign of life. */
  private givenMs = Number.POSITIVE_INFINITY;
  /** The client has to take a sign of life; what the host says meanwhile waits in `early`. */
  private pinging = false;
  private early: Read | undefined = undefined;

  constructor(
    private readonly context: RelayContext,
    private readonly ended: (end: RelayEnd) => void,
    private readonly failed: (error: unknown) => void,
  ) {
    this.touchedMs = context.clock.elapsedMs();
    context.deadlines.add(this);
    context.open.add(this);
    if (context.signal.aborted) this.clientLeft();
    else context.signal.addEventListener("abort", this);
  }

  begin(first: Uint8Array): void {
    try {
      if (this.give(first)) this.readOn();
    } catch (error) {
      this.fail(error);
    }
  }

  /** What the host's next bytes are, or how they ended. */
  arrived(read: Read): void {
    if (this.over) return;
    if (this.pinging) {
      this.early = read;
      return;
    }
    try {
      if (this.take(read)) this.readOn();
    } catch (error) {
      this.fail(error);
    }
  }

  /** @internal The client leaves. */
  handleEvent(): void {
    this.clientLeft();
  }

  cut(why: string): void {
    if (this.halted) return;
    this.reason = why;
    this.cutBy = "gateway";
    this.halt();
  }

  private readOn(): void {
    for (;;) {
      const read = this.context.source.next(this);
      if (read === undefined || !this.take(read)) return;
    }
  }

  /** Whether to read on: not when the stream is over, or while the client has to take what it was given. */
  private take(read: Read): boolean {
    const { judge, clock } = this.context;
    this.touchedMs = clock.elapsedMs();
    if (read instanceof Uint8Array) return this.give(judge.push(read));
    if (read === null) return this.give(judge.end());
    this.end(this.cause(read.message));
    return false;
  }

  private give(bytes: Uint8Array): boolean {
    if (bytes.length > 0 && !this.hasLeft) {
      const isFirst = this.givenMs === Number.POSITIVE_INFINITY;
      this.givenMs = this.touchedMs;
      // From now on a sign of life may be due.
      if (isFirst) this.context.deadlines.add(this);
      const taken = this.context.sink.write(bytes);
      if (typeof taken !== "boolean") {
        this.heldUp = true;
        void this.awaitTaken(taken);
        return false;
      }
      if (!taken) this.clientLeft();
    }
    return this.goesOn();
  }

  private goesOn(): boolean {
    if (this.over) return false;
    const { judge } = this.context;
    if (!this.hasLeft) {
      this.delivered = judge.countedTokens;
      judge.text.deliver();
    }
    if (this.hasLeft && (this.halted || judge.isComplete || judge.fault !== null)) this.end(this.cause(""));
    else if (judge.isComplete) this.end(this.heldUp ? { kind: "complete", isHeldUp: true } : COMPLETE);
    else if (judge.fault !== null) this.end({ kind: "host_failed", message: judge.fault.message });
    else if (!this.hasLeft && !this.covered(this.touchedMs)) this.runShort();
    return !this.over && !this.awaitsMeter;
  }

  /** An answer that has ended is not stopped for what the host says at its end that it used. */
  private covered(nowMs: number): boolean {
    const { judge, meter } = this.context;
    return meter.covers(this.delivered, nowMs) || judge.hasStopped;
  }

  /** A host may send more in one moment than is granted to this process of what the balance has. */
  private runShort(): void {
    if (this.halted) return this.end(this.cause(""));
    const more = this.context.meter.more();
    if (more === null) return this.end({ kind: "out_of_credit" });
    this.heldUp = this.awaitsMeter = true;
    void this.awaitTaken(more.then(() => true));
  }

  /**
   * Waits for a slow client, or for the meter. That time does not count as the host's silence, but the deadline still ends it.
   */
  private async awaitTaken(taken: Promise<boolean>): Promise<void> {
    try {
      const isTaken = await this.untilTaken(taken);
      this.awaitsMeter = false;
      this.givenMs = this.touchedMs = this.context.clock.elapsedMs();
      // The host's silence counts again, so its deadline is nearer.
      if (!this.over) this.context.deadlines.add(this);
      if (!isTaken) this.clientLeft();
      if (this.goesOn()) this.readOn();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Pings a client whose host is silent; a client that takes nothing gets none. */
  private async ping(nowMs: number): Promise<void> {
    try {
      this.givenMs = nowMs;
      this.pinging = true;
      const taken = this.context.sink.write(this.context.keepalive);
      const isTaken = typeof taken === "boolean" ? taken : await this.untilTaken(taken);
      this.pinging = false;
      if (isTaken) this.givenMs = this.context.clock.elapsedMs();
      else this.clientLeft();
      if (this.over) return;
      this.context.deadlines.add(this);
      const { early } = this;
      this.early = undefined;
      if (early !== undefined) this.arrived(early);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Or until it is not waited for any more. */
  private async untilTaken(taken: Promise<boolean>): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    this.endTaking = resolve;
    taken.then(resolve, reject);
    const isTaken = await promise;
    this.endTaking = null;
    return isTaken;
  }

  private clientLeft(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    const { onDisconnect, judge } = this.context;
    this.isReadWhole = onDisconnect === "drain" && this.givenMs === Number.POSITIVE_INFINITY;
    if (!this.isReadWhole) judge.text.end();
    if (onDisconnect === "cancel") this.halt();
  }

  /** Why reading ended: our own doing, or the host's. */
  private cause(message: string): RelayEnd {
    const { hasLeft, delivered, isReadWhole } = this;
    if (hasLeft) return { kind: "client_left", delivered, ...(isReadWhole ? { isReadWhole } : {}) };
    const why = this.reason ?? message;
    return this.cutBy === null
      ? { kind: "host_failed", message: why }
      : { kind: "cut", message: why, by: this.cutBy };
  }

  /** Ends what is waited for, the host's bytes or the client; the stream ends where that is noticed. */
  private halt(): void {
    this.halted = true;
    this.context.host.cancel();
    this.endTaking?.(true);
  }

  private end(end: RelayEnd): void {
    if (this.close()) this.ended(end);
  }

  private fail(error: unknown): void {
    if (this.close()) this.failed(error);
  }

  /** False if it had ended before. */
  private close(): boolean {
    if (this.over) return false;
    this.over = true;
    const { context } = this;
    context.deadlines.drop(this);
    context.open.delete(this);
    context.signal.removeEventListener("abort", this);
    // Does nothing to a complete stream.
    context.host.cancel();
    return true;
  }

  /** Each sign of life of the host puts it off, and a client that takes nothing yet, as long as there is time. */
  get dueMs(): number {
    return this.hasLeft || this.awaitsMeter
      ? this.endMs
      : Math.min(this.endMs, this.context.meter.dueMs, this.pingMs);
  }

  private get pingMs(): number {
    return this.endTaking === null
      ? this.givenMs + this.context.limits.keepaliveMs
      : Number.POSITIVE_INFINITY;
  }

  private get endMs(): number {
    const { chunkGapMs, deadlineMs } = this.context.limits;
    // The host's silence goes on while the client takes a sign of life.
    const waits = this.endTaking === null || this.pinging;
    return waits ? Math.min(this.touchedMs + chunkGapMs, deadlineMs) : deadlineMs;
  }

  /** @internal */
  timeIsUp(): void {
    const { clock, limits, deadlines } = this.context;
    const nowMs = clock.elapsedMs();
    if (nowMs < this.endMs) {
      if (this.hasLeft || this.awaitsMeter) deadlines.add(this);
      else if (this.covered(nowMs)) {
        if (nowMs >= this.pingMs) void this.ping(nowMs);
        if (!this.over) deadlines.add(this);
      } else {
        this.end({ kind: "out_of_credit" });
        this.endTaking?.(true);
      }
      return;
    }
    const isLate = nowMs >= limits.deadlineMs;
    this.reason = isLate
      ? "the answer took longer than allowed"
      : `nothing arrived for ${limits.chunkGapMs} ms`;
    if (this.awaitsMeter) this.cutBy = "gateway";
    else if (this.endTaking !== null && !this.pinging) this.cutBy = "client";
    this.halt();
  }
}

const COMPLETE: RelayEnd = { kind: "complete" };
