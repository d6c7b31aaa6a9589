import type { CounterId } from "../../ledger/counter.ts";
import { EpochFenced, type KeyringChange, LEASE_MS } from "../../ledger/node-lease.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import type { OrphanHold } from "../../ledger/recovery.ts";
import type { Clock } from "../../units/clock.ts";
import type { BalanceId } from "../../units/id.ts";
import { Rounds } from "../../units/rounds.ts";
import { type SqlPart, type Steps, sql, verbatim } from "../database/database.ts";
import { URGENT } from "../database/postgres.ts";
import type { PostgresDatabase } from "../database/postgres-database.ts";
import { PostgresHolds } from "../journal/diskless-books.ts";
import { freeing } from "../ledger/grants.ts";
import type { NodeReport } from "./fleet.ts";
import type { NodeRegistry } from "./node-store.ts";

/** Nodes, their epochs and leases, and the log of changes that they must notice, in PostgreSQL. */
export class PostgresRegistry implements NodeRegistry {
  private readonly holds: PostgresHolds;

  constructor(
    private readonly db: PostgresDatabase,
    /** Writes the end of a stream whose node died. */
    private readonly recovered: (orphan: OrphanHold) => TerminalRecord,
  ) {
    this.holds = new PostgresHolds(db);
  }

  /**
   * Begins a new epoch of the node and releases what the previous one was granted, so everything that it
   * spent must have been shipped. A node with its journal in PostgreSQL has a single epoch; its next start
   * has another name.
   */
  join(name: string, journal: "disk" | "postgres" = "disk"): Promise<{ epoch: number; seen: number }> {
    const { db } = this;
    return db.transact(function* () {
      yield [
        sql`INSERT INTO nodes (name, epoch, open, lease_until, seen)
          VALUES (${name}, 0, FALSE, clock_timestamp(), 0) ON CONFLICT (name) DO NOTHING`,
        // Against everybody who settles or ships for it.
        sql`SELECT epoch FROM nodes WHERE name = ${name} FOR UPDATE`,
        ...freeing(db, name),
        sql`DELETE FROM changes WHERE at < clock_timestamp() - interval '7 days'`,
        sql`DELETE FROM nodes
          WHERE NOT has_journal AND NOT open AND lease_until < clock_timestamp() - interval '1 day'`,
      ];
      const [lives] = yield [
        sql`UPDATE nodes SET epoch = epoch + 1, open = TRUE, has_journal = (${journal}::text = 'disk'),
            seen = (SELECT version FROM latest_change WHERE one = 1)
          WHERE name = ${name} RETURNING epoch, seen`,
      ];
      const [life] = lives as readonly { readonly epoch: number; readonly seen: number }[];
      return life!;
    });
  }

  renew(name: string, epoch: number, seen: number): Promise<readonly KeyringChange[]> {
    const { db } = this;
    return db.transact(function* () {
      // A change holds this row until it is committed. So either it comes first and is found here, or it
      // comes later, and the node that answers it finds the renewed lease.
      const [latest] = yield [sql`SELECT version FROM latest_change WHERE one = 1 FOR SHARE`];
      const [{ version }] = latest as readonly [{ readonly version: number }];
      if (version > seen) {
        const [rows] = yield [
          sql`SELECT version, key_hash AS key, balance_id AS balance, counters FROM changes
            WHERE version > ${seen} ORDER BY version LIMIT ${MAX_CHANGES}`,
        ];
        if (rows!.length > 0) return (rows as readonly ChangeRow[]).map(changeOf);
      }
      const [kept] = yield [
        sql`UPDATE nodes SET seen = ${version},
            lease_until = clock_timestamp() + interval '${milliseconds(LEASE_MS)}'
          WHERE name = ${name} AND epoch = ${epoch} AND open RETURNING name`,
      ];
      if (kept!.length === 0) throw new EpochFenced(`epoch ${epoch} of ${name} is over`);
      return [];
    }, URGENT);
  }

  async unseen(version: number): Promise<boolean> {
    const late = await this.db.read`SELECT name FROM nodes
      WHERE open AND seen < ${version} AND lease_until > clock_timestamp() LIMIT 1`;
    return late.length > 0;
  }

