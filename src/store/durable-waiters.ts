/** Who waits for records of a journal to be durable, in the order of the records. */
export class DurableWaiters {
  private readonly waiting: Waiter[] = [];

  /** Resolves with what `answer` says of this record. */
  wait(sequence: number): Promise<boolean> {
    const last = this.waiting.at(-1);
    if (last !== undefined && last.sequence >= sequence) return last.promise;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiting.push({ sequence, promise, resolve });
    return promise;
  }

  /** Tells everybody who waits for a record up to `through`. */
  answer(durable: boolean, through: number): void {
    let count = 0;
    for (const waiter of this.waiting) {
      if (waiter.sequence > through) break;
      waiter.resolve(durable);
      count += 1;
    }
    this.waiting.splice(0, count);
  }
}

interface Waiter {
  readonly sequence: number;
  readonly promise: Promise<boolean>;
  readonly resolve: (durable: boolean) => void;
}
