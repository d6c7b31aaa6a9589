/**
 * Work by key, one at a time: what is requested meanwhile is merged, and is the next work of that key. So a crowd that
 * changes the same thing comes to two changes, and not to one each.
 */
export class MergingFlight<Key, Item, Result> {
  /** Bounded by those who wait. */
  private readonly flights = new Map<Key, Flight<Item, Result>>();

  constructor(private readonly merge: (one: Item, other: Item) => Item) {}

  do(key: Key, item: Item, work: (item: Item) => Promise<Result>): Promise<Result> {
    const flight = this.flights.get(key);
    if (flight === undefined) return this.start(key, item, work);
    if (flight.next === null) flight.next = { item, work, ...Promise.withResolvers<Result>() };
    else flight.next.item = this.merge(flight.next.item, item);
    return flight.next.promise;
  }

  private start(key: Key, item: Item, work: (item: Item) => Promise<Result>): Promise<Result> {
    const flight: Flight<Item, Result> = { next: null };
    this.flights.set(key, flight);
    return work(item).finally(() => {
      const { next } = flight;
      if (next === null) this.flights.delete(key);
      else this.start(key, next.item, next.work).then(next.resolve, next.reject);
    });
  }
}

interface Flight<Item, Result> {
  next: NextFlight<Item, Result> | null;
}

interface NextFlight<Item, Result> extends PromiseWithResolvers<Result> {
  item: Item;
  readonly work: (item: Item) => Promise<Result>;
}
