/**
 * The slots of one host, whose limit several workers share. Each slot is with one worker or in the pool. Messages carry
 * differences and arrive in order, so the workers together never have more slots than the limit, whatever is under way.
 * Workers that run short take turns at free slots. If none is free, workers with more return what they do not use, and used
 * slots as soon as their requests end.
 */
export class SlotPool {
  private readonly tallies = new Map<number, WorkerSlots>();

  constructor(
    private readonly most: number,
    private readonly workers: number,
    private readonly teller: SlotPoolMessages,
  ) {}

  /** The worker needs `count` more. */
  requested(worker: number, count: number): void {
    this.tally(worker).lacks += count;
    this.settle(worker);
  }

  returned(worker: number, count: number): void {
    const tally = this.tally(worker);
    tally.has -= count;
    tally.owes = Math.max(0, tally.owes - count);
    this.settle(null);
  }

  /** The worker's process has ended, and its requests at the host with it. */
  ended(worker: number): void {
    if (this.tallies.delete(worker)) this.settle(null);
  }

  get idle(): boolean {
    return [...this.tallies.values()].every(({ has, lacks }) => has === 0 && lacks === 0);
  }

  private get free(): number {
    let free = this.most;
    for (const { has } of this.tallies.values()) free -= has;
    return free;
  }

  private settle(asker: number | null): void {
    const given = new Map<number, number>();
    let free = this.free;
    const give = (worker: number, tally: WorkerSlots, count: number) => {
      tally.has += count;
      free -= count;
      given.set(worker, (given.get(worker) ?? 0) + count);
    };
    for (const [worker, tally] of this.tallies) {
      if (free === 0) break;
      if (tally.lacks === 0) continue;
      tally.lacks -= 1;
      give(worker, tally, 1);
      // Last in turn; the loop comes by here again.
      this.tallies.delete(worker);
      this.tallies.set(worker, tally);
    }
    // A few extra, so that under rising load not every request waits for a message.
    const spare = Math.floor(free / (SPARE_PART * this.workers));
    if (asker !== null && spare > 0) give(asker, this.tally(asker), spare);
    for (const [worker, count] of given) this.teller.give(worker, count);
    this.recall();
  }

  /** Requests from each worker as many as all others lack, because the pool does not know how many it uses. */
  private recall(): void {
    for (const [worker, tally] of this.tallies) {
      const count = this.due(worker, tally) - tally.owes;
      if (count <= 0) continue;
      tally.owes += count;
      this.teller.recall(worker, count);
    }
  }

  /** If all workers lack slots, one with more gives to one with fewer; an odd slot goes round. */
  private due(worker: number, { has, lacks }: WorkerSlots): number {
    let lacking = 0;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [other, tally] of this.tallies) {
      if (other === worker || tally.lacks === 0) continue;
      lacking += tally.lacks;
      fewest = Math.min(fewest, tally.has);
    }
    return Math.min(lacking, lacks === 0 ? has : Math.ceil(Math.max(0, has - fewest) / 2));
  }

  private tally(worker: number): WorkerSlots {
    return this.tallies.getOrInsertComputed(worker, () => ({ has: 0, lacks: 0, owes: 0 }));
  }
}

export interface SlotPoolMessages {
  give(worker: number, count: number): void;
  /** Requests `count` slots back, each as soon as it is free. */
  recall(worker: number, count: number): void;
}

interface WorkerSlots {
  /** Slots, including those on the way to it or back. */
  has: number;
  lacks: number;
  /** Requested back and not yet returned. */
  owes: number;
}

/** A worker gets extra at most this fraction of its even share of what is free: a half. */
const SPARE_PART = 2;
