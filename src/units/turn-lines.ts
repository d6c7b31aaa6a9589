/** Locks by name, first come first served. A holder never takes a second lock, so there are no deadlocks. */
export class TurnLines {
  /** The last of each line; bounded by those who wait. */
  private readonly lines = new Map<string, TurnLine>();

  constructor(private readonly maxWaiting: number) {}

  /** Lines that somebody stands in. */
  get size(): number {
    return this.lines.size;
  }

  has(what: string): boolean {
    return this.lines.has(what);
  }

  /** Resolves with what ends the turn, once it has come; null where too many wait already. */
  async take(what: string): Promise<(() => void) | null> {
    const line = this.lines.getOrInsertComputed(what, () => ({ length: 0, last: Promise.resolve() }));
    if (line.length >= this.maxWaiting) return null;
    const before = line.last;
    const turn = Promise.withResolvers<void>();
    line.last = turn.promise;
    line.length += 1;
    await before;
    return () => {
      line.length -= 1;
      if (line.length === 0) this.lines.delete(what);
      turn.resolve();
    };
  }
}

interface TurnLine {
  length: number;
  last: Promise<void>;
}
