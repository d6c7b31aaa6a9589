import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";
import { FairQueue } from "./fair-queue.ts";

/**
 * Memory for large request bodies, taken before a body is read and released once its answer has started. Bodies
 * for which there is no room wait unread in their clients' sockets, and what Bun reads of them all the same takes at most
 * as much memory again. Bodies of senders who could not pay for them
 * have a quarter of it at most, and wait behind the others: senders who pay find room, however many others send.
 */
export class ByteBudget {
  taken = 0;
  takenUnpaid = 0;
  private readonly queue: FairQueue<Release>;

  constructor(
    private most: number,
    clock: Clock,
  ) {
    this.queue = new FairQueue(MAX_WAITING, clock, 2);
  }

  get waiting(): number {
    return this.queue.waiting;
  }

  /** Somebody waits, or soon will. */
  get scarce(): boolean {
    return this.waiting > 0 || this.taken > this.most / 2;
  }

  /** The same for those who could not pay. */
  get scarceUnpaid(): boolean {
    return this.waiting > 0 || this.takenUnpaid > this.mostUnpaid / 2;
  }

  /** After a reload; never below a single body. */
  resize(most: number): void {
    this.most = most;
    this.invite();
  }

  /** Room for so many bytes within `ms`; null when the queue is full, time is up, or the client has left. */
  take(
    { turn, pays }: Sender,
    bytes: number,
    ms: number,
    signal: AbortSignal,
  ): Release | Promise<Release | null> {
    const rank = pays ? PAID : UNPAID;
    return (
      this.takeAtRank(bytes, rank) ??
      this.queue.wait({ turn, size: bytes, rank, weight: this.weightOf(bytes) }, ms, signal)
    );
  }

  /** The same without waiting; null when there is no room. */
  takeNow(bytes: number): Release | null {
    return this.takeAtRank(bytes, PAID);
  }

  private takeAtRank(bytes: number, rank: number): Release | null {
    return this.queue.isFree(rank) ? this.occupy(bytes, rank) : null;
  }

  private occupy(bytes: number, rank: number): Release | null {
    // NaN would make `taken` NaN, and no bound would hold any more.
    assert(bytes >= 0, "room for bytes without a number");
    // A body larger than the whole budget gets the budget to itself, and so with the part of it.
    if (this.taken > 0 && this.taken + bytes > this.most) return null;
    const unpaid = rank === UNPAID ? bytes : 0;
    if (unpaid > 0 && this.takenUnpaid > 0 && this.takenUnpaid + unpaid > this.mostUnpaid) return null;
    this.taken += bytes;
    this.takenUnpaid += unpaid;
    let held = bytes;
    const keepOnly = (keptBytes: number) => {
      if (keptBytes >= held) return;
      this.taken -= held - keptBytes;
      if (unpaid > 0) this.takenUnpaid -= held - keptBytes;
      held = keptBytes;
      this.invite();
    };
    return Object.assign(() => keepOnly(0), { keepOnly });
  }

  private get mostUnpaid(): number {
    return this.most / UNPAID_PART;
  }

  /** In the queue: by the memory that it may take while it waits. */
  private weightOf(bytes: number): number {
    const unit = Math.max(this.most, MIN_WAITING_BYTES) / MAX_WAITING;
    return Math.max(1, Math.ceil(Math.min(bytes, READ_AHEAD_BYTES) / unit));
  }

  private invite(): void {
    this.queue.invite((size, rank) => this.occupy(size, rank));
  }
}

/** Whose body it is. */
export interface Sender {
  /** All that have the same take turns with the others as one. */
  readonly turn: string;
  /** Could pay for a body of that size. */
  readonly pays: boolean;
}

/** A second call does nothing. */
export interface Release {
  (): void;
  /** Gives back what is above so many bytes. */
  keepOnly(bytes: number): void;
}

const PAID = 0;
const UNPAID = 1;
const UNPAID_PART = 4;
const MAX_WAITING = 1_000;
/** Bun reads up to so much of a body that nobody asks for yet (measured). */
const READ_AHEAD_BYTES = 1_500_000;
const MIN_WAITING_BYTES = 16_777_216;
