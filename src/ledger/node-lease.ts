import { type Clock, pause, type Timer } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import type { SecretHash } from "../units/secret-hash.ts";

/**
 * This process as a node: a name that outlives it, an epoch for its one life, and a lease. While the lease runs, the node may
 * use the keys that it remembers and the grants that it holds, because every change of keys waits for it. The registry renews
 * a lease only if the node has seen every change, and checks that in the same transaction.
 *
 * No two clocks are compared: the registry counts ten seconds from when it grants, the node from before it asks.
 */
export class NodeLease {
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
    private readonly events: NodeLeaseEvents,
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

  /** Reads changes now, and renews the lease. */
  async hurry(): Promise<void> {
    // The epoch of a node that has left is over; reading changes would end the closing process as fenced.
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

  /** Resolves once every node has seen the change or has lost its lease. */
  async acknowledged(version: number): Promise<void> {
    void this.hurry();
    for (let waitMs = FIRST_POLL_MS; await this.registry.unseen(version); ) {
      await pause(this.clock, waitMs);
      waitMs = Math.min(waitMs * 2, LAST_POLL_MS);
    }
  }

  /** Ends the epoch, after everything that it spent was shipped. */
  async leave(): Promise<void> {
    await this.stop();
    await this.registry.leave(this.name, this.epoch);
  }

  /** Stops using keys and grants, without ending the epoch. */
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
    // Without a lease, no change has waited for this node: everything that it remembers may be outdated.
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

/** The store's list of nodes and their leases. */
export interface Registry {
  /** Renews the lease of a node that has seen every change; otherwise returns the next changes. Throws EpochFenced. */
  renew(name: string, epoch: number, seen: number): Promise<readonly KeyringChange[]>;
  /** Whether a node with a lease has not seen the change. */
  unseen(version: number): Promise<boolean>;
  /** Releases the epoch's grants and ends its lease. */
  leave(name: string, epoch: number): Promise<void>;
}

export interface NodeLeaseEvents {
  /** Forgets what these changed; resolves once nothing outdated is in use. */
  changed(changes: readonly KeyringChange[]): Promise<void>;
  /** Forgets everything. */
  lapsed(): void;
  /** The lease could not be renewed. After an EpochFenced it never will be, and the process must end. */
  failed(error: unknown): void;
}

/** A change to a key, or to what the keys of a balance share. */
export interface KeyringChange {
  readonly version: number;
  /** Null if the log of changes was cut: anything may have changed. */
  readonly balance: BalanceId | null;
  readonly key: SecretHash | null;
  /** Id prefixes of counters whose limits may be lower now. */
  readonly counters: readonly string[];
}

/** Another process runs as this node, or an operator closed it: it must not spend any more. */
export class EpochFenced extends Error {
  override name = "EpochFenced";
}

/** How long a node goes on without the registry, and a change waits for a node that is gone. */
export const LEASE_MS = 10_000;
const BEAT_MS = 1_000;
const MAX_ROUNDS = 16;
const FIRST_POLL_MS = 2;
const LAST_POLL_MS = 50;
