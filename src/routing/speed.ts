import type { BalanceId } from "../units/id.ts";
import { Measurement } from "./measurement.ts";

/**
 * A route's recent first-token times and throughputs. Medians are taken over customers and change with every stream.
 * Percentiles are taken over the last `SAMPLES` streams and computed again after a few streams, because each costs a sort.
 */
export class Speed {
  private readonly firstTokens = new Samples();
  private readonly rates = new Samples();
  private readonly latency = new Measurement();
  private readonly throughput = new Measurement();
  private readonly sustained = new Measurement();
  /** First-token times by size of the prompt, because long ones take longer. */
  private readonly sized: (SizedLatency | undefined)[] = [];

  /** A stream's first token came after `ms`. */
  firstToken(ms: number, promptTokens: number, by: BalanceId, nowMs: number): void {
    const size = sizeOf(promptTokens);
    const sized = this.sized[size] ?? { samples: new Samples(), latency: new Measurement() };
    this.sized[size] = sized;
    for (const samples of [this.firstTokens, sized.samples]) samples.add(ms);
    for (const latency of [this.latency, sized.latency]) latency.add(ms, by, nowMs);
  }

  /** A stream brought so many output tokens within `ms` after its first piece. */
  wrote(tokens: number, ms: number, by: BalanceId, nowMs: number): void {
    const tokensPerSecond = (tokens * 1_000) / ms;
    this.rates.add(tokensPerSecond);
    this.throughput.add(tokensPerSecond, by, nowMs);
    if (ms >= MIN_SUSTAINED_MS) this.sustained.add(tokensPerSecond, by, nowMs);
  }

  get firstTokenMs(): number | null {
    return this.latency.median;
  }

  /** This customer's median, for prompts of about this size if there were any. */
  firstTokenMsFor(promptTokens: number, by: BalanceId, nowMs: number): number | null {
    const sized = this.sized[sizeOf(promptTokens)];
    return (sized?.latency ?? this.latency).figureFor(by, nowMs);
  }

  tokensPerSecondFor(by: BalanceId, nowMs: number): number | null {
    return this.throughput.figureFor(by, nowMs);
  }

  get tokensPerSecond(): number | null {
    return this.throughput.median;
  }

  /** The same over streams that wrote for seconds. Bursts say nothing of how fast a host works unseen. */
  get sustainedTokensPerSecond(): number | null {
    return this.sustained.median;
  }

  /**
   * The time within which this share of streams gave their first token; null before `MIN_SAMPLES` of them.
   */
  firstTokenMsWithin(share: number): number | null {
    return this.firstTokens.below(share);
  }

  /** The same among prompts of about this size. */
  firstTokenMsWithinFor(share: number, promptTokens: number): number | null {
    return this.sized[sizeOf(promptTokens)]?.samples.below(share) ?? null;
  }

  /** The throughput that this share of streams reached; null before `MIN_SAMPLES` of them. */
  tokensPerSecondReached(share: number): number | null {
    return this.rates.below(1 - share);
  }
}

export interface StreamEnd {
  readonly kind: "complete" | "host_failed" | "cut" | "client_left" | "out_of_credit";
  /** Output tokens after the first piece. */
  readonly tokens: number;
  /** From the first piece to the last. */
  readonly ms: number;
  /** Whose request it was. */
  readonly by: BalanceId;
}

interface SizedLatency {
  readonly samples: Samples;
  readonly latency: Measurement;
}

const MIN_SUSTAINED_MS = 2_000;

/** Prompts up to so many tokens are of one size; the last size has no end. */
const SIZES = [1_000, 8_000, 64_000];

function sizeOf(promptTokens: number): number {
  let size = 0;
  while (size < SIZES.length && promptTokens > SIZES[size]!) size++;
  return size;
}

const SAMPLES = 128;
/** Fewer say nothing about a distribution. */
const MIN_SAMPLES = 16;
/** Percentiles may be this many streams old. */
const SORT_EVERY = 8;
class Samples {
  private readonly ring = new Float64Array(SAMPLES);
  private readonly sorted = new Float64Array(SAMPLES);
  private count = 0;
  private next = 0;
  private sortedCount = 0;
  private sinceSort = 0;

  add(sample: number): void {
    if (!Number.isFinite(sample) || sample < 0) return;
    this.ring[this.next] = sample;
    this.next = (this.next + 1) % SAMPLES;
    this.count = Math.min(this.count + 1, SAMPLES);
    this.sinceSort += 1;
  }

  /** The sample below which this share of all lies. */
  below(share: number): number | null {
    if (this.count < MIN_SAMPLES) return null;
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
