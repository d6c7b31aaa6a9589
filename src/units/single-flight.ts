/** Work by key: what is under way for a key is shared by all who ask for it, and not started again meanwhile. */
export class SingleFlight<Key, Result> {
  /** Bounded by those who wait. */
  private readonly underWay = new Map<Key, Promise<Result>>();

  do(key: Key, work: () => Promise<Result>): Promise<Result> {
    return this.underWay.getOrInsertComputed(key, () => work().finally(() => this.underWay.delete(key)));
  }
}
