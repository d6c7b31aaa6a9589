import type { StreamJudge } from "../surfaces/surface.ts";
import type { Clock } from "../units/clock.ts";
import type { OpenStream, OpenStreams } from "./open-streams.ts";

/**
 * Relays a stream from host to client, beginning with the bytes that held the first token: read, judge,
 * write. Returns the one reason for which it ended. It does not send the end mark, which has to wait for the
 * settlement.
 */
export async function relay(line: Line, first: Uint8Array): Promise<RelayEnd> {
  const { source, judge, sink, meter } = line;
  const watch = new Watch(line);
  try {
    let bytes = first;
    for (;;) {
      if (bytes.length > 0 && !watch.left) {
        const taken = sink.write(bytes);
        if (!(typeof taken === "boolean" ? taken : await watch.whileTaking(taken))) watch.leave();
      }
      if (!watch.left) watch.delivered = judge.countedTokens;
      const verdict = ending(judge, watch);
      if (verdict !== null) return verdict;
      if (!watch.left && !meter.covers(judge.countedTokens)) return { kind: "out_of_credit" };
      const read = source.read();
      const next = read instanceof Promise ? await read : read;
      watch.touch();
      if (next instanceof Uint8Array) bytes = judge.push(next);
      else if (next === null) bytes = judge.end();
      else return watch.cause(next.message);
    }
  } finally {
    watch.stop();
    // Does nothing to a complete stream.
    line.host.cancel();
  }
}

export interface Line {
  readonly source: ByteSource;
  readonly judge: StreamJudge;
  readonly sink: { write(bytes: Uint8Array): boolean | Promise<boolean> };
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** What to do with the host then: stop it, or read it to its end. */
  readonly onDisconnect: "cancel" | "drain";
  readonly limits: RelayLimits;
  readonly clock: Clock;
  /**
   * Told the delivered tokens after each chunk; false stops the stream, because the balance does not cover
   * more.
   */
  readonly meter: { covers(deliveredTokens: number): boolean };
  readonly host: { cancel(): void };
  readonly open: OpenStreams;
}

export interface RelayLimits {
  /** Longest silence of the host inside a stream. */
  readonly chunkGapMs: number;
  /** Monotonic time at which the answer is cut off. */
  readonly deadlineMs: number;
}

export interface ByteSource {
  read(): ReadResult | Promise<ReadResult>;
}

/** Bytes, their proper end, or what broke. */
export type ReadResult = Uint8Array | null | { readonly kind: string; readonly message: string };

export type RelayEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "host_failed"; readonly message: string }
  /** The host is not to blame: time ran out while the client took nothing, or the gateway is stopping. */
  | { readonly kind: "cut"; readonly message: string; readonly by: "client" | "gateway" }
  /** `delivered` output tokens had been given to the client when it left. */
  | { readonly kind: "client_left"; readonly delivered: number }
  | { readonly kind: "out_of_credit" };

function ending(judge: StreamJudge, watch: Watch): RelayEnd | null {
  if (watch.left && (watch.stopped || judge.terminal !== null || judge.fault !== null))
    return watch.cause("");
  if (judge.terminal !== null) return { kind: "complete" };
  if (judge.fault !== null) return { kind: "host_failed", message: judge.fault.message };
  return null;
}

/**
 * Notices the host's silence, the deadline, and a client that leaves while the host is silent. It uses one
 * timer per stream, not one per chunk.
 */
class Watch implements OpenStream {
  left = false;
  stopped = false;
  delivered = 0;
  private endTaking: ((isTaken: true) => void) | null = null;
  private cutBy: "client" | "gateway" | null = null;
  private because: string | null = null;
  private touchedMs: number;
  private timer;

  constructor(private readonly line: Line) {
    this.touchedMs = line.clock.elapsedMs();
    this.timer = line.clock.after(this.remainingMs(), () => this.check());
    line.open.opened(this);
    if (line.signal.aborted) this.leave();
    else line.signal.addEventListener("abort", this);
  }

  touch(): void {
    this.touchedMs = this.line.clock.elapsedMs();
  }

  /**
   * Waits for a slow client. That time does not count as the host's silence, but the deadline still ends it.
   */
  async whileTaking(taken: Promise<boolean>): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    this.endTaking = resolve;
    taken.then(resolve, reject);
    const isTaken = await promise;
    this.endTaking = null;
    this.touch();
    return isTaken;
  }

  /** @internal The client leaves. */
  handleEvent(): void {
    this.leave();
  }

  leave(): void {
    if (this.left) return;
    this.left = true;
    if (this.line.onDisconnect === "cancel") this.halt();
  }

  /** Why reading ended: our own doing, or the host's. */
  cause(message: string): RelayEnd {
    if (this.left) return { kind: "client_left", delivered: this.delivered };
    const why = this.because ?? message;
    return this.cutBy === null
      ? { kind: "host_failed", message: why }
      : { kind: "cut", message: why, by: this.cutBy };
  }

  cut(why: string): void {
    if (this.stopped) return;
    this.because = why;
    this.cutBy = "gateway";
    this.halt();
  }

  stop(): void {
    this.timer.cancel();
    this.line.open.ended(this);
    this.line.signal.removeEventListener("abort", this);
  }

  private halt(): void {
    this.stopped = true;
    this.line.host.cancel();
    this.endTaking?.(true);
  }

  private remainingMs(): number {
    const { clock, limits } = this.line;
    const nowMs = clock.elapsedMs();
    const silentSinceMs = this.endTaking === null ? this.touchedMs : nowMs;
    return Math.max(0, Math.min(silentSinceMs + limits.chunkGapMs, limits.deadlineMs) - nowMs);
  }

  private check(): void {
    const remaining = this.remainingMs();
    const { clock, limits } = this.line;
    if (remaining > 0) {
      this.timer = clock.after(remaining, () => this.check());
      return;
    }
    const late = clock.elapsedMs() >= limits.deadlineMs;
    this.because = late
      ? "the answer took longer than allowed"
      : `nothing arrived for ${limits.chunkGapMs} ms`;
    if (this.endTaking !== null) this.cutBy = "client";
    this.halt();
  }
}
