import type { Clock } from "./clock.ts";

/**
 * Requests that wait for something scarce: a bounded number, each for a bounded time. Requests that share a turn
 * (a balance, a network) take turns with the others, so that a balance with a thousand requests in the queue does
 * not keep the others waiting; keys that share a turn take turns within it. A lower rank goes first: nobody of
 * rank 1 gets a slot while one of rank 0 waits. When the queue is full, the newest requests of those with the most
 * weight, of the highest rank, make room for one of a lower rank or of those with less; within a turn, so do those
 * of the key with the most requests. A request weighs 1, or more if it costs memory while it waits.
 */
export class FairQueue<Slot> {
  waiting = 0;
  private weight = 0;
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
    return this.weight >= this.most;
  }

  /** A slot within `ms`; null when the queue is full, time is up, or the client, where there is one, has left. */
  wait(request: Queued, ms: number, signal: AbortSignal | null): Promise<Slot | null> {
    const leaving = signal?.aborted ? null : this.leavingFor(request);
    if (leaving === null) return Promise.resolve(null);
    const { turn, key = "", size, rank = 0, weight = 1 } = request;
    for (const leave of leaving) leave();
    const round = this.roundOf(request);
    const queue = this.ranks[rank]!.getOrInsertComputed(turn, () => []);
    return new Promise((resolve) => {
      const waiter: Waiter<Slot> = {
        key,
        round,
        size,
        weight,
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
      this.weight += weight;
      queue.splice(queue.findLastIndex((one) => one.round <= round) + 1, 0, waiter);
    });
  }

  /** Whether nobody would make room for it. */
  refuses(request: Queued): boolean {
    return this.leavingFor(request) === null;
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
      this.ends(waiter, slot);
    }
  }

  /** What makes room for a request: nothing where there is some; null where it gets none. */
  private leavingFor(request: Queued): readonly (() => void)[] | null {
    const { turn, rank = 0, weight = 1 } = request;
    let excess = this.weight + weight - this.most;
    if (excess <= 0) return NOBODY;
    const mine = sumOf(this.ranks[rank]!.get(turn) ?? []) + weight;
    const leaving: (() => void)[] = [];
    for (let highest = this.ranks.length - 1; highest >= rank && excess > 0; highest--) {
      const turns = Array.from(this.ranks[highest]!, ([name, queue]) => ({
        name,
        queue,
        remaining: queue.length,
        weight: sumOf(queue),
      }));
      while (excess > 0 && turns.length > 0) {
        const heaviest = turns.reduce((most, each) => (each.weight > most.weight ? each : most));
        if (heaviest.weight === 0) break;
        const isOwn = highest === rank && heaviest.weight <= mine;
        const from = isOwn ? turns.find(({ name }) => name === turn) : heaviest;
        const newest = from?.queue[from.remaining - 1];
        if (newest === undefined || (isOwn && newest.round <= this.roundOf(request))) return null;
        from!.remaining -= 1;
        from!.weight -= newest.weight;
        excess -= newest.weight;
        leaving.push(() => this.leave(from!.name, highest, newest));
      }
    }
    // Where it would not fit all the same, nobody has to go.
    return excess > 0 ? null : leaving;
  }

  private roundOf({ turn, key = "", rank = 0 }: Queued): number {
    const queue = this.ranks[rank]!.get(turn);
    if (queue === undefined) return 0;
    const own = queue.findLast((one) => one.key === key);
    return own === undefined ? queue[0]!.round : own.round + 1;
  }

  private leave(turn: string, rank: number, waiter: Waiter<Slot>): void {
    const queues = this.ranks[rank]!;
    const queue = queues.get(turn);
    const at = queue?.indexOf(waiter) ?? -1;
    if (at === -1) return;
    queue!.splice(at, 1);
    if (queue!.length === 0) queues.delete(turn);
    this.ends(waiter, null);
  }

  private ends(waiter: Waiter<Slot>, slot: Slot | null): void {
    this.waiting -= 1;
    this.weight -= waiter.weight;
    waiter.end(slot);
  }
}

/** A request as it waits. */
export interface Queued {
  readonly turn: string;
  /** Takes turns with the other keys of its turn. */
  readonly key?: string;
  readonly size: number;
  readonly rank?: number;
  readonly weight?: number;
}

interface Waiter<Slot> {
  readonly key: string;
  /** Goes after all of its turn with a smaller one: the number of its key's requests before it, since the first that waits. */
  readonly round: number;
  readonly size: number;
  readonly weight: number;
  end(slot: Slot | null): void;
}

const NOBODY: readonly (() => void)[] = [];

const sumOf = (waiters: readonly Waiter<unknown>[]): number =>
  waiters.reduce((sum, { weight }) => sum + weight, 0);
