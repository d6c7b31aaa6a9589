import type { Database as Connection } from "bun:sqlite";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced, type KeyringChange, LEASE_MS } from "../../ledger/node-lease.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { sql } from "../database/database.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { freeing } from "../ledger/grants.ts";
import type { NotedChange } from "./changes.ts";
import type { NodeReport } from "./fleet.ts";
import type { OtherNodes } from "./fleet-holds.ts";

/**
 * Nodes and their epochs in SQLite; their leases, and the changes that they must notice, in the memory of the
 * one process that writes the database. When another takes its place, every open epoch may still have a lease,
 * and nodes assume that anything may have changed.
 */
export class SqliteRegistry {
  private readonly db: SqliteDatabase;
  private readonly leases = new Map<string, KnownLease>();
  /** The latest, in order. */
  private changes: KeyringChange[] = [];
  private latest: number;

  constructor(
    db: Connection,
    private readonly clock: Pick<Clock, "now" | "elapsedMs">,
    /** There are changes to notice. */
    private readonly announce: () => void,
  ) {
    this.db = new SqliteDatabase(db);
    const [keeper] = this.db.answer<{ lives: number }>(sql`INSERT INTO keeper (one, lives) VALUES (1, 1)
      ON CONFLICT (one) DO UPDATE SET lives = lives + 1 RETURNING lives`);
    this.latest = keeper!.lives * CHANGES_OF_A_LIFE;
    const untilMs = clock.elapsedMs() + LEASE_MS;
    for (const name of this.openNodes()) this.leases.set(name, { seen: 0, untilMs });
  }

  /**
   * Begins a new epoch of the node and releases what the previous one was granted, so everything that it spent
   * must have been shipped.
   */
  join(name: string): { epoch: number; seen: number } {
    const { db, latest: seen } = this;
    const epoch = db.transact(function* () {
      const [, , , lives] = yield [
        ...freeing(db, name),
        sql`INSERT INTO nodes (name, epoch, open) VALUES (${name}, 1, 1)
          ON CONFLICT (name) DO UPDATE SET epoch = epoch + 1, open = 1 RETURNING epoch`,
      ];
      return (lives as readonly [{ readonly epoch: number }])[0].epoch;
    });
    this.leases.set(name, { seen, untilMs: this.leases.get(name)?.untilMs ?? 0 });
    return { epoch, seen };
  }

  /** As `Registry`'s. */
  renew(name: string, epoch: number, seen: number): readonly KeyringChange[] {
    const node = this.node(name);
    if (node?.epoch !== epoch || node.open === 0) throw new EpochFenced(`epoch ${epoch} of ${name} is over`);
    if (seen < this.latest) return this.changesSince(seen);
    this.leases.set(name, { seen, untilMs: this.clock.elapsedMs() + LEASE_MS });
    return [];
  }

  /** Whether a node has a lease that runs, and has not seen the change. */
  unseen(version: number): boolean {
    const nowMs = this.clock.elapsedMs();
    for (const { seen, untilMs } of this.leases.values()) if (seen < version && untilMs > nowMs) return true;
    return false;
  }

  isAlive(name: string): boolean {
    return (this.leases.get(name)?.untilMs ?? 0) > this.clock.elapsedMs();
  }

  /** The open nodes but this one. */
  others(name: string): OtherNodes {
    const others = this.openNodes().filter((other) => other !== name);
    const { true: answering = [], false: silent = [] } = Object.groupBy(others, (other) =>
      this.isAlive(other) ? "true" : "false",
    );
    return { answering, silent };
  }

  /** Nodes that have a lease. */
  alive(): string[] {
    return [...this.leases.keys()].filter((name) => this.isAlive(name));
  }

  /** Frees what the epoch was granted, and ends its lease. */
  leave(name: string, epoch: number): void {
    if (this.node(name)?.epoch === epoch) this.free(name);
  }

  /** Ends the epoch of a node whose lease has run out, and releases its grants. */
  close(name: string): "closed" | "alive" | "unknown" {
    if (this.node(name) === undefined) return "unknown";
    if (this.isAlive(name)) return "alive";
    this.free(name);
    return "closed";
  }

  /** Writes down what has changed; returns the version to wait for. */
  note(changes: readonly NotedChange[]): number {
    for (const change of changes) this.changes.push({ ...change, version: ++this.latest });
    if (this.changes.length > MAX_CHANGES) this.changes = this.changes.slice(-MAX_CHANGES / 2);
    if (changes.length > 0) this.announce();
    return this.latest;
  }

  /** As `NodeRegistry`'s. */
  recall(balance: BalanceId, counters: readonly CounterId[]): number {
    return this.note([{ balance, key: null, counters }]);
  }

  /** Newest lease first. */
  list(): NodeReport[] {
    const [now, nowMs] = [this.clock.now(), this.clock.elapsedMs()];
    return this.db
      .answer<{ name: string; epoch: number; open: number; reserved: NanoUsd }>(
        sql`SELECT name, epoch, open, coalesce((SELECT sum(granted - shipped) FROM grants
          WHERE node = nodes.name AND counter LIKE 'balance:%'), 0) AS reserved FROM nodes`,
      )
      .map(({ name, epoch, open, reserved }): NodeReport => {
        const leftMs = (this.leases.get(name)?.untilMs ?? nowMs) - nowMs;
        return {
          name,
          state: open === 0 ? "left" : leftMs > 0 ? "alive" : "silent",
          leaseUntil: Math.floor(now + leftMs) as EpochMs,
          epoch,
          reserved,
        };
      })
      .sort((a, b) => b.leaseUntil - a.leaseUntil);
  }

  private changesSince(seen: number): readonly KeyringChange[] {
    const first = this.changes[0]?.version ?? this.latest + 1;
    if (seen + 1 < first) return [{ version: this.latest, balance: null, key: null, counters: [""] }];
    return this.changes.slice(seen + 1 - first);
  }

  private free(name: string): void {
    const { db } = this;
    db.transact(function* () {
      yield [...freeing(db, name), sql`UPDATE nodes SET open = 0 WHERE name = ${name}`];
    });
    this.leases.delete(name);
  }

  private node(name: string): { readonly epoch: number; readonly open: number } | undefined {
    return this.db.answer<{ epoch: number; open: number }>(
      sql`SELECT epoch, open FROM nodes WHERE name = ${name}`,
    )[0];
  }

  private openNodes(): string[] {
    return this.db
      .answer<{ name: string }>(sql`SELECT name FROM nodes WHERE open = 1`)
      .map(({ name }) => name);
  }
}

interface KnownLease {
  readonly seen: number;
  readonly untilMs: number;
}

/** More than a life can come to. */
const CHANGES_OF_A_LIFE = 2 ** 32;
/** A node that missed more of them learns that anything may have changed. */
const MAX_CHANGES = 1_000;
