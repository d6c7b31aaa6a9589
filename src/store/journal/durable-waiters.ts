/**
 * The callers that wait for journal records to be durable. Records become durable in batches, so all who wait
 * for a batch share one promise.
 */
export class DurableWaiters {
  /** In the order of the records. */
  private readonly waiting: Waiters[] = [];
  private sentThrough = 0;

  /** `batch` is the most records that a batch takes. */
  constructor(private readonly batch = Number.POSITIVE_INFINITY) {}

  get any(): boolean {
    return this.waiting.length > 0;
  }

  /** Resolves with what `answer` says of this record. */
  wait(sequence: number): Promise<boolean> {
    for (const waiters of this.waiting) if (sequence <= waiters.through) return waiters.promise;
    const last = this.waiting.at(-1);
    if (last !== undefined && this.areTogether(last, sequence)) {
      last.through = sequence;
      return last.promise;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiting.push({ from: sequence, through: sequence, promise, resolve });
    return promise;
  }

  /**
   * The last record, of those up to `through`, that a batch may end with. Ending a batch between two records
   * whose waiters share a promise would make what is durable wait for what is not, for as long as more keep
   * coming.
   */
  batchEnd(through: number): number {
    for (const waiters of this.waiting) {
      if (waiters.from <= through && waiters.through > through) return waiters.from - 1;
    }
    return through;
  }

  /** A batch that ends with this record is on its way: later ones belong to the next. */
  sent(through: number): void {
    this.sentThrough = through;
  }

  /** Tells everybody who waits for a record up to `through`. */
  answer(durable: boolean, through: number): void {
    let count = 0;
    for (const waiters of this.waiting) {
      if (waiters.through > through) break;
      waiters.resolve(durable);
      count += 1;
    }
    this.waiting.splice(0, count);
  }

  private areTogether({ from, through }: Waiters, sequence: number): boolean {
    return sequence <= this.sentThrough || (through > this.sentThrough && sequence - from < this.batch);
  }
}

interface Waiters {
  /** The record that the first of them waits for. */
  readonly from: number;
  /** The last record that one of them waits for. */
  through: number;
  readonly promise: Promise<boolean>;
  readonly resolve: (durable: boolean) => void;
}
