import type { HostKey } from "../../catalog/catalog.ts";
import type { Clock } from "../../units/clock.ts";
import { FairQueue } from "../../units/fair-queue.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import { HostKeySlots, type KeyLease, type KeyLoad, type KeyRequest } from "./host-key-slots.ts";
import { SlotShare, type SlotShareMessages } from "./slot-share.ts";

/**
 * Slots at the hosts. A request occupies one for as long as the host works on it. While none is free, a bounded number of
 * requests wait for a bounded time; a request that gets none is refused with a time to retry. At a host with
 * paid routes, free requests get at most half of the slots, and wait behind paid ones.
 */
export class HostSlots {
  /** By host id: the configured hosts, and removed ones that were busy at the last reload. */
  private readonly hosts = new Map<string, HostLimiter>();
  /** Ids of the hosts with paid routes. */
  private paid: ReadonlySet<string> = new Set();

  /** `sharing` connects the processes that share the operator's limits; null for a process that is alone. */
  constructor(
    private readonly clock: Clock,
    private readonly sharing: OpenSlotShare | null = null,
    private readonly keys: KeySharing = ALONE,
  ) {}

  /**
   * Applies a configuration's hosts, of which those in `paid` have paid routes. Requests a first slot at each, so that the first
   * request need not wait, and forgets idle hosts that are no longer configured.
   */
  prepare(hosts: Iterable<LimitedHost>, paid: ReadonlySet<string>): void {
    this.paid = paid;
    const present = new Set<string>();
    for (const host of hosts) {
      present.add(host.id);
      if (this.sharing !== null || host.keys !== undefined) this.limiterOf(host);
    }
    for (const [id, limiter] of this.hosts) {
      limiter.hasPaidRoutes = paid.has(id);
      if (present.has(id) || !limiter.isIdle) continue;
      limiter.retire();
      this.hosts.delete(id);
    }
  }

  /** A slot at once; null if none is free. At a host with several keys, `request` chooses the key. */
  take(host: LimitedHost, request: KeyRequest = ANY, isFree = false): Slot | null {
    return this.limiterOf(host).take(request, isFree);
  }

  /** A slot within `ms`; null if the queue is full, time is up or the client has left. */
  wait(
    host: LimitedHost,
    sender: SlotSender,
    ms: number,
    signal: AbortSignal,
    request: KeyRequest = ANY,
  ): Promise<Slot | null> {
    return this.limiterOf(host).wait(sender, ms, signal, request);
  }

  /** There is neither a slot nor a place in the queue for the key's request. */
  full({ id }: LimitedHost, key: SenderKey, isFree: boolean): boolean {
    return this.hosts.get(id)?.isFullFor(key, isFree) === true;
  }

  /** Other processes gave this one `count` slots of the limit `most`. */
  given(id: string, most: number, count: number): void {
    const limiter = this.hosts.get(id);
    if (limiter?.most === most) limiter.given(count);
    // A reload has changed the limit in the meantime.
    else this.sharing?.(id, most).giveBack(count);
  }

  /** Other processes request `count` slots of the limit `most` back. */
  recalled(id: string, most: number, count: number): void {
    const limiter = this.hosts.get(id);
    if (limiter?.most === most) limiter.recalled(count);
  }

  /** For metrics and the operator: every host with load or complaints. */
  *loads(): Generator<HostLoad> {
    for (const [host, { inFlight, slots, waiting, isCut, keys }] of this.hosts) {
      const load = { host, inFlight, limit: slots, waiting, cut: isCut ? 1 : 0 };
      yield keys === null ? load : { ...load, keys: keys.loads() };
    }
  }

