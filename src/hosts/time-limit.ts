import { LOST_HEDGE } from "../ledger/receipt.ts";
import type { Clock } from "../units/clock.ts";
import type { Deadline, Deadlines } from "../units/deadlines.ts";
import type { HostExchange } from "./transport.ts";

/** Cancels an attempt when its time is up, its client leaves or another host was faster; the first of these is the outcome. */
export class TimeLimit implements Deadline {
  dueMs: number;
  private exchange: HostExchange | null = null;
  private why: Why | null = null;
  private answering = false;

  constructor(
    private readonly clock: Pick<Clock, "elapsedMs">,
    private readonly deadlines: Deadlines,
    private ms: number,
    /** The client's signal; null for a host that is read to its end even if the client leaves. */
    private readonly signal: AbortSignal | null,
    /** The time was shortened because another host is ready. */
    private early = false,
  ) {
    this.dueMs = clock.elapsedMs() + ms;
    deadlines.add(this);
    signal?.addEventListener("abort", this);
  }

  get over(): boolean {
    return this.why !== null;
  }

  /** The answer has started: from now on, each further part has to arrive within `ms`. */
  restart(ms: number): void {
    if (this.over) return;
    this.answering = true;
    this.early = false;
    this.ms = ms;
    this.dueMs = this.clock.elapsedMs() + ms;
    this.deadlines.add(this);
  }

  /** @internal */
  timeIsUp(): void {
    this.end("silent");
  }

  guard(exchange: HostExchange): void {
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
    this.deadlines.drop(this);
    this.signal?.removeEventListener("abort", this);
  }
}

type Why = "silent" | "abandoned" | typeof LOST_HEDGE;

const WORDS = { abandoned: "the client left", [LOST_HEDGE]: "another host was faster" };