  recall(balance: BalanceId, counters: readonly CounterId[]): Promise<number> {
    const { db } = this;
    return db.transact(() => db.noting([{ balance, key: null, counters }]));
  }

  /** Newest lease first. */
  async list(): Promise<NodeReport[]> {
    const rows = await this.db.read<Omit<NodeReport, "state"> & Pick<NodeRow, "open" | "alive">>`
      SELECT name, epoch, open, lease_until > clock_timestamp() AS alive,
        floor(extract(epoch FROM lease_until) * 1000)::bigint AS "leaseUntil",
        coalesce((SELECT sum(granted - shipped) FROM grants
          WHERE node = nodes.name AND counter LIKE 'balance:%'), 0)::bigint AS reserved
      FROM nodes ORDER BY lease_until DESC LIMIT ${MAX_NODES}`;
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
    const { db } = this;
    const found = await db.transact(function* () {
      const node = yield* locked(name);
      if (node === undefined) return "unknown";
      if (node.alive) return "alive";
      return yield* ending(db, name, node.open && !node.hasJournal);
    });
    return found === "fenced" ? this.endOrphanedStreams(name) : found;
  }

  /** Nodes without a journal that have been gone long enough to be closed. */
  async gone(): Promise<string[]> {
    const rows = await this.db.read<{ name: string }>`SELECT name FROM nodes WHERE open AND NOT has_journal
      AND lease_until < clock_timestamp() - interval '${milliseconds(GONE_MS)}' LIMIT ${MAX_GONE}`;
    return rows.map(({ name }) => name);
  }

  async leave(name: string, epoch: number): Promise<void> {
    const { db } = this;
    const found = await db.transact(function* () {
      const node = yield* locked(name);
      if (node?.epoch !== epoch) return "closed";
      yield [sql`UPDATE nodes SET lease_until = clock_timestamp() WHERE name = ${name}`];
      return yield* ending(db, name, !node.hasJournal);
    });
    if (found === "fenced") await this.endOrphanedStreams(name);
  }

  /**
   * Ends the streams of a node that can commit nothing any more. Two may be at it at once, and one may go on where another
   * died.
   */
  private async endOrphanedStreams(name: string): Promise<"closed"> {
    const { db } = this;
    while (await this.holds.endSome(name, this.recovered));
    await db.transact(function* () {
      yield* locked(name);
      yield* ending(db, name, false);
    });
    return "closed";
  }
}

/** The node's row, until the transaction ends. */
function* locked(name: string): Steps<NodeRow | undefined> {
  const [rows] = yield [
    sql`SELECT epoch, open, has_journal AS "hasJournal", lease_until > clock_timestamp() AS alive
      FROM nodes WHERE name = ${name} FOR UPDATE`,
  ];
  return (rows as readonly NodeRow[])[0];
}

/**
 * Releases what the node was granted, and ends its epoch. With streams to end first, the node is only fenced: from here on it
 * can commit nothing, because whatever it sends, it sends in an epoch that is over.
 */
function* ending(db: PostgresDatabase, name: string, hasStreams: boolean): Steps<"closed" | "fenced"> {
  if (hasStreams) {
    yield [sql`UPDATE nodes SET epoch = epoch + 1 WHERE name = ${name}`];
    return "fenced";
  }
  yield [...freeing(db, name), sql`UPDATE nodes SET open = FALSE WHERE name = ${name}`];
  return "closed";
}

interface NodeRow {
  readonly epoch: number;
  readonly open: boolean;
  readonly hasJournal: boolean;
  readonly alive: boolean;
}

type ChangeRow = Omit<KeyringChange, "counters"> & { readonly counters: string };

const changeOf = ({ counters, ...change }: ChangeRow): KeyringChange => ({
  ...change,
  counters: counters === "" ? [] : counters.split(" "),
});

const milliseconds = (ms: number): SqlPart => verbatim(`${ms} milliseconds`);

const MAX_CHANGES = 1_000;
const MAX_NODES = 10_000;
/** Beyond its lease: a node that is paused or cut off for less goes on as the same one. */
const GONE_MS = 10_000;
const MAX_GONE = 16;

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
