import type { Clock } from "../units/clock.ts";

/**
 * How many requests a host takes at once, learnt from the host. It begins at the most that the operator allows, because a
 * host that has not complained is not overloaded. A complaint (429, 503, no answer in time) cuts it to a part of what was
 * in flight; then it doubles with time. Growing by one a round trip, as TCP does, would take hours where a round trip is
 * an answer of ten seconds, and overshooting costs little: one refused attempt, which moves on to another host.
 *
 * First-token times are no signal: they differ by a factor of a hundred with the length of the prompt alone.
 */
export class AdaptiveLimit {
  private cutTo: number;
  private cutAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly most: number) {
    this.cutTo = most;
  }

  /** Whole requests at once. The clock is only asked where there was a complaint. */
  now(clock: Pick<Clock, "elapsedMs">): number {
    return this.cutTo === this.most ? this.most : this.at(clock.elapsedMs());
  }

  at(nowMs: number): number {
    const grown = this.cutTo * 2 ** ((nowMs - this.cutAtMs) / DOUBLING_MS);
    return Math.min(this.most, Math.floor(grown));
  }

  /** The host complained about a request that began at `startedMs`; what it then saw, an earlier cut may have mended. */
  overloaded(inFlight: number, startedMs: number, nowMs: number): void {
    if (startedMs <= this.cutAtMs) return;
    this.cutTo = Math.min(this.most, Math.max(LEAST, Math.min(this.at(nowMs), inFlight) * CUT));
    this.cutAtMs = nowMs;
  }
}

const CUT = 0.7;
const DOUBLING_MS = 10_000;
/** A host that complains at so few is not overloaded by number: its quota is used up, and routing/health rests it. */
const LEAST = 16;
