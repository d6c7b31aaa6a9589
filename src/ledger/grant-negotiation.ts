import type { NanoUsd } from "../units/usd.ts";
import type { Grant } from "./authority.ts";
import type { CounterId } from "./counter.ts";

/** The state of the exchange with the Authority about one counter. */
export class GrantNegotiation {
  lastStated: number;
  /** Number of the latest statement whose answer was applied. */
  lastAnswered: number;
  /** Number of the latest statement that requested less than before. */
  lastLowered = 0;
  /** The latest answer that was applied. */
  answer: Grant | null = null;
  needed = 0;
  requested = 0;
  /** What the latest statement gave as used. */
  statedUse = 0;
  statedMs = 0;
  /** The latest inquiry that requests wait for. */
  awaited = 0;
  /** The latest inquiry that this ledger received, and the one that its latest statement answered. */
  inquiry = 0;
  statedInquiry = 0;
  /** What was spent of a counter that is being retired; null otherwise. */
  retiring: NanoUsd | null = null;
  scarceUntilMs = Number.NEGATIVE_INFINITY;
  usedAtLastCheck = -1;
  /** What waiting requests need together. */
  waitingAmount = 0;
  /** Called with the next answer; bounded by the requests in flight. */
  readonly waiting = new Set<(answered: boolean) => void>();

  constructor(
    public counter: Grantable,
    public limit: NanoUsd,
    statedBefore: number,
  ) {
    this.lastStated = this.lastAnswered = statedBefore;
  }

  /** The latest statement was answered. */
  get isAnswered(): boolean {
    return this.lastStated === this.lastAnswered;
  }

  /** More is in use than granted, because credit was taken back: the ledger waits for requests to release it. */
  get isOver(): boolean {
    return this.counter.used() > this.counter.granted;
  }

  /** What waits for an answer goes on. */
  notify(): void {
    for (const go of [...this.waiting]) go(true);
  }
}

/** What ledgers can share by grants: `Counter` and `RateShare`. */
export interface Grantable {
  readonly id: CounterId;
  granted: NanoUsd;
  /** How much of the limit other ledgers have, in the latest answer. */
  elsewhere: NanoUsd;
  /** The part of it that may come back. */
  openElsewhere: NanoUsd;
  /** What is spent or held, and so must stay granted. */
  used(): NanoUsd;
  /** False if each request gets its own grant, so that other ledgers' grants equal their use. */
  readonly isPrefetched: boolean;
  /** At least `1 / aheadShare` of what is free is requested ahead of need. */
  readonly aheadShare: number;
}
