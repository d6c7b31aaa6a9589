import type { TransactionSQL } from "bun";
import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced, LEASE_MS, type MembershipChange, type Registry } from "../../ledger/membership.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import type { OrphanHold } from "../../ledger/recovery.ts";
import type { Clock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { Rounds } from "../../units/rounds.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { sql as statement } from "../database/database.ts";
import { type Postgres, URGENT } from "../database/postgres.ts";
import { PostgresDatabase, performAll } from "../database/postgres-database.ts";
import { PostgresHolds } from "../journal/diskless-books.ts";
import { freeing } from "../ledger/grants.ts";
import type { NodeReport } from "./fleet.ts";

/** Nodes, their epochs and leases, and the log of changes that they must notice, in PostgreSQL. */
export class PostgresRegistry implements Registry {
  private readonly db: PostgresDatabase;
  private readonly holds: PostgresHolds;

  constructor(
    private readonly postgres: Postgres,
    /** Writes the end of a stream whose node died. */
    private readonly recovered: (orphan: OrphanHold) => TerminalRecord,
  ) {
    this.db = new PostgresDatabase(postgres);
    this.holds = new PostgresHolds(postgres);
  }

  /**
   * Begins a new epoch of the node and releases what the previous one was granted, so everything that it
   * spent must have been shipped. A node with its journal in PostgreSQL has a single epoch; its next start
   * has another name.
   */
  async join(name: string, journal: "disk" | "postgres" = "disk"): Promise<{ epoch: number; seen: number }> {
    return this.postgres.transaction(async (sql) => {
      const last = await lockEpoch(sql, name);
      await performAll(sql, freeing(LOCKS, name));
      await sql`DELETE FROM changes WHERE at < clock_timestamp() - interval '7 days'`;
      await sql`DELETE FROM nodes
        WHERE NOT has_journal AND NOT open AND lease_until < clock_timestamp() - interval '1 day'`;
      const [latest] = await sql<{ version: bigint }[]>`SELECT version FROM latest_change WHERE one = 1`;
      const life = { epoch: last + 1, seen: Number(latest!.version) };
      await sql`UPDATE nodes SET epoch = ${life.epoch}, open = TRUE, seen = ${life.seen},
          has_journal = ${journal === "disk"} WHERE name = ${name}`;
      return life;
    });
  }

  /** The node's latest epoch, to which its journal belongs; null for an unknown node. */
  async lastEpoch(name: string): Promise<number | null> {
    const [row] = await this.postgres.query<{ epoch: number }>(
      (sql) => sql`SELECT epoch FROM nodes WHERE name = ${name}`,
    );
    return row?.epoch ?? null;
  }

  async renew(name: string, epoch: number, seen: number): Promise<readonly MembershipChange[]> {
    return this.postgres.transaction(async (sql) => {
      // A change holds this row until it is committed. So either it comes first and is found here, or it
      // comes later, and the node that answers it finds the renewed lease.
      const [latest] = await sql<{ version: bigint }[]>`
        SELECT version FROM latest_change WHERE one = 1 FOR SHARE`;
      if (Number(latest!.version) > seen) {
        const rows = await sql<ChangeRow[]>`SELECT version, key_hash, balance_id, counters FROM changes
          WHERE version > ${seen} ORDER BY version LIMIT ${MAX_CHANGES}`;
        if (rows.length > 0) return rows.map(changeOf);
      }
      const kept = await sql`UPDATE nodes SET seen = ${Number(latest!.version)},
          lease_until = clock_timestamp() + ${`${LEASE_MS} milliseconds`}::interval
        WHERE name = ${name} AND epoch = ${epoch} AND open RETURNING name`;
      if (kept.length === 0) throw new EpochFenced(`epoch ${epoch} of ${name} is over`);
      return [];
    }, URGENT);
  }

  async unseen(version: number): Promise<boolean> {
    const late = await this.postgres.query<{ name: string }>(
      (sql) => sql`SELECT name FROM nodes
        WHERE open AND seen < ${version} AND lease_until > clock_timestamp() LIMIT 1`,
    );
    return late.length > 0;
  }

  /**
   * Has every node give back what it does not use of these counters. Returns the change that they
   * acknowledge by it.
   */
  async recall(balance: BalanceId, counters: readonly CounterId[]): Promise<number> {
    const { db } = this;
    return db.transact(() => db.noting([{ balance, key: null, counters }]));
  }

  /** Newest lease first. */
  async list(): Promise<NodeReport[]> {
    const rows = await this.postgres.query<Omit<NodeReport, "state"> & Flags>(
      (sql) => sql`
        SELECT name, epoch, open, lease_until > clock_timestamp() AS alive,
          floor(extract(epoch FROM lease_until) * 1000)::bigint AS "leaseUntil",
          coalesce((SELECT sum(granted - shipped) FROM grants
            WHERE node = nodes.name AND counter LIKE 'balance:%'), 0)::bigint AS reserved
        FROM nodes ORDER BY lease_until DESC LIMIT ${MAX_NODES}`,
    );
    return rows.map(({ open, alive, ...node }) => ({
      ...node,
      state: !open ? "left" : alive ? "alive" : "silent",
    }));
  }

  /**
   * Ends the epoch of a node whose lease has run out, and releases its grants. If the node has no journal,
   * first ends the streams that it left open.
   */
  async close(name: string): Promise<"closed" | "alive" | "unknown"> {
    const found = await this.postgres.transaction(async (sql) => {
      const [row] = await sql<(Flags & { has_journal: boolean })[]>`
        SELECT open, has_journal, lease_until > clock_timestamp() AS alive FROM nodes WHERE name = ${name} FOR UPDATE`;
      if (row === undefined) return "unknown";
      if (row.alive) return "alive";
      if (row.open && !row.has_journal) return fence(sql, name);
      await free(sql, name);
      return "closed";
    });
    return found === "fenced" ? this.endOrphanedStreams(name) : found;
  }

  /** Nodes without a journal that have been gone long enough to be closed. */
  async gone(): Promise<string[]> {
    const rows = await this.postgres.query<{ name: string }>(
      (sql) => sql`SELECT name FROM nodes WHERE open AND NOT has_journal
        AND lease_until < clock_timestamp() - ${`${GONE_MS} milliseconds`}::interval LIMIT ${MAX_GONE}`,
    );
    return rows.map(({ name }) => name);
  }

  async leave(name: string, epoch: number): Promise<void> {
    const found = await this.postgres.transaction(async (sql) => {
      const [row] = await sql<{ epoch: bigint; has_journal: boolean }[]>`
        SELECT epoch, has_journal FROM nodes WHERE name = ${name} FOR UPDATE`;
      if (Number(row?.epoch) !== epoch) return "closed";
      await sql`UPDATE nodes SET lease_until = clock_timestamp() WHERE name = ${name}`;
      if (!row!.has_journal) return fence(sql, name);
      await free(sql, name);
      return "closed";
    });
    if (found === "fenced") await this.endOrphanedStreams(name);
  }

  /**
   * Ends the streams of a node that can commit nothing any more. Two may be at it at once, and one may go on where another
   * died.
   */
  private async endOrphanedStreams(name: string): Promise<"closed"> {
    while (await this.holds.endSome(name, this.recovered));
    await this.postgres.transaction(async (sql) => {
      await sql`SELECT name FROM nodes WHERE name = ${name} FOR UPDATE`;
      await free(sql, name);
    });
    return "closed";
  }
}

const MAX_CHANGES = 1_000;
const LOCKS = { forUpdate: statement`FOR UPDATE` };
const MAX_NODES = 10_000;
/** Beyond its lease: a node that is paused or cut off for less goes on as the same one. */
const GONE_MS = 10_000;
const MAX_GONE = 16;

interface Flags {
  readonly open: boolean;
  readonly alive: boolean;
}

interface ChangeRow {
  readonly version: bigint;
  readonly key_hash: SecretHash | null;
  readonly balance_id: BalanceId;
  readonly counters: string;
}

const changeOf = ({ version, key_hash, balance_id, counters }: ChangeRow): MembershipChange => ({
  version: Number(version),
  balance: balance_id,
  key: key_hash,
  counters: counters === "" ? [] : counters.split(" "),
});

/** The node's row, locked against everybody who settles or ships for it; returns its epoch. */
async function lockEpoch(sql: TransactionSQL, name: string): Promise<number> {
  await sql`INSERT INTO nodes (name, epoch, open, lease_until, seen)
    VALUES (${name}, 0, FALSE, clock_timestamp(), 0) ON CONFLICT (name) DO NOTHING`;
  const [row] = await sql<{ epoch: bigint }[]>`SELECT epoch FROM nodes WHERE name = ${name} FOR UPDATE`;
  return Number(row!.epoch);
}

/** From here on the node can commit nothing: whatever it sends, it sends in an epoch that is over. */
async function fence(sql: TransactionSQL, name: string): Promise<"fenced"> {
  await sql`UPDATE nodes SET epoch = epoch + 1 WHERE name = ${name}`;
  return "fenced";
}

async function free(sql: TransactionSQL, name: string): Promise<void> {
  await performAll(sql, freeing(LOCKS, name));
  await sql`UPDATE nodes SET open = FALSE WHERE name = ${name}`;
}

/**
 * Closes nodes that had no journal and are gone for good; returns what ends it. Only a node does so that has
 * had its own lease for a while: when PostgreSQL comes back everybody's has run out, and everybody is about
 * to renew it.
 */
export function closeGoneNodes({ registry, usable, clock, log }: Watch): () => void {
  let usableChecks = 0;
  const rounds = new Rounds(clock, CHECK_MS, async () => {
    usableChecks = usable() ? usableChecks + 1 : 0;
    try {
      if (usableChecks >= SURE_CHECKS)
        for (const name of await registry.gone())
          log("node closed", { name, found: await registry.close(name) });
    } catch (error) {
      log("nodes", { error: String(error) });
    }
    return CHECK_MS;
  });
  return () => void rounds.stop();
}

interface Watch {
  readonly registry: Pick<PostgresRegistry, "gone" | "close">;
  /** This node has a lease. */
  readonly usable: () => boolean;
  readonly clock: Pick<Clock, "after">;
  log(event: string, fields: Readonly<Record<string, unknown>>): void;
}

const CHECK_MS = 5_000;
const SURE_CHECKS = 3;
