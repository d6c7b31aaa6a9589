import type { Clock } from "../../units/clock.ts";
import { FairQueue } from "../../units/fair-queue.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import { SlotShare, type SlotShareMessages } from "./slot-share.ts";

/**
 * Places at the hosts. A request takes one for as long as the host works on it; while none is free, a bounded
 * number of requests wait for a bounded time. Whoever gets none is told to come back later; streams in flight
 * go on.
 */
export class HostSlots {
  /** By id: those of the configuration, and of former ones those that were busy at the last reload. */
  private readonly hosts = new Map<string, HostQueue>();

  /** `sharing` reaches the processes that share the operator's limits; null for a process that is alone. */
  constructor(
    private readonly clock: Clock,
    private readonly sharing: OpenSlotShare | null = null,
  ) {}

  /**
   * The hosts of the configuration in force. Asks for a first slot at each, so that the first request need not
   * wait for it, and forgets the others as far as they are idle.
   */
  prepare(hosts: Iterable<LimitedHost>): void {
    const present = new Set<string>();
    for (const host of hosts) {
      present.add(host.id);
      if (this.sharing !== null) this.queue(host);
    }
    for (const [id, queue] of this.hosts) {
      if (present.has(id) || !queue.isIdle) continue;
      queue.retire();
      this.hosts.delete(id);
    }
  }

  /** A slot at once; null when none is free. */
  take(host: LimitedHost): Slot | null {
    return this.queue(host).take();
  }

  /** A slot within `ms`; null when the queue is full, time is up, or the client has left. */
  wait(host: LimitedHost, key: string, ms: number, signal: AbortSignal): Promise<Slot | null> {
    return this.queue(host).wait(key, ms, signal);
  }

  /** There is neither a free slot nor room in the queue. */
  full({ id }: LimitedHost): boolean {
    return this.hosts.get(id)?.full === true;
  }

  /** Other processes have left `count` slots of the limit `most` to this one. */
  given(id: string, most: number, count: number): void {
    const queue = this.hosts.get(id);
    if (queue?.most === most) queue.given(count);
    // A reload has changed the limit in the meantime.
    else this.sharing?.(id, most).giveBack(count);
  }

  /** Other processes want `count` slots of the limit `most`. */
  recalled(id: string, most: number, count: number): void {
    const queue = this.hosts.get(id);
    if (queue?.most === most) queue.recalled(count);
  }

  /** For the metrics and the operator: every host that has something to tell. */
  *loads(): Generator<HostLoad> {
    for (const [host, { inFlight, slots, waiting, isCut }] of this.hosts)
      yield { host, inFlight, limit: slots, waiting, cut: isCut ? 1 : 0 };
  }

  private queue({ id, maxConcurrent }: LimitedHost): HostQueue {
    const known = this.hosts.get(id);
    const most = maxConcurrent ?? DEFAULT_CONCURRENT;
    if (known?.most === most) return known;
    // A reload changed the limit: what is in flight gives back its slot to the old queue.
    known?.retire();
    // The default is what one process can carry, so it is not shared.
    const share = maxConcurrent === undefined ? null : (this.sharing?.(id, most) ?? null);
    const queue = new HostQueue(most, this.clock, share);
    this.hosts.set(id, queue);
    return queue;
  }
}

/** Opens this process's share of a host's limit: by it, others hear what it needs and what it gives back. */
export type OpenSlotShare = (host: string, most: number) => SlotShareMessages;

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
export interface LimitedHost {
  readonly id: string;
  readonly maxConcurrent?: number;
}

/** Streams that one process can carry. */
export const DEFAULT_CONCURRENT = 10_000;

/** A slot at a host. */
export interface Slot {
  /** The host said, or showed, that it has too much to do. */
  overloaded(): void;
  /** Once the host is done with the request; a second call does nothing. */
  release(): void;
}

/** Requests that may wait for one host. */
export const MAX_WAITING = 1_000;

class HostQueue {
  inFlight = 0;
  private readonly limit: AdaptiveLimit;
  private readonly queue: FairQueue<Slot>;
  private readonly share: SlotShare | null;

  constructor(
    readonly most: number,
    private readonly clock: Clock,
    sharedWith: SlotShareMessages | null,
  ) {
    this.limit = new AdaptiveLimit(most);
    this.queue = new FairQueue(MAX_WAITING, clock);
    this.share = sharedWith === null ? null : new SlotShare(sharedWith);
    this.share?.need(1);
  }

  get slots(): number {
    const slots = this.limit.now(this.clock);
    return this.share === null ? slots : Math.min(slots, this.share.held);
  }

  get isCut(): boolean {
    return this.limit.now(this.clock) < this.most;
  }

  get waiting(): number {
    return this.queue.waiting;
  }

  get full(): boolean {
    return this.queue.full && this.inFlight >= this.slots;
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
    const waiting = this.queue.wait(key, 1, ms, signal);
    this.askForMore();
    return waiting;
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

  /** One slot for each request that is in flight or waits, and one for the next. */
  private askForMore(): void {
    this.share?.need(Math.min(this.inFlight + this.waiting + 1, this.limit.now(this.clock)));
  }

  private invite(): void {
    if (this.waiting > 0) this.queue.invite(this.occupy);
  }

  private readonly occupy = (): Slot | null => {
    if (this.inFlight >= this.slots) {
      this.askForMore();
      return null;
    }
    this.inFlight += 1;
    if (this.inFlight === this.share?.held) this.askForMore();
    return new HostSlot(this, this.clock.elapsedMs());
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

class HostSlot implements Slot {
  private open = true;

  constructor(
    private readonly queue: HostQueue,
    private readonly startedMs: number,
  ) {}

  overloaded(): void {
    this.queue.overloaded(this.startedMs);
  }

  release(): void {
    if (!this.open) return;
    this.open = false;
    this.queue.vacate();
  }
}
