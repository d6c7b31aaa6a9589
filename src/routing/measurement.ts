import type { BalanceId } from "../units/id.ts";

/**
 * A measurement of a route, such as its time to first token: the median of the last few customers' values. Each customer has
 * one vote, however many requests they send, because prompts and slow reading change what is measured: to make a host look
 * slow or fast, one would have to pay for most of the votes. A vote is a moving average in which older samples count less,
 * and votes that are old compared with a new one are dropped, so that a change of the host shows soon.
 */
export class Measurement {
  /** Null before the first sample. */
  median: number | null = null;
  /** One for each balance. */
  private readonly votes: Vote[] = [];

  /** This customer's own value within the last minute; otherwise the median. */
  figureFor(by: BalanceId, nowMs: number): number | null {
    const own = this.votes.find((vote) => vote.by === by);
    return own !== undefined && nowMs - own.atMs <= OWN_MS ? own.value : this.median;
  }

  add(sample: number, by: BalanceId, nowMs: number): void {
    if (!Number.isFinite(sample) || sample < 0) return;
    this.dropOld(nowMs);
    const vote = this.votes.find((one) => one.by === by);
    if (vote === undefined) {
      if (this.votes.length === MAX_VOTES) this.votes.splice(oldestOf(this.votes), 1);
      this.votes.push({ by, value: sample, atMs: nowMs });
    } else {
      const weight = Math.max(MIN_WEIGHT, 1 - 0.5 ** ((nowMs - vote.atMs) / HALF_LIFE_MS));
      vote.value += weight * (sample - vote.value);
      vote.atMs = nowMs;
    }
    const values = this.votes.map(({ value }) => value).sort((a, b) => a - b);
    const middle = values.length >> 1;
    this.median = values.length % 2 === 1 ? values[middle]! : (values[middle - 1]! + values[middle]!) / 2;
  }

  private dropOld(nowMs: number): void {
    const { votes } = this;
    for (let at = votes.length - 1; at >= 0; at--) if (nowMs - votes[at]!.atMs > VOTE_MS) votes.splice(at, 1);
  }
}

interface Vote {
  readonly by: BalanceId;
  value: number;
  atMs: number;
}

function oldestOf(votes: readonly Vote[]): number {
  let oldest = 0;
  for (let at = 1; at < votes.length; at++) if (votes[at]!.atMs < votes[oldest]!.atMs) oldest = at;
  return oldest;
}

/** Few, because most of them have to explore a rarely used route again before its median changes. */
const MAX_VOTES = 9;
const VOTE_MS = 5 * 60_000;
const OWN_MS = 60_000;
/** The least share of a vote that each new sample makes up. */
const MIN_WEIGHT = 0.1;
const HALF_LIFE_MS = 15_000;
