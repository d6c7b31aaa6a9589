/**
 * Who has the places of one host, where several workers share its limit. A place is with one worker or in the book, and
 * what is told are differences over lines that keep their order: so the workers together never have more than there are,
 * whatever is still on its way. A worker that runs short is given what is free, in turn with others that do; where
 * nothing is, those that have more are asked for what they do not use, and for what they use once they are done with it.
 */
export class PlaceBook {
  private readonly desks = new Map<number, Desk>();

  constructor(
    private readonly most: number,
    private readonly workers: number,
    private readonly teller: Teller,
  ) {}

  /** The worker lacks so many more. */
  asked(worker: number, count: number): void {
    this.desk(worker).lacks += count;
    this.settle(worker);
  }

  returned(worker: number, count: number): void {
    const desk = this.desk(worker);
    desk.has -= count;
    desk.owes = Math.max(0, desk.owes - count);
    this.settle(null);
  }

  /** The worker's process has ended, and with it all that it was doing at the host. */
  ended(worker: number): void {
    if (this.desks.delete(worker)) this.settle(null);
  }

  /** Nobody has anything or wants it. */
  get idle(): boolean {
    return [...this.desks.values()].every(({ has, lacks }) => has === 0 && lacks === 0);
  }

  private get free(): number {
    let free = this.most;
    for (const { has } of this.desks.values()) free -= has;
    return free;
  }

  private settle(asker: number | null): void {
    const given = new Map<number, number>();
    let free = this.free;
    const give = (worker: number, desk: Desk, count: number) => {
      desk.has += count;
      free -= count;
      given.set(worker, (given.get(worker) ?? 0) + count);
    };
    for (const [worker, desk] of this.desks) {
      if (free === 0) break;
      if (desk.lacks === 0) continue;
      desk.lacks -= 1;
      give(worker, desk, 1);
      // To the end of the turn, where this loop comes by again.
      this.desks.delete(worker);
      this.desks.set(worker, desk);
    }
    // Some to spare, so that not every request of a rising load has to ask.
    const spare = Math.floor(free / (SPARE_PART * this.workers));
    if (asker !== null && spare > 0) give(asker, this.desk(asker), spare);
    for (const [worker, count] of given) this.teller.give(worker, count);
    this.recall();
  }

  /** From each as much as all others lack: nobody knows here which of its places it uses. */
  private recall(): void {
    for (const [worker, desk] of this.desks) {
      const count = this.due(worker, desk) - desk.owes;
      if (count <= 0) continue;
      desk.owes += count;
      this.teller.recall(worker, count);
    }
  }

  /** Of workers that all lack some, the one with more gives to the one with less, and an odd place goes round. */
  private due(worker: number, { has, lacks }: Desk): number {
    let wanted = 0;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [other, desk] of this.desks) {
      if (other === worker || desk.lacks === 0) continue;
      wanted += desk.lacks;
      fewest = Math.min(fewest, desk.has);
    }
    return Math.min(wanted, lacks === 0 ? has : Math.ceil(Math.max(0, has - fewest) / 2));
  }

  private desk(worker: number): Desk {
    let desk = this.desks.get(worker);
    if (desk === undefined) {
      desk = { has: 0, lacks: 0, owes: 0 };
      this.desks.set(worker, desk);
    }
    return desk;
  }
}

export interface Teller {
  give(worker: number, count: number): void;
  /** Asks for so many places back, as soon as they are not used. */
  recall(worker: number, count: number): void;
}

interface Desk {
  /** Places, those included that are on the way to it or back. */
  has: number;
  lacks: number;
  /** Asked back, and not returned yet. */
  owes: number;
}

/** Of what nobody has, each worker may have half of its part to spare. */
const SPARE_PART = 2;
