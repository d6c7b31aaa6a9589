/** A seeded generator (mulberry32): the same seed replays the same run. */
export class Random {
  constructor(private state: number) {}

  /** In [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** An integer in [0, below). */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  /** Waiting time for what comes at random, so long in the mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  /** Normally distributed, mean 0, deviation 1 (Box and Muller). */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /** As units/random wants it. */
  readonly bytes = (into: Uint8Array): Uint8Array => {
    for (let index = 0; index < into.length; index++) into[index] = this.below(256);
    return into;
  };
}
