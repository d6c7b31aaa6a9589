import type { BalanceId } from "../units/id.ts";

/**
 * A circuit breaker. Closed: requests pass. After a few failures in a row, or at the host's request, it opens and rests,
 * longer each time. After the rest it is half open: one request at a time is let through as a probe.
 *
 * A request can make a healthy host fail, with a field that the host answers with 404 or a prompt that it never finishes
 * reading. So that no customer can take a host away from others, failures of that kind do not open the circuit if they hit
 * only a few balances while others are being served, and do not make its rests longer if others were served before.
 */
export class Circuit {
  private readonly failures = new FailureRun();
  private readonly deaths = new FailureRun();
  private readonly lastServed = new LastServed();
  /** How often it has opened since it was last closed; 0 while it is closed. */
  private openings = 0;
  private restsUntilMs = 0;
  /** The host requested the rest: an answer that was already on its way does not end it. */
  private isHostRequested = false;
  /** Until then a probe is under way and nothing else enters; 0: no probe. */
  private probeUntilMs = 0;

  state(nowMs: number): CircuitState {
    if (this.openings === 0) return "closed";
    return nowMs < this.restsUntilMs ? "open" : "half_open";
  }

  /** Milliseconds until it lets a request through; 0: now. */
  restMs(nowMs: number): number {
    if (this.openings === 0) return 0;
    return Math.max(this.restsUntilMs - nowMs, this.probeUntilMs - nowMs, 0);
  }

  /** Nothing was served, or no stream reached its end, since the last failure. */
  get isFailing(): boolean {
    return this.openings > 0 || this.failures.length > 0 || this.deaths.length > 0;
  }

  /** A probe has entered and has not ended. */
  isProbed(nowMs: number): boolean {
    return nowMs < this.probeUntilMs;
  }

  /** Enters as the probe if the circuit is half open. One of `served`, `failed` and `left` follows. */
  enter(nowMs: number): void {
    if (this.openings > 0) this.probeUntilMs = nowMs + LONGEST_PROBE_MS;
  }

  served(nowMs: number, by: BalanceId): void {
    this.failures.end();
    this.lastServed.note(nowMs, by);
    this.probeUntilMs = 0;
    if (this.isHostRequested && nowMs < this.restsUntilMs) return;
    this.openings = 0;
    this.restsUntilMs = 0;
    this.isHostRequested = false;
  }

  /** The rest that this failure starts or prolongs; null if it changes nothing. */
  failed(nowMs: number, { by, doubtful, restMs }: AttemptFailure): Rest | null {
    const { failures } = this;
    this.probeUntilMs = 0;
    // Failures of requests that were under way when the rest began say nothing of what a probe will find.
    if (this.state(nowMs) !== "open") failures.add(by, doubtful);
    if (restMs !== null)
      return this.open(nowMs, { ms: Math.min(restMs, LONGEST_REQUESTED_REST_MS), isHostRequested: true });
    return this.state(nowMs) === "half_open" || failures.length >= FAILURES_TO_OPEN
      ? this.fail(nowMs, failures)
      : null;
  }

  /** The request that entered says nothing about the host. */
  left(): void {
    this.probeUntilMs = 0;
  }

  /** A stream broke after it had started. Counted separately, because `served` came before. */
  died(nowMs: number, by: BalanceId): Rest | null {
    const { deaths } = this;
    deaths.add(by, true);
    return deaths.length >= FAILURES_TO_OPEN ? this.fail(nowMs, deaths) : null;
  }

  completed(): void {
    this.deaths.end();
  }

  private fail(nowMs: number, row: FailureRun): Rest | null {
    const state = this.state(nowMs);
    // Requests that were under way together fail together: that counts as one failure.
    if (state === "open") return null;
    const servedAgoMs = row.isCertain
      ? Number.POSITIVE_INFINITY
      : nowMs - this.lastServed.outsideMs(row.balances);
    if (servedAgoMs < LATELY_MS && (state === "closed" || row.balances.size === 1)) return null;
    const doublings = servedAgoMs < WHILE_RESTING_MS ? 0 : Math.min(this.openings, 10);
    const ms = Math.min(FIRST_REST_MS * 2 ** doublings, LONGEST_REST_MS);
    return this.open(nowMs, { ms, isHostRequested: false });
  }

  /** Rests the host; also called with what another process has learnt. */
  open(nowMs: number, rest: Rest): Rest | null {
    const untilMs = nowMs + rest.ms;
    const isNews = untilMs - Math.max(nowMs, this.restsUntilMs) >= MIN_NEWS_MS;
    if (this.state(nowMs) !== "open") {
      this.openings += 1;
      this.isHostRequested = false;
    }
    this.isHostRequested ||= rest.isHostRequested;
    this.restsUntilMs = Math.max(this.restsUntilMs, untilMs);
    this.failures.end();
    this.deaths.end();
    return isNews ? rest : null;
  }
}

/** A time in which a circuit takes no requests. */
export interface Rest {
  readonly ms: number;
  readonly isHostRequested: boolean;
}

export interface AttemptFailure {
  /** The balance whose request failed. */
  readonly by: BalanceId;
  /** The request itself may have caused it. */
  readonly doubtful: boolean;
  /** The rest that the host named, as with `Retry-After`; null: none. */
  readonly restMs: number | null;
}

export type CircuitState = "closed" | "open" | "half_open";

/** In a row. */
const FAILURES_TO_OPEN = 3;
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 30_000;
/** A smaller extension of a rest is not reported. */
const MIN_NEWS_MS = 500;
/** A host may name a longer wait, but the gateway tries again after this. */
const LONGEST_REQUESTED_REST_MS = 120_000;
/** Then another request may probe as well: a sender could keep everybody out with a prompt that is never answered. */
const LONGEST_PROBE_MS = 5_000;
/** If other customers were served this recently, the host is healthy and the failures are their senders' own. */
const LATELY_MS = 10_000;
/** The same while it rests or is probed, when hardly anybody is served. */
const WHILE_RESTING_MS = 60_000;
/** So many balances that fail together are no sender's doing. */
const MAX_DOUBTED = 8;

/** Failures in a row. */
class FailureRun {
  length = 0;
  /** At least one of them cannot have been caused by its request, or they are those of many balances. */
  isCertain = false;
  readonly balances = new Set<BalanceId>();

  add(by: BalanceId, doubtful: boolean): void {
    this.length += 1;
    if (!this.isCertain) this.balances.add(by);
    if (!doubtful || this.balances.size > MAX_DOUBTED) this.isCertain = true;
  }

  end(): void {
    if (this.length === 0) return;
    this.length = 0;
    this.isCertain = false;
    this.balances.clear();
  }
}

/** When balances were served last: as many as failures may have to be compared with, and one more. */
class LastServed {
  /** The latest last. */
  private readonly byBalance = new Map<BalanceId, number>();
  private latest: BalanceId | null = null;

  note(nowMs: number, by: BalanceId): void {
    const { byBalance } = this;
    if (by !== this.latest) {
      byBalance.delete(by);
      this.latest = by;
    }
    byBalance.set(by, nowMs);
    if (byBalance.size > MAX_DOUBTED + 1) byBalance.delete(byBalance.keys().next().value!);
  }

  /** When any balance outside of these was served. */
  outsideMs(balances: ReadonlySet<BalanceId>): number {
    let latest = Number.NEGATIVE_INFINITY;
    for (const [balance, ms] of this.byBalance) if (!balances.has(balance)) latest = ms;
    return latest;
  }
}
