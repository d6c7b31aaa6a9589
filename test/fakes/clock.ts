import type { Clock, EpochMs, Timer } from "../../src/units/clock.ts";

/**
 * A clock that stands still until it is moved. Timers fire in the order of their times, those set meanwhile
 * included.
 */
export class ManualClock implements Clock {
  #nowMs: number;
  #elapsedMs = 0;
  #timers: { atMs: number; fire: () => void }[] = [];

  constructor(startsAt = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startsAt;
  }

  now(): EpochMs {
    return this.#nowMs as EpochMs;
  }

  elapsedMs(): number {
    return this.#elapsedMs;
  }

  after(ms: number, fire: () => void): Timer {
    const timer = { atMs: this.#elapsedMs + ms, fire };
    this.#timers.push(timer);
    return { cancel: () => void this.#remove(timer) };
  }

  /** Timers that were neither cancelled nor have fired. */
  get pending(): number {
    return this.#timers.length;
  }

  advance(ms: number): void {
    const untilMs = this.#elapsedMs + ms;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#remove(due);
      this.#moveTo(Math.max(this.#elapsedMs, due.atMs));
      due.fire();
    }
    this.#moveTo(untilMs);
  }

  #moveTo(elapsedMs: number): void {
    this.#nowMs += elapsedMs - this.#elapsedMs;
    this.#elapsedMs = elapsedMs;
  }

  #remove(timer: { atMs: number; fire: () => void }): void {
    this.#timers = this.#timers.filter((other) => other !== timer);
  }
}
