import type { Clock } from "./clock.ts";

/**
 * Requests that wait for something scarce: a bounded number, each for a bounded time. Requests that share a turn
 * (a key, a balance, a network) take turns with the others, so that a key with a thousand requests in the queue
 * does not keep the others waiting. A lower rank goes first: nobody of rank 1 gets a slot while one of rank 0
 * waits. When the queue is full, the newest request of those with the most, of the highest rank, makes room for
 * one of a lower rank or of those with fewer.
 */
export class FairQueue<Slot> {
  waiting = 0;
  /** By rank and turn, in the order in which each has its next turn. */
  private readonly ranks: readonly Map<string, Waiter<Slot>[]>[];

  constructor(
    private readonly most: number,
    private readonly clock: Pick<Clock, "after">,
    ranks = 1,
  ) {
    this.ranks = Array.from({ length: ranks }, () => new Map());
  }

  get full(): boolean {
    return this.waiting >= this.most;
  }

  /**
   * A slot for something of this size within `ms`; null when the queue is full, time is up, or the client, where
   * there is one, has left.
   */
  wait(turn: string, size: number, ms: number, signal: AbortSignal | null, rank = 0): Promise<Slot | null> {
    if (signal?.aborted || !this.admits(turn, rank)) return Promise.resolve(null);
    return new Promise((resolve) => {
      const waiter: Waiter<Slot> = {
        size,
        end: (slot) => {
          timer.cancel();
          signal?.removeEventListener("abort", leave);
          resolve(slot);
        },
      };
      const leave = () => this.leave(turn, rank, waiter);
      const timer = this.clock.after(ms, leave);
      signal?.addEventListener("abort", leave);
      this.waiting += 1;
      const queues = this.ranks[rank]!;
      const queue = queues.get(turn);
      if (queue === undefined) queues.set(turn, [waiter]);
      else queue.push(waiter);
    });
  }

  /** Whether nobody waits who goes before or next to this rank. */
  isFree(rank: number): boolean {
    for (let n = 0; n <= rank; n++) if (this.ranks[n]!.size > 0) return false;
    return true;
  }

  /** Lets requests in by turn until `take` has no slot for the next; none is passed over for being large. */
  invite(take: (size: number, rank: number) => Slot | null): void {
    while (this.waiting > 0) {
      const rank = this.ranks.findIndex(({ size }) => size > 0);
      const queues = this.ranks[rank]!;
      const [turn, queue] = queues.entries().next().value!;
      const slot = take(queue[0]!.size, rank);
      if (slot === null) return;
      const waiter = queue.shift()!;
      queues.delete(turn);
      if (queue.length > 0) queues.set(turn, queue);
      this.waiting -= 1;
      waiter.end(slot);
    }
  }

  private admits(turn: string, rank: number): boolean {
    if (!this.full) return true;
    const highest = this.ranks.findLastIndex(({ size }) => size > 0);
    if (highest < rank) return false;
    let longest: [string, Waiter<Slot>[]] | null = null;
    for (const entry of this.ranks[highest]!) {
      if (longest === null || entry[1].length > longest[1].length) longest = entry;
    }
    if (longest === null) return false;
    const mine = this.ranks[rank]!.get(turn)?.length ?? 0;
    if (highest === rank && longest[1].length <= mine + 1) return false;
    this.leave(longest[0], highest, longest[1].at(-1)!);
    return true;
  }

  private leave(turn: string, rank: number, waiter: Waiter<Slot>): void {
    const queues = this.ranks[rank]!;
    const queue = queues.get(turn);
    const at = queue?.indexOf(waiter) ?? -1;
    if (at === -1) return;
    queue!.splice(at, 1);
    if (queue!.length === 0) queues.delete(turn);
    this.waiting -= 1;
    waiter.end(null);
  }
}

interface Waiter<Slot> {
  readonly size: number;
  end(slot: Slot | null): void;
}