  private limiterOf({ id, maxConcurrent, keys }: LimitedHost): HostLimiter {
    const known = this.hosts.get(id);
    const most = maxConcurrent ?? DEFAULT_CONCURRENT;
    if (known?.most === most && (known.keys === null) === (keys === undefined)) {
      if (keys !== undefined) known.keys!.use(keys);
      return known;
    }
    // A reload changed the limit: requests in flight return their slots to the old limiter.
    known?.retire();
    // The default bounds one process, so it is not shared.
    const share = maxConcurrent === undefined ? null : (this.sharing?.(id, most) ?? null);
    const limiter = new HostLimiter(
      most,
      this.clock,
      share,
      keys === undefined ? null : this.keySlots(id, keys),
    );
    limiter.hasPaidRoutes = this.paid.has(id);
    this.hosts.set(id, limiter);
    return limiter;
  }

  private keySlots(host: string, keys: readonly HostKey[]): HostKeySlots {
    const { processes, onRetired } = this.keys;
    const slots = new HostKeySlots(this.clock, processes, (key, detail) => onRetired(host, key, detail));
    slots.use(keys);
    return slots;
  }
}

/** Who waits for a slot: balances take turns, and so do the keys of each. */
export interface SlotSender {
  readonly balanceId: string;
  readonly keyId: string;
  readonly isFree: boolean;
}

type SenderKey = { readonly id: string; readonly balanceId: string };

/** Opens this process's share of a host's limit, through which it requests and returns slots. */
export type OpenSlotShare = (host: string, most: number) => SlotShareMessages;

/** How processes of one machine share the limits of keys. */
export interface KeySharing {
  /** Number of processes; each gets an equal part of every limit. */
  readonly processes: number;
  /** A host refused a key; `detail` is its redacted message. */
  onRetired(host: string, key: string, detail: string): void;
}

const ALONE: KeySharing = { processes: 1, onRetired() {} };
/** For a host with one key. */
const ANY: KeyRequest = { conversation: null, model: "", tokens: 0 };

/** Requests at a host, its limit, and requests that wait for it. */
export interface HostLoad {
  readonly host: string;
  readonly inFlight: number;
  readonly limit: number;
  readonly waiting: number;
  /** Processes that give it less than its limit, because it was overloaded. */
  readonly cut: number;
  /** For a host with several keys. */
  readonly keys?: readonly KeyLoad[];
}

/** `maxConcurrent` is the operator's limit. */
export interface LimitedHost {
  readonly id: string;
  readonly keys?: readonly HostKey[];
  readonly maxConcurrent?: number;
}

/** As many streams as one process can carry. */
export const DEFAULT_CONCURRENT = 10_000;

export interface Slot {
  /** The key that the request is sent with; null at a host with one. */
  readonly key: KeyLease | null;
  /** The host reported or showed that it is overloaded. */
  overloaded(): void;
  /** Tokens that the host reports, for the rate of its key. */
  used(tokens: number): void;
  /** Call once the host is done with the request; a second call does nothing. */
  release(): void;
}

export const MAX_WAITING = 1_000;

/** The requests at one host: those in flight, up to its limit, and those that wait. */
class HostLimiter {
  inFlight = 0;
  hasPaidRoutes = false;
  private freeInFlight = 0;
  private readonly limit: AdaptiveLimit;
  private readonly queue: FairQueue<HostSlot>;
  private readonly share: SlotShare | null;
  private isPolling = false;

