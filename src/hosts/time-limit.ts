import type { Clock, Timer } from "../units/clock.ts";
import type { Exchange } from "./transport.ts";

/**
 * Cancels a try when its time is up, the client leaves, or another host was faster. Whichever comes first
 * determines the outcome.
 */
export class TimeLimit {
  private exchange: Exchange | null = null;
  private why: Why | null = null;
  private timer: Timer;
  private answering = false;

  constructor(
    private readonly clock: Clock,
    private ms: number,
    private readonly signal: AbortSignal,
    /** The time is short only because another host is ready. */
    private early = false,
  ) {
    this.timer = this.begin(ms);
    signal.addEventListener("abort", this);
  }

  get over(): boolean {
    return this.why !== null;
  }

  /** The answer has begun: from now on, `ms` for each further part of it. */
  restart(ms: number): void {
    if (this.over) return;
    this.answering = true;
    this.early = false;
    this.ms = ms;
    this.timer.cancel();
    this.timer = this.begin(ms);
  }

  private begin(ms: number): Timer {
    return this.clock.after(ms, () => this.end("silent"));
  }

  guard(exchange: Exchange): void {
    this.exchange = exchange;
    if (this.over) exchange.cancel();
  }

  outcome(): { readonly kind: Why; readonly message: string; readonly early: boolean } {
    const awaited = this.answering ? "nothing more" : "no first token";
    const why = this.why!;
    const message = why === "silent" ? `${awaited} within ${Math.round(this.ms)} ms` : WORDS[why];
    return { kind: why, message, early: this.early };
  }

  end(why: Why): void {
    this.why ??= why;
    this.exchange?.cancel();
  }

  /** @internal The client leaves. */
  handleEvent(): void {
    this.end("abandoned");
  }

  stop(): void {
    this.timer.cancel();
    this.signal.removeEventListener("abort", this);
  }
}

type Why = "silent" | "abandoned" | "outrun";

const WORDS = { abandoned: "the client left", outrun: "another host was faster" };
