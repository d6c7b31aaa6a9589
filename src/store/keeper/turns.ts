/**
 * Lets those who want the same thing have it one after another, first come first served. Nobody who holds a turn asks
 * for another, so nobody waits for ever.
 */
export class ChangeTurns {
  /** The last of each line; bounded by those who wait. */
  private readonly lines = new Map<string, Line>();

  has(what: string): boolean {
    return this.lines.has(what);
  }

  /** Resolves with what ends the turn, once it has come; null where too many wait already. */
  async take(what: string): Promise<(() => void) | null> {
    const line = this.lines.get(what) ?? { length: 0, last: Promise.resolve() };
    if (line.length >= MAX_WAITING) return null;
    const before = line.last;
    const turn = Promise.withResolvers<void>();
    line.last = turn.promise;
    line.length += 1;
    this.lines.set(what, line);
    await before;
    return () => {
      line.length -= 1;
      if (line.length === 0) this.lines.delete(what);
      turn.resolve();
    };
  }
}

interface Line {
  length: number;
  last: Promise<void>;
}

/** A turn takes a sync of the disk, so whoever comes later would wait for seconds. */
const MAX_WAITING = 500;
