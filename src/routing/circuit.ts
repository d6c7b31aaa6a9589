/**
 * A circuit breaker. Closed: requests pass. After a few failures in a row, or when the host says so, it opens and rests,
 * longer each time it opens again; after the rest it is half open, and one request at a time is let through to see.
 */
export class Circuit {
  private failures = 0;
  private deaths = 0;
  /** Openings since it was last closed; 0 while it is closed. */
  private openings = 0;
  private restsUntilMs = 0;
  /** The rest was asked for by the host: an answer that was already on its way does not end it. */
  private bidden = false;
  /** A probe is under way, and nothing else enters, until then; 0 when none is. */
  private probeUntilMs = 0;

  state(nowMs: number): CircuitState {
    if (this.openings === 0) return "closed";
    return nowMs < this.restsUntilMs ? "open" : "half_open";
  }

  /** How long it takes no requests, in milliseconds; 0 when it takes one now. */
  restMs(nowMs: number): number {
    if (this.openings === 0) return 0;
    return Math.max(this.restsUntilMs - nowMs, this.probeUntilMs - nowMs, 0);
  }

  /** Takes the one place of a half-open circuit. Each `enter` is followed by one of `served`, `failed` and `left`. */
  enter(nowMs: number): void {
    if (this.openings > 0) this.probeUntilMs = nowMs + LONGEST_PROBE_MS;
  }

  served(nowMs: number): void {
    this.failures = 0;
    this.probeUntilMs = 0;
    if (this.bidden && nowMs < this.restsUntilMs) return;
    this.openings = 0;
    this.bidden = false;
  }

  /** `restMs`: the host named the rest itself, as with `Retry-After`. */
  failed(nowMs: number, restMs: number | null): void {
    this.probeUntilMs = 0;
    this.failures += 1;
    if (restMs !== null) {
      this.bidden = true;
      this.open(nowMs, Math.min(restMs, LONGEST_BIDDEN_REST_MS));
    } else if (this.state(nowMs) === "half_open" || this.failures >= FAILURES_TO_OPEN) {
      this.fail(nowMs);
    }
  }

  /** The request that had entered says nothing about the host. */
  left(): void {
    this.probeUntilMs = 0;
  }

  /** A stream that had begun broke. `served` came before it, so such failures are counted apart. */
  died(nowMs: number): void {
    this.deaths += 1;
    if (this.deaths >= FAILURES_TO_OPEN) this.fail(nowMs);
  }

  completed(): void {
    this.deaths = 0;
  }

  private fail(nowMs: number): void {
    // Requests that were under way together fail together; that is one failure of the host.
    if (this.state(nowMs) === "open") return;
    this.bidden = false;
    this.open(nowMs, Math.min(FIRST_REST_MS * 2 ** Math.min(this.openings, 10), LONGEST_REST_MS));
  }

  private open(nowMs: number, restMs: number): void {
    if (this.state(nowMs) !== "open") this.openings += 1;
    this.restsUntilMs = Math.max(this.restsUntilMs, nowMs + restMs);
    this.deaths = 0;
  }
}

export type CircuitState = "closed" | "open" | "half_open";

/** In a row. */
const FAILURES_TO_OPEN = 3;
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 30_000;
/** A host may ask for more, but the gateway looks again then. */
const LONGEST_BIDDEN_REST_MS = 120_000;
/** Longer than any first token is waited for. */
const LONGEST_PROBE_MS = 60_000;
