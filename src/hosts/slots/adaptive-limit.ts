import type { Clock } from "../../units/clock.ts";

/**
 * How many requests a host can take at once, learnt from its complaints. The limit starts at the operator's, because a host
 * that has not complained is not overloaded. A complaint (429, 503, no answer in time) cuts it to a part of what was in
 * flight; then it doubles with time. Growing by one per round trip, as TCP does, would take hours when a round trip is an
 * answer of ten seconds. Overshooting costs little: one refused attempt, which moves on to another host.
 *
 * First-token times are no signal: the length of the prompt alone makes them differ by a factor of a hundred.
 */
export class AdaptiveLimit {
  private cutTo: number;
  private cutAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly most: number) {
    this.cutTo = most;
  }

  /** The limit now, in whole requests. Reads the clock only after a complaint. */
  now(clock: Pick<Clock, "elapsedMs">): number {
    return this.cutTo === this.most ? this.most : this.at(clock.elapsedMs());
  }

  at(nowMs: number): number {
    const grown = this.cutTo * 2 ** ((nowMs - this.cutAtMs) / DOUBLING_MS);
    return Math.min(this.most, Math.floor(grown));
  }

  /** The host complained about a request that began at `startedMs`; ignored if the limit was cut since then. */
  overloaded(inFlight: number, startedMs: number, nowMs: number): void {
    if (startedMs <= this.cutAtMs) return;
    this.cutTo = Math.min(this.most, Math.max(LEAST, Math.min(this.at(nowMs), inFlight) * CUT));
    this.cutAtMs = nowMs;
  }
}

const CUT = 0.7;
const DOUBLING_MS = 10_000;
/** A host that complains at this few has used up a quota, and routing/health rests it. */
const LEAST = 16;
