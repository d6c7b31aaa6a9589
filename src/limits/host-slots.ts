import type { Clock } from "../units/clock.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";

/**
 * Places at the hosts. A request takes one for as long as the host works on it; while none is free, a bounded number of
 * requests wait for a bounded time, and each key in turn gets the next, so that one with a thousand requests in line does
 * not keep the others waiting. Whoever gets none is told to come back, and streams in flight go on.
 */
export class HostSlots {
  private readonly hosts = new Map<string, HostLine>();

  constructor(private readonly clock: Clock) {}

  /** A place at once, or null. */
  take(host: Limited): Slot | null {
    return this.line(host).take();
  }

  /** A place within `ms`; null when the line is full, time is up, or the client has left. */
  wait(host: Limited, key: string, ms: number, signal: AbortSignal): Promise<Slot | null> {
    return this.line(host).wait(key, ms, signal);
  }

  /** Neither a place nor room in the line. */
  full({ id }: Limited): boolean {
    return this.hosts.get(id)?.full === true;
  }

  /** For the metrics: every host that has something to tell. */
  *lines(): Generator<{ host: string; inFlight: number; limit: number; waiting: number }> {
    for (const [host, { inFlight, places, waiting }] of this.hosts)
      yield { host, inFlight, limit: places, waiting };
  }

  private line({ id, maxConcurrent = DEFAULT_CONCURRENT }: Limited): HostLine {
    const known = this.hosts.get(id);
    if (known?.most === maxConcurrent) return known;
    // A reload changed the limit: what is in flight gives back its place to the old line.
    const line = new HostLine(maxConcurrent, this.clock);
    this.hosts.set(id, line);
    return line;
  }
}

/** A host, of which only this matters here; `maxConcurrent` is the operator's limit. */
export interface Limited {
  readonly id: string;
  readonly maxConcurrent?: number;
}

/** Streams that one process can carry. */
export const DEFAULT_CONCURRENT = 10_000;

/** A place at a host. */
export interface Slot {
  /** The host said, or showed, that it has too much to do. */
  overloaded(): void;
  /** Once the host is done with the request; a second call does nothing. */
  release(): void;
}

/** Waiting requests of one host. */
export const MAX_WAITING = 1_000;

class HostLine {
  private readonly limit: AdaptiveLimit;
  inFlight = 0;
  waiting = 0;
  /** By key, in the order in which the keys have their next turn. */
  private readonly queues = new Map<string, Waiter[]>();

  constructor(
    readonly most: number,
    private readonly clock: Clock,
  ) {
    this.limit = new AdaptiveLimit(most);
  }

  get full(): boolean {
    return this.waiting >= MAX_WAITING && this.inFlight >= this.places;
  }

  get places(): number {
    return this.limit.at(this.clock.elapsedMs());
  }

  take(): Slot | null {
    // Who waits has come before, and the limit may have grown since.
    if (this.waiting > 0) this.invite();
    return this.waiting === 0 && this.inFlight < this.places ? this.occupy() : null;
  }

  wait(key: string, ms: number, signal: AbortSignal): Promise<Slot | null> {
    const free = this.take();
    if (free !== null || signal.aborted || !this.admits(key)) return Promise.resolve(free);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        end: (slot) => {
          timer.cancel();
          signal.removeEventListener("abort", leave);
          resolve(slot);
        },
      };
      const leave = () => this.leave(key, waiter);
      const timer = this.clock.after(ms, leave);
      signal.addEventListener("abort", leave);
      this.waiting += 1;
      const queue = this.queues.get(key);
      if (queue === undefined) this.queues.set(key, [waiter]);
      else queue.push(waiter);
    });
  }

  private occupy(): Slot {
    this.inFlight += 1;
    const startedMs = this.clock.elapsedMs();
    let open = true;
    return {
      overloaded: () => this.limit.overloaded(this.inFlight, startedMs, this.clock.elapsedMs()),
      release: () => {
        if (!open) return;
        open = false;
        this.inFlight -= 1;
        this.invite();
      },
    };
  }

  /** Gives free places to those who wait, a key after the other. */
  private invite(): void {
    while (this.waiting > 0 && this.inFlight < this.places) {
      const [key, queue] = this.queues.entries().next().value!;
      const waiter = queue.shift()!;
      this.queues.delete(key);
      if (queue.length > 0) this.queues.set(key, queue);
      this.waiting -= 1;
      waiter.end(this.occupy());
    }
  }

  /** In a full line, the newest of the longest queue makes room for a key that has fewer in it. */
  private admits(key: string): boolean {
    if (this.waiting < MAX_WAITING) return true;
    const mine = this.queues.get(key)?.length ?? 0;
    let longest: [string, Waiter[]] | null = null;
    for (const entry of this.queues) {
      if (longest === null || entry[1].length > longest[1].length) longest = entry;
    }
    if (longest === null || longest[1].length <= mine + 1) return false;
    this.leave(longest[0], longest[1].at(-1)!);
    return true;
  }

  private leave(key: string, waiter: Waiter): void {
    const queue = this.queues.get(key);
    const at = queue?.indexOf(waiter) ?? -1;
    if (at === -1) return;
    queue!.splice(at, 1);
    if (queue!.length === 0) this.queues.delete(key);
    this.waiting -= 1;
    waiter.end(null);
  }
}

interface Waiter {
  end(slot: Slot | null): void;
}
