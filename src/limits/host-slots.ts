import type { Clock } from "../units/clock.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import { FairLine } from "./fair-line.ts";
import { PlaceShare, type ShareTeller } from "./place-share.ts";

/**
 * Places at the hosts. A request takes one for as long as the host works on it; while none is free, a bounded
 * number of requests wait for a bounded time. Whoever gets none is told to come back later; streams in flight
 * go on.
 */
export class HostSlots {
  /** By id: those of the configuration, and of former ones those that were busy at the last reload. */
  private readonly hosts = new Map<string, HostLine>();

  /** `sharing` reaches the processes that share the operator's limits; null for a process that is alone. */
  constructor(
    private readonly clock: Clock,
    private readonly sharing: Sharing | null = null,
  ) {}

  /**
   * The hosts of the configuration in force. Asks for a first place at each, so that the first request need not
   * wait for it, and forgets the others as far as they are idle.
   */
  prepare(hosts: Iterable<Limited>): void {
    const present = new Set<string>();
    for (const host of hosts) {
      present.add(host.id);
      if (this.sharing !== null) this.line(host);
    }
    for (const [id, line] of this.hosts) {
      if (present.has(id) || !line.isIdle) continue;
      line.retire();
      this.hosts.delete(id);
    }
  }

  /** A place at once; null when none is free. */
  take(host: Limited): Slot | null {
    return this.line(host).take();
  }

  /** A place within `ms`; null when the line is full, time is up, or the client has left. */
  wait(host: Limited, key: string, ms: number, signal: AbortSignal): Promise<Slot | null> {
    return this.line(host).wait(key, ms, signal);
  }

  /** There is neither a free place nor room in the line. */
  full({ id }: Limited): boolean {
    return this.hosts.get(id)?.full === true;
  }

  /** Other processes have left `count` places of the limit `most` to this one. */
  given(id: string, most: number, count: number): void {
    const line = this.hosts.get(id);
    if (line?.most === most) line.given(count);
    // A reload has changed the limit in the meantime.
    else this.sharing?.(id, most).giveBack(count);
  }

  /** Other processes want `count` places of the limit `most`. */
  recalled(id: string, most: number, count: number): void {
    const line = this.hosts.get(id);
    if (line?.most === most) line.recalled(count);
  }

  /** For the metrics and the operator: every host that has something to tell. */
  *lines(): Generator<HostLoad> {
    for (const [host, { inFlight, places, waiting, isCut }] of this.hosts)
      yield { host, inFlight, limit: places, waiting, cut: isCut ? 1 : 0 };
  }

  private line({ id, maxConcurrent }: Limited): HostLine {
    const known = this.hosts.get(id);
    const most = maxConcurrent ?? DEFAULT_CONCURRENT;
    if (known?.most === most) return known;
    // A reload changed the limit: what is in flight gives back its place to the old line.
    known?.retire();
    // The default is what one process can carry, so it is not shared.
    const share = maxConcurrent === undefined ? null : (this.sharing?.(id, most) ?? null);
    const line = new HostLine(most, this.clock, share);
    this.hosts.set(id, line);
    return line;
  }
}

/** Opens this process's share of a host's limit: by it, others hear what it needs and what it gives back. */
export type Sharing = (host: string, most: number) => ShareTeller;

/** How many requests a host has, may have, and has waiting. */
export interface HostLoad {
  readonly host: string;
  readonly inFlight: number;
  readonly limit: number;
  readonly waiting: number;
  /** How many processes give it less than its limit, because it was overloaded. */
  readonly cut: number;
}

/** What matters of a host here; `maxConcurrent` is the operator's limit. */
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

/** Requests that may wait for one host. */
export const MAX_WAITING = 1_000;

class HostLine {
  inFlight = 0;
  private readonly limit: AdaptiveLimit;
  private readonly line: FairLine<Slot>;
  private readonly share: PlaceShare | null;

  constructor(
    readonly most: number,
    private readonly clock: Clock,
    sharedWith: ShareTeller | null,
  ) {
    this.limit = new AdaptiveLimit(most);
    this.line = new FairLine(MAX_WAITING, clock);
    this.share = sharedWith === null ? null : new PlaceShare(sharedWith);
    this.share?.need(1);
  }

  get places(): number {
    const places = this.limit.now(this.clock);
    return this.share === null ? places : Math.min(places, this.share.held);
  }

  get isCut(): boolean {
    return this.limit.now(this.clock) < this.most;
  }

  get waiting(): number {
    return this.line.waiting;
  }

  get full(): boolean {
    return this.line.full && this.inFlight >= this.places;
  }

  get isIdle(): boolean {
    return this.inFlight === 0 && this.waiting === 0;
  }

  take(): Slot | null {
    // Those who wait came first, and the limit may have grown since.
    this.invite();
    return this.waiting === 0 ? this.occupy() : null;
  }

  async wait(key: string, ms: number, signal: AbortSignal): Promise<Slot | null> {
    const slot = this.take();
    if (slot !== null) return slot;
    const place = this.line.wait(key, 1, ms, signal);
    this.askForMore();
    return place;
  }

  given(count: number): void {
    this.share?.given(count);
    this.invite();
    // Places that are not needed after all may be what others lack.
    this.share?.settle(this.inFlight);
  }

  recalled(count: number): void {
    this.share?.recalled(count, this.inFlight);
  }

  retire(): void {
    this.share?.retire(this.inFlight);
  }

  /** One place for each request that is in flight or waits, and one for the next. */
  private askForMore(): void {
    this.share?.need(Math.min(this.inFlight + this.waiting + 1, this.limit.now(this.clock)));
  }

  private invite(): void {
    if (this.waiting > 0) this.line.invite(this.occupy);
  }

  private readonly occupy = (): Slot | null => {
    if (this.inFlight >= this.places) {
      this.askForMore();
      return null;
    }
    this.inFlight += 1;
    if (this.inFlight === this.share?.held) this.askForMore();
    return new Place(this, this.clock.elapsedMs());
  };

  overloaded(startedMs: number): void {
    this.limit.overloaded(this.inFlight, startedMs, this.clock.elapsedMs());
  }

  vacate(): void {
    this.inFlight -= 1;
    this.share?.settle(this.inFlight);
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
