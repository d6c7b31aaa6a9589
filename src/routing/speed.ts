/**
 * How fast a route was lately: first-token times and throughputs of its last streams. Averages move with every stream;
 * percentiles are of the last `SAMPLES` and are worked out again after a few streams, because each costs a sort.
 */
export class Speed {
  private readonly firstTokens = new Samples();
  private readonly rates = new Samples();

  /** A stream's first token came after `ms`, or had not come by then. */
  firstToken(ms: number): void {
    this.firstTokens.add(ms);
  }

  /** A whole stream gave this many output tokens a second after its first. */
  rate(tokensPerSecond: number): void {
    this.rates.add(tokensPerSecond);
  }

  get firstTokenMs(): number | null {
    return this.firstTokens.average;
  }

  get tokensPerSecond(): number | null {
    return this.rates.average;
  }

  /** The time within which this share of streams gave their first token; null before `LEAST_SAMPLES` of them. */
  firstTokenMsWithin(share: number): number | null {
    return this.firstTokens.below(share);
  }

  /** The throughput that this share of streams reached; null before `LEAST_SAMPLES` of them. */
  tokensPerSecondReached(share: number): number | null {
    return this.rates.below(1 - share);
  }
}

/** How a relayed stream ended, as routing sees it. */
export interface StreamEnd {
  readonly kind: "complete" | "host_failed" | "client_left" | "out_of_credit";
  /** Output tokens. */
  readonly tokens: number;
  /** From the first token to the last. */
  readonly ms: number;
}

const SAMPLES = 128;
/** Fewer say nothing about a distribution. */
const LEAST_SAMPLES = 16;
/** Percentiles may be this many streams old. */
const SORT_EVERY = 8;
/** Of the average, what each new sample makes up. */
const WEIGHT = 0.1;

class Samples {
  average: number | null = null;
  private readonly ring = new Float64Array(SAMPLES);
  private readonly sorted = new Float64Array(SAMPLES);
  private count = 0;
  private next = 0;
  private sortedCount = 0;
  private sinceSort = 0;

  add(sample: number): void {
    if (!Number.isFinite(sample) || sample < 0) return;
    this.average = this.average === null ? sample : this.average + WEIGHT * (sample - this.average);
    this.ring[this.next] = sample;
    this.next = (this.next + 1) % SAMPLES;
    this.count = Math.min(this.count + 1, SAMPLES);
    this.sinceSort += 1;
  }

  /** The sample below which this share of all lies. */
  below(share: number): number | null {
    if (this.count < LEAST_SAMPLES) return null;
    if (this.sortedCount === 0 || this.sinceSort >= SORT_EVERY) this.sort();
    const at = Math.ceil(share * this.sortedCount) - 1;
    return this.sorted[Math.min(Math.max(at, 0), this.sortedCount - 1)]!;
  }

  private sort(): void {
    this.sorted.set(this.ring);
    this.sorted.subarray(0, this.count).sort();
    this.sortedCount = this.count;
    this.sinceSort = 0;
  }
}
