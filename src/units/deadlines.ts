import type { Clock, Timer } from "./clock.ts";

/**
 * Many deadlines with one timer. Nearly all of them are put off or dropped long before they come: a timer of
 * its own for each would cost a request more than all that is done with it.
 */
export class Deadlines {
  private readonly all = new Set<Deadline>();
  private timer: Timer | null = null;
  private wakesAtMs = Number.POSITIVE_INFINITY;

  constructor(
    private readonly clock: Pick<Clock, "elapsedMs" | "after">,
    /** Gets what `timeIsUp` threw: the others' time is up as well. */
    private readonly onFault: (error: unknown) => void,
  ) {}

  get count(): number {
    return this.all.size;
  }

  /** Also for one whose deadline has come nearer; one that was put off need not be added again. */
  add(one: Deadline): void {
    this.all.add(one);
    this.wakeBy(one.dueMs);
  }

  drop(one: Deadline): void {
    this.all.delete(one);
    if (this.all.size === 0) this.sleep();
  }

  private wakeBy(atMs: number): void {
    if (atMs >= this.wakesAtMs) return;
    this.timer?.cancel();
    this.wakesAtMs = atMs;
    this.timer = this.clock.after(Math.max(0, atMs - this.clock.elapsedMs()), this.check);
  }

  private sleep(): void {
    this.timer?.cancel();
    this.timer = null;
    this.wakesAtMs = Number.POSITIVE_INFINITY;
  }

  private readonly check = (): void => {
    this.sleep();
    const nowMs = this.clock.elapsedMs();
    let next = Number.POSITIVE_INFINITY;
    const over: Deadline[] = [];
    for (const one of this.all) {
      const { dueMs } = one;
      if (dueMs <= nowMs) over.push(one);
      else next = Math.min(next, dueMs);
    }
    if (next < Number.POSITIVE_INFINITY) this.wakeBy(next);
    for (const one of over) {
      // Whatever ended before it may have dropped it.
      if (!this.all.delete(one)) continue;
      try {
        one.timeIsUp();
      } catch (error) {
        this.onFault(error);
      }
    }
  };
}

export interface Deadline {
  /** On the clock's `elapsedMs`. */
  readonly dueMs: number;
  /** Called once; the deadline is then no longer kept. */
  timeIsUp(): void;
}
