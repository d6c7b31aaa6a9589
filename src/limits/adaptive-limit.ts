/**
 * How many requests a host takes at once, learnt from the host. It begins at the most that the operator allows, because a
 * host that has not complained is not overloaded; a complaint (429, 503, no answer in time) cuts it to a part of what was
 * in flight, and each answer afterwards raises it a little. Additive increase as TCP does it would take hours here, where
 * a round trip is an answer of ten seconds; overshooting costs one refused attempt, which moves on to another host.
 *
 * First-token times are no signal: they differ by a factor of a hundred with the length of the prompt alone.
 */
export class AdaptiveLimit {
  private limit: number;
  private cutAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly most: number) {
    this.limit = most;
  }

  /** Whole requests at once. */
  get current(): number {
    return Math.floor(this.limit);
  }

  /** Nothing was learnt that a new one would not assume. */
  get untouched(): boolean {
    return this.limit === this.most;
  }

  /** A request was answered while `inFlight` were under way. A limit that nobody comes near is not worth raising. */
  served(inFlight: number): void {
    if (inFlight * 2 >= this.limit) this.limit = Math.min(this.most, this.limit + STEP);
  }

  /** The host complained about a request that began at `startedMs`; what it then saw, an earlier cut may have mended. */
  overloaded(inFlight: number, startedMs: number, nowMs: number): void {
    if (startedMs <= this.cutAtMs) return;
    this.cutAtMs = nowMs;
    this.limit = Math.max(Math.min(LEAST, this.most), Math.min(this.limit, inFlight) * CUT);
  }
}

/** A round of answers, as many as the limit, raises it by a tenth. */
const STEP = 0.1;
const CUT = 0.7;
/** A host that complains at so few is not overloaded by number: its quota is used up, and routing/health rests it. */
const LEAST = 4;
