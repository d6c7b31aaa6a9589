import { type Clock, pause, type Timer } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import type { SecretHash } from "../units/secret-hash.ts";

/**
 * This process as the others see it: a name that outlives it, an epoch for its one life, and a lease. While
 * the lease runs the node may use the keys that it remembers and the grants that it holds, because every
 * change of keys waits for it. A lease is renewed only for a node that has taken notice of every change there
 * is, in one step with looking for them.
 *
 * A lease compares no two clocks: the registry counts ten seconds from when it granted, the node from before
 * it asked.
 */
export class Membership {
  private usableUntilMs = Number.NEGATIVE_INFINITY;
  private timer: Timer | null = null;
  private beating: Promise<void> | null = null;
  private again = false;
  private stopped = false;

  constructor(
    private readonly registry: Registry,
    private readonly clock: Pick<Clock, "after" | "elapsedMs">,
    readonly name: string,
    private readonly life: { readonly epoch: number; seen: number },
    private readonly events: MembershipEvents,
  ) {}

  get epoch(): number {
    return this.life.epoch;
  }

  /** Remembered keys and granted money may be used now. */
  usable(): boolean {
    return this.clock.elapsedMs() < this.usableUntilMs;
  }

  get leaseLeftMs(): number {
    return Math.max(0, this.usableUntilMs - this.clock.elapsedMs());
  }

  /** Renews the lease now, and once a second from then on. */
  async follow(): Promise<void> {
    await this.hurry();
    if (this.stopped) return;
    this.timer = this.clock.after(BEAT_MS, () => void this.follow());
  }

  /** Looks for changes now, and renews the lease. */
  async hurry(): Promise<void> {
    // The epoch of a node that has left is over: reading that would end the process while it is closing.
    if (this.stopped) return;
    if (this.beating !== null) {
      this.again = true;
      return this.beating;
    }
    this.beating = this.beatAll().finally(() => {
      this.beating = null;
    });
    return this.beating;
  }

  /** Resolves once every node has taken notice of the change, or can no longer act on what was before it. */
  async acknowledged(version: number): Promise<void> {
    void this.hurry();
    for (let waitMs = FIRST_POLL_MS; await this.registry.unseen(version); ) {
      await pause(this.clock, waitMs);
      waitMs = Math.min(waitMs * 2, LAST_POLL_MS);
    }
  }

  /** Ends the epoch; everything that it spent must have been shipped. */
  async leave(): Promise<void> {
    await this.stop();
    await this.registry.leave(this.name, this.epoch);
  }

  /** Uses nothing any more, and tells nobody. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    this.usableUntilMs = Number.NEGATIVE_INFINITY;
    await this.beating;
  }

  private async beatAll(): Promise<void> {
    do {
      this.again = false;
      try {
        await this.beat();
      } catch (error) {
        if (error instanceof EpochFenced) {
          this.stopped = true;
          this.usableUntilMs = Number.NEGATIVE_INFINITY;
        }
        this.events.failed(error);
      }
    } while (this.again && !this.stopped);
  }

  private async beat(): Promise<void> {
    // Without a lease nobody has waited for this node: whatever it remembers may have been changed long ago.
    if (!this.usable()) this.events.lapsed();
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const startedMs = this.clock.elapsedMs();
      const changes = await this.registry.renew(this.name, this.epoch, this.life.seen);
      if (changes.length === 0) {
        if (!this.stopped) this.usableUntilMs = startedMs + LEASE_MS;
        return;
      }
      await this.events.changed(changes);
      this.life.seen = changes.at(-1)!.version;
    }
  }
}

/** Where nodes are known, and their leases kept. */
export interface Registry {
  /** Renews the lease of a node that has seen every change; else tells the next ones. Throws EpochFenced. */
  renew(name: string, epoch: number, seen: number): Promise<readonly MembershipChange[]>;
  /** Whether a node has a lease that runs, and has not seen the change. */
  unseen(version: number): Promise<boolean>;
  /** Frees what the epoch was granted, and ends its lease. */
  leave(name: string, epoch: number): Promise<void>;
}

export interface MembershipEvents {
  /** Forget these; resolves once nothing of what was before them is used. */
  changed(changes: readonly MembershipChange[]): Promise<void>;
  /** Forget everything. */
  lapsed(): void;
  /** The lease could not be renewed. After an EpochFenced it never will be, and the process must end. */
  failed(error: unknown): void;
}

/** A key, or what the keys of a balance share, is not what it was. */
export interface MembershipChange {
  readonly version: number;
  /** Null where nobody knows any more what has changed: all may have. */
  readonly balance: BalanceId | null;
  readonly key: SecretHash | null;
  /** How the ids of counters begin whose limits may be lower now. */
  readonly counters: readonly string[];
}

/** Another life of this node has started, or the operator has declared it lost: it must not spend any more. */
export class EpochFenced extends Error {
  override name = "EpochFenced";
}

/** How long a node goes on without its registry, and how long a change waits for a node that is gone. */
export const LEASE_MS = 10_000;
const BEAT_MS = 1_000;
const MAX_ROUNDS = 16;
const FIRST_POLL_MS = 2;
const LAST_POLL_MS = 50;
