import type { Clock, EpochMs, Timer } from "../../src/units/clock.ts";
import { epochMs } from "../../src/units/clock.ts";

/**
 * Time that passes only when the test says so. Timers fire in order of their time, then of their making. Each life of
 * a process has timers of its own, which end with it; the wall clock may be set forward or back, the
 * monotonic one only runs.
 */
export class VirtualClock {
  private elapsed = 0;
  private wallOffset: number;
  private made = 0;
  private readonly timers: Pending[] = [];

  constructor(start: EpochMs) {
    this.wallOffset = start;
  }

  now(): EpochMs {
    return epochMs(this.wallOffset + Math.floor(this.elapsed));
  }

  elapsedMs(): number {
    return this.elapsed;
  }

  /** Before anything has happened. */
  begin(at: EpochMs): void {
    this.wallOffset = at;
  }

  /** Sets the wall clock forward, or back. */
  set(byMs: number): void {
    this.wallOffset += byMs;
  }

  /** A clock for one life; `end` silences its timers. */
  life(): { clock: Clock; end(): void } {
    const life = { over: false };
    const clock: Clock = {
      now: () => this.now(),
      elapsedMs: () => this.elapsed,
      after: (ms, fire) => this.add(ms, fire, life),
    };
    return {
      clock,
      end() {
        life.over = true;
      },
    };
  }

  /**
   * Fires the next timer, moving time to it, if it is due by `untilMs`; otherwise moves time there and says
   * false.
   */
  step(untilMs: number): boolean {
    for (;;) {
      const next = this.timers[0];
      if (next === undefined || next.at > untilMs) {
        this.elapsed = Math.max(this.elapsed, untilMs);
        return false;
      }
      removeFirst(this.timers);
      if (next.cancelled || next.life.over) continue;
      this.elapsed = Math.max(this.elapsed, next.at);
      next.fire();
      return true;
    }
  }

  private add(ms: number, fire: () => void, life: { over: boolean }): Timer {
    const timer: Pending = {
      at: this.elapsed + Math.max(0, ms),
      made: this.made++,
      fire,
      life,
      cancelled: false,
    };
    insert(this.timers, timer);
    return {
      cancel() {
        timer.cancelled = true;
      },
    };
  }
}

interface Pending {
  readonly at: number;
  readonly made: number;
  readonly fire: () => void;
  readonly life: { over: boolean };
  cancelled: boolean;
}

const before = (a: Pending, b: Pending): boolean => a.at < b.at || (a.at === b.at && a.made < b.made);

/** A binary heap, the earliest timer first. */
function insert(heap: Pending[], timer: Pending): void {
  let index = heap.push(timer) - 1;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    if (!before(timer, heap[parent]!)) break;
    heap[index] = heap[parent]!;
    index = parent;
  }
  heap[index] = timer;
}

function removeFirst(heap: Pending[]): void {
  const last = heap.pop()!;
  if (heap.length === 0) return;
  let index = 0;
  for (;;) {
    const left = 2 * index + 1;
    if (left >= heap.length) break;
    const right = left + 1;
    const child = right < heap.length && before(heap[right]!, heap[left]!) ? right : left;
    if (!before(heap[child]!, last)) break;
    heap[index] = heap[child]!;
    index = child;
  }
  heap[index] = last;
}
