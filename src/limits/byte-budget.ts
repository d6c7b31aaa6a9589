import { assert } from "../units/assert.ts";
import type { Clock } from "../units/clock.ts";
import { FairLine } from "./fair-line.ts";

/**
 * Memory for large request bodies, taken before a body is read and released once its answer has begun. Bodies
 * for which there is no room wait unread in their clients' sockets.
 */
export class ByteBudget {
  taken = 0;
  private readonly line: FairLine<Release>;

  constructor(
    private most: number,
    clock: Clock,
  ) {
    this.line = new FairLine(MAX_WAITING, clock);
  }

  get waiting(): number {
    return this.line.waiting;
  }

  /** Somebody waits, or soon will. */
  get scarce(): boolean {
    return this.waiting > 0 || this.taken > this.most / 2;
  }

  /** After a reload; never below a single body. */
  resize(most: number): void {
    this.most = most;
    this.line.invite((size) => this.occupy(size));
  }

  /** Room for so many bytes within `ms`; null when the line is full, time is up, or the client has left. */
  take(key: string, bytes: number, ms: number, signal: AbortSignal): Release | Promise<Release | null> {
    return this.takeNow(bytes) ?? this.line.wait(key, bytes, ms, signal);
  }

  /** The same without waiting; null when there is no room. */
  takeNow(bytes: number): Release | null {
    return this.waiting === 0 ? this.occupy(bytes) : null;
  }

  private occupy(bytes: number): Release | null {
    // NaN would make `taken` NaN, and no bound would hold any more.
    assert(bytes >= 0, "room for bytes without a number");
    // A body larger than the whole budget gets the budget to itself.
    if (this.taken > 0 && this.taken + bytes > this.most) return null;
    this.taken += bytes;
    let held = bytes;
    const keepOnly = (wanted: number) => {
      if (wanted >= held) return;
      this.taken -= held - wanted;
      held = wanted;
      this.line.invite((size) => this.occupy(size));
    };
    return Object.assign(() => keepOnly(0), { keepOnly });
  }
}

/** A second call does nothing. */
export interface Release {
  (): void;
  /** Gives back what is above so many bytes. */
  keepOnly(bytes: number): void;
}

const MAX_WAITING = 1_000;
