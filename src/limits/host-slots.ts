import type { Clock } from "../units/clock.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import { FairLine } from "./fair-line.ts";

/**
 * Places at the hosts. A request takes one for as long as the host works on it; while none is free, a bounded number of
 * requests wait for a bounded time. Whoever gets none is told to come back, and streams in flight go on.
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
  inFlight = 0;
  private readonly limit: AdaptiveLimit;
  private readonly line: FairLine<Slot>;

  constructor(
    readonly most: number,
    private readonly clock: Clock,
  ) {
    this.limit = new AdaptiveLimit(most);
    this.line = new FairLine(MAX_WAITING, clock);
  }

  get places(): number {
    return this.limit.now(this.clock);
  }

  get waiting(): number {
    return this.line.waiting;
  }

  get full(): boolean {
    return this.line.full && this.inFlight >= this.places;
  }

  take(): Slot | null {
    // Who waits has come before, and the limit may have grown since.
    this.invite();
    return this.waiting === 0 ? this.occupy() : null;
  }

  async wait(key: string, ms: number, signal: AbortSignal): Promise<Slot | null> {
    return this.take() ?? this.line.wait(key, 1, ms, signal);
  }

  private invite(): void {
    if (this.waiting > 0) this.line.invite(() => this.occupy());
  }

  private occupy(): Slot | null {
    if (this.inFlight >= this.places) return null;
    this.inFlight += 1;
    return new Place(this, this.clock.elapsedMs());
  }

  overloaded(startedMs: number): void {
    this.limit.overloaded(this.inFlight, startedMs, this.clock.elapsedMs());
  }

  vacate(): void {
    this.inFlight -= 1;
    this.invite();
  }
}

class Place implements Slot {
  private open = true;

  constructor(
    private readonly line: HostLine,
    private readonly startedMs: number,
  ) {}

  overloaded(): void {
    this.line.overloaded(this.startedMs);
  }

  release(): void {
    if (!this.open) return;
    this.open = false;
    this.line.vacate();
  }
}
