import type { Database } from "bun:sqlite";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced, LEASE_MS, type MembershipChange } from "../../ledger/membership.ts";
import type { Clock, EpochMs } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
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
  private readonly statements;
  private readonly sql: SqliteDatabase;
  private readonly leases = new Map<string, NodeLease>();
  /** The latest, in order. */
  private changes: MembershipChange[] = [];
  private latest: number;

  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, "now" | "elapsedMs">,
    /** There are changes to notice. */
    private readonly announce: () => void,
  ) {
    this.statements = prepare(db);
    this.sql = new SqliteDatabase(db);
    const { lives } = this.statements.begin.get()!;
    this.latest = lives * CHANGES_OF_A_LIFE;
    const untilMs = clock.elapsedMs() + LEASE_MS;
    for (const { name } of this.statements.openNodes.all()) this.leases.set(name, { seen: 0, untilMs });
  }

  /**
   * Begins a new epoch of the node and releases what the previous one was granted, so everything that it spent
   * must have been shipped.
   */
  join(name: string): { epoch: number; seen: number } {
    return this.db
      .transaction(() => {
        for (const one of freeing(this.sql, name)) this.sql.answer(one);
        const { epoch } = this.statements.join.get(name)!;
        const { latest: seen } = this;
        this.leases.set(name, { seen, untilMs: this.leases.get(name)?.untilMs ?? 0 });
        return { epoch, seen };
      })
      .immediate();
  }

  /** The node's latest epoch, to which its journal belongs; null for an unknown node. */
  lastEpoch(name: string): number | null {
    return this.statements.node.get(name)?.epoch ?? null;
  }

  /** As `Registry`'s. */
  renew(name: string, epoch: number, seen: number): readonly MembershipChange[] {
    const node = this.statements.node.get(name);
    if (node === null || node.epoch !== epoch || node.open === 0)
      throw new EpochFenced(`epoch ${epoch} of ${name} is over`);
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
    const others = this.statements.openNodes.all().flatMap((node) => (node.name === name ? [] : [node.name]));
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
    if (this.statements.node.get(name)?.epoch === epoch) this.free(name);
  }

  /** Ends the epoch of a node whose lease has run out, and releases its grants. */
  close(name: string): "closed" | "alive" | "unknown" {
    if (this.statements.node.get(name) === null) return "unknown";
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
    return this.statements.nodes
      .all()
      .map(({ name, epoch, open, reserved }): NodeReport => {
        const leftMs = (this.leases.get(name)?.untilMs ?? nowMs) - nowMs;
        return {
          name,
          state: open === 0 ? "left" : leftMs > 0 ? "alive" : "silent",
          leaseUntil: Math.floor(now + leftMs) as EpochMs,
          epoch,
          reserved: reserved as NanoUsd,
        };
      })
      .sort((a, b) => b.leaseUntil - a.leaseUntil);
  }

  private changesSince(seen: number): readonly MembershipChange[] {
    const first = this.changes[0]?.version ?? this.latest + 1;
    if (seen + 1 < first) return [{ version: this.latest, balance: null, key: null, counters: [""] }];
    return this.changes.slice(seen + 1 - first);
  }

  private free(name: string): void {
    this.db
      .transaction(() => {
        for (const one of freeing(this.sql, name)) this.sql.answer(one);
        this.statements.leave.run(name);
      })
      .immediate();
    this.leases.delete(name);
  }
}

interface NodeLease {
  readonly seen: number;
  readonly untilMs: number;
}

/** More than a life can come to. */
const CHANGES_OF_A_LIFE = 2 ** 32;
/** A node that missed more of them learns that anything may have changed. */
const MAX_CHANGES = 1_000;

function prepare(db: Database) {
  return {
    begin: db.query<{ lives: number }, []>(
      "INSERT INTO keeper (one, lives) VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET lives = lives + 1 RETURNING lives",
    ),
    node: db.query<{ epoch: number; open: number }, [string]>("SELECT epoch, open FROM nodes WHERE name = ?"),
    openNodes: db.query<{ name: string }, []>("SELECT name FROM nodes WHERE open = 1"),
    join: db.query<{ epoch: number }, [string]>(
      `INSERT INTO nodes (name, epoch, open) VALUES (?, 1, 1)
       ON CONFLICT (name) DO UPDATE SET epoch = epoch + 1, open = 1 RETURNING epoch`,
    ),
    leave: db.query<never, [string]>("UPDATE nodes SET open = 0 WHERE name = ?"),
    nodes: db.query<{ name: string; epoch: number; open: number; reserved: number }, []>(
      `SELECT name, epoch, open, coalesce((SELECT sum(granted - shipped) FROM grants
         WHERE node = nodes.name AND counter LIKE 'balance:%'), 0) AS reserved FROM nodes`,
    ),
  };
}