  constructor(
    readonly most: number,
    private readonly clock: Clock,
    sharedWith: SlotShareMessages | null,
    readonly keys: HostKeySlots | null,
  ) {
    this.limit = new AdaptiveLimit(most);
    this.queue = new FairQueue(MAX_WAITING, clock, RANKS);
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

  isFullFor({ id, balanceId }: SenderKey, isFree: boolean): boolean {
    if (!this.queue.full || this.hasSlot(isFree)) return false;
    return this.queue.refuses({ turn: balanceId, key: id, size: 0, rank: isFree ? FREE : PAID });
  }

  get isIdle(): boolean {
    return this.inFlight === 0 && this.waiting === 0;
  }

  take(request: KeyRequest, isFree: boolean): Slot | null {
    // Waiting requests came first, and the limit may have grown since.
    this.invite();
    return this.queue.isFree(isFree ? FREE : PAID) ? this.occupy(request, isFree) : null;
  }

  async wait(
    { balanceId, keyId, isFree }: SlotSender,
    ms: number,
    signal: AbortSignal,
    request: KeyRequest,
  ): Promise<Slot | null> {
    const slot = this.take(request, isFree);
    if (slot !== null) return slot;
    const rank = isFree ? FREE : PAID;
    const waiting = this.queue.wait({ turn: balanceId, key: keyId, size: request.tokens, rank }, ms, signal);
    this.requestSlots();
    this.pollKeys();
    const given = await waiting;
    // The slot came with any key that had room: now the conversation's own is chosen, if that has room.
    given?.rechoose(request);
    return given;
  }

  /** A key's rate recovers with time, without an event: so waiting requests are retried by a timer. */
  private pollKeys(): void {
    if (this.keys === null || this.isPolling || this.waiting === 0) return;
    this.isPolling = true;
    this.clock.after(KEY_POLL_MS, () => {
      this.isPolling = false;
      this.invite();
      this.pollKeys();
    });
  }

  given(count: number): void {
    this.share?.given(count);
    this.invite();
    // Slots that are not needed after all may be what other processes lack.
    this.share?.settle(this.inFlight);
  }

  recalled(count: number): void {
    this.share?.recalled(count, this.inFlight);
  }

  retire(): void {
    this.share?.retire(this.inFlight);
  }

  /** Slots for the requests in flight and waiting, and one for the next. */
  private requestSlots(): void {
    this.share?.need(Math.min(this.inFlight + this.waiting + 1, this.limit.now(this.clock)));
  }

  private hasSlot(isFree: boolean): boolean {
    const { slots } = this;
    if (this.inFlight >= slots) return false;
    return !(isFree && this.hasPaidRoutes) || this.freeInFlight < Math.max(1, slots / 2);
  }

  private invite(): void {
    if (this.waiting > 0) this.queue.invite(this.admit);
  }

  private readonly admit = (tokens: number, rank: number): HostSlot | null =>
    this.occupy(this.keys === null ? ANY : { ...ANY, tokens }, rank === FREE);

  private occupy(request: KeyRequest, isFree: boolean): HostSlot | null {
    if (!this.hasSlot(isFree)) {
      this.requestSlots();
      return null;
    }
    const key = this.keys === null ? null : this.keys.take(request);
    if (key === null && this.keys !== null) return null;
    this.inFlight += 1;
    if (isFree) this.freeInFlight += 1;
    if (this.inFlight === this.share?.held) this.requestSlots();
    return new HostSlot(this, this.clock.elapsedMs(), key, isFree);
  }

  /** Another key for a request that has not been sent yet. */
  rechosen(key: KeyLease, request: KeyRequest): KeyLease {
    key.giveBack();
    return this.keys!.take(request) ?? this.keys!.take(ANY) ?? key;
  }

  overloaded(startedMs: number, isFree: boolean): void {
    // Free requests meet limits of their own, which are not those of paid ones.
    if (isFree && this.hasPaidRoutes) return;
    this.limit.overloaded(this.inFlight, startedMs, this.clock.elapsedMs());
  }

  vacate(isFree: boolean): void {
    this.inFlight -= 1;
    if (isFree) this.freeInFlight -= 1;
    this.share?.settle(this.inFlight);
    this.invite();
  }
}

class HostSlot implements Slot {
  private open = true;

  constructor(
    private readonly limiter: HostLimiter,
    private readonly startedMs: number,
    public key: KeyLease | null,
    private readonly isFree: boolean,
  ) {}

  rechoose(request: KeyRequest): void {
    if (this.key !== null) this.key = this.limiter.rechosen(this.key, request);
  }

  overloaded(): void {
    this.limiter.overloaded(this.startedMs, this.isFree);
  }

  used(tokens: number): void {
    this.key?.used(tokens);
  }

  release(): void {
    if (!this.open) return;
    this.open = false;
    this.key?.release();
    this.limiter.vacate(this.isFree);
  }
}

const PAID = 0;
const FREE = 1;
const RANKS = 2;

/** Between retries of requests that wait for a key. */
const KEY_POLL_MS = 50;
