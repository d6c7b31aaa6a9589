import type { Clock } from "../units/clock.ts";

/**
 * Requests that wait for something scarce: a bounded number, each for a bounded time. Keys take turns, so
 * that a key with a thousand requests in line does not keep the others waiting. When the line is full, the
 * newest request of the key with the most makes room for a key with fewer.
 */
export class FairLine<Place> {
  waiting = 0;
  /** By key, in the order in which the keys have their next turn. */
  private readonly queues = new Map<string, Waiter<Place>[]>();

  constructor(
    private readonly most: number,
    private readonly clock: Clock,
  ) {}

  get full(): boolean {
    return this.waiting >= this.most;
  }

  /**
   * A place for something of this size within `ms`; null when the line is full, time is up, or the client has
   * left.
   */
  wait(key: string, size: number, ms: number, signal: AbortSignal): Promise<Place | null> {
    if (signal.aborted || !this.admits(key)) return Promise.resolve(null);
    return new Promise((resolve) => {
      const waiter: Waiter<Place> = {
        size,
        end: (place) => {
          timer.cancel();
          signal.removeEventListener("abort", leave);
          resolve(place);
        },
      };
      const leave = () => this.leave(key, waiter);
      const timer = this.clock.after(ms, leave);
      signal.addEventListener("abort", leave);
      this.waiting += 1;
      const queue = this.queues.get(key);
      if (queue === undefined) this.queues.set(key, [waiter]);
      else queue.push(waiter);
    });
  }

  /** Lets requests in by turn until `take` has no place for the next; none is passed over for being large. */
  invite(take: (size: number) => Place | null): void {
    while (this.waiting > 0) {
      const [key, queue] = this.queues.entries().next().value!;
      const place = take(queue[0]!.size);
      if (place === null) return;
      const waiter = queue.shift()!;
      this.queues.delete(key);
      if (queue.length > 0) this.queues.set(key, queue);
      this.waiting -= 1;
      waiter.end(place);
    }
  }

  private admits(key: string): boolean {
    if (!this.full) return true;
    const mine = this.queues.get(key)?.length ?? 0;
    let longest: [string, Waiter<Place>[]] | null = null;
    for (const entry of this.queues) {
      if (longest === null || entry[1].length > longest[1].length) longest = entry;
    }
    if (longest === null || longest[1].length <= mine + 1) return false;
    this.leave(longest[0], longest[1].at(-1)!);
    return true;
  }

  private leave(key: string, waiter: Waiter<Place>): void {
    const queue = this.queues.get(key);
    const at = queue?.indexOf(waiter) ?? -1;
    if (at === -1) return;
    queue!.splice(at, 1);
    if (queue!.length === 0) this.queues.delete(key);
    this.waiting -= 1;
    waiter.end(null);
  }
}

interface Waiter<Place> {
  readonly size: number;
  end(place: Place | null): void;
}
