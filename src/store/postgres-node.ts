import type { TransactionSQL } from "bun";
import type { Clock, Timer } from "../units/clock.ts";
import type { BalanceId } from "../units/id.ts";
import type { SecretHash } from "../units/secret-hash.ts";
import type { Postgres } from "./postgres.ts";
import { EpochOver } from "./postgres-authority.ts";

/**
 * This process as the others see it: a name that outlives it, an epoch for its one life, and a lease. While the lease runs
 * the node may use the keys that it remembers and the grants that it holds, because every change of keys waits for it.
 * Renewing the lease and taking notice of changes are one step, so a node cannot have the one without the other.
 *
 * A lease compares no two clocks: the database counts ten seconds from when it granted, the node from before it asked.
 */
export class PostgresNode {
  private usableUntilMs = Number.NEGATIVE_INFINITY;
  private timer: Timer | null = null;
  private beating: Promise<void> | null = null;
  private again = false;
  private stopped = false;

  private constructor(
    private readonly postgres: Postgres,
    private readonly clock: Pick<Clock, "after" | "elapsedMs">,
    readonly name: string,
    readonly epoch: number,
    private seen: number,
    private readonly events: NodeEvents,
  ) {}

  /** Begins a new epoch. Everything that the last one has spent must have been shipped: what it was granted is free again. */
  static async join(
    postgres: Postgres,
    clock: Pick<Clock, "after" | "elapsedMs">,
    name: string,
    events: NodeEvents,
  ): Promise<PostgresNode> {
    const { epoch, seen } = await postgres.transaction(async (sql) => {
      const last = await lockEpoch(sql, name);
      await freeGrants(sql, name);
      const [latest] = await sql<{ version: string }[]>`SELECT version FROM latest_change WHERE one = 1`;
      const next = { epoch: last + 1, seen: Number(latest!.version) };
      await sql`UPDATE nodes SET epoch = ${next.epoch}, open = TRUE, seen = ${next.seen} WHERE name = ${name}`;
      return next;
    });
    const node = new PostgresNode(postgres, clock, name, epoch, seen, events);
    await node.beat();
    return node;
  }

  /** The epoch that a start finds; null for a node that nobody knows. Its journal belongs to it. */
  static async lastEpoch(postgres: Postgres, name: string): Promise<number | null> {
    const [row] = await postgres.query<{ epoch: string }>(
      (sql) => sql`SELECT epoch FROM nodes WHERE name = ${name}`,
    );
    return row === undefined ? null : Number(row.epoch);
  }

  /** Remembered keys and granted money may be used now. */
  usable(): boolean {
    return this.clock.elapsedMs() < this.usableUntilMs;
  }

  get leaseLeftMs(): number {
    return Math.max(0, this.usableUntilMs - this.clock.elapsedMs());
  }

  /** Renews the lease once a second from now on. */
  follow(): void {
    this.timer = this.clock.after(BEAT_MS, () => {
      void this.hurry().finally(() => {
        if (!this.stopped) this.follow();
      });
    });
  }

  /** Looks for changes now, and renews the lease. */
  hurry(): Promise<void> {
    if (this.beating !== null) {
      this.again = true;
      return this.beating;
    }
    this.beating = (async () => {
      do {
        this.again = false;
        await this.beat().catch((error) => this.failed(error));
      } while (this.again && !this.stopped);
    })().finally(() => {
      this.beating = null;
    });
    return this.beating;
  }

  /** Resolves once every node has taken notice of the change, or can no longer act on what was before it. */
  async acknowledged(version: number): Promise<void> {
    void this.hurry();
    for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, LAST_LOOK_MS)) {
      const late = await this.postgres.query<{ name: string }>(
        (sql) =>
          sql`SELECT name FROM nodes WHERE seen < ${version} AND lease_until > clock_timestamp() LIMIT 1`,
      );
      if (late.length === 0) return;
      await new Promise<void>((resolve) => void this.clock.after(waitMs, resolve));
    }
  }

  /** Ends the epoch; everything that it spent must have been shipped. */
  async leave(): Promise<void> {
    await this.stop();
    await this.postgres.transaction(async (sql) => {
      if ((await lockEpoch(sql, this.name)) !== this.epoch) return;
      await freeGrants(sql, this.name);
      await sql`UPDATE nodes SET open = FALSE, lease_until = clock_timestamp() WHERE name = ${this.name}`;
    });
  }

  /** Uses nothing any more, and tells nobody. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.beating;
    this.usableUntilMs = Number.NEGATIVE_INFINITY;
  }

  private async beat(): Promise<void> {
    const { postgres, name, epoch } = this;
    const changes = await postgres.query<ChangeRow>(
      (sql) => sql`SELECT version, key_hash, balance_id, counters FROM changes
        WHERE version > ${this.seen} ORDER BY version LIMIT ${MAX_CHANGES}`,
    );
    // Without a lease nobody has waited for this node: whatever it remembers may have been changed long ago.
    if (!this.usable()) this.events.lapsed();
    if (changes.length > 0) await this.events.changed(changes.map(changeOf));
    const seen = Number(changes.at(-1)?.version ?? this.seen);
    const askedMs = this.clock.elapsedMs();
    const kept = await postgres.query<{ epoch: string }>(
      (
        sql,
      ) => sql`UPDATE nodes SET seen = ${seen}, lease_until = clock_timestamp() + ${`${LEASE_MS} milliseconds`}::interval
        WHERE name = ${name} AND epoch = ${epoch} AND open RETURNING epoch`,
    );
    if (kept.length === 0) throw new EpochOver(`epoch ${epoch} of ${name} is over`);
    this.seen = seen;
    if (!this.stopped) this.usableUntilMs = askedMs + LEASE_MS;
    if (changes.length === MAX_CHANGES) this.again = true;
  }

  private failed(error: unknown): void {
    if (error instanceof EpochOver) {
      this.usableUntilMs = Number.NEGATIVE_INFINITY;
      this.stopped = true;
    }
    this.events.failed(error);
  }
}

export interface NodeEvents {
  /** Forget these; resolves once nothing of what was before them is used. */
  changed(changes: readonly Change[]): Promise<void>;
  /** Forget everything. */
  lapsed(): void;
  /** The lease could not be renewed. After an EpochOver it never will be, and the process must end. */
  failed(error: unknown): void;
}

/** A key, or what the keys of a balance share, is not what it was. */
export interface Change {
  readonly balance: BalanceId;
  readonly key: SecretHash | null;
  /** How the ids of counters begin whose limits may be lower now. */
  readonly counters: readonly string[];
}

/** The channel on which nodes hear that there are changes. */
export const CHANGES = "gateway_changes";

/** Writes down that something changed, in the transaction that changes it. Returns the version to wait for. */
export async function noteChanges(sql: TransactionSQL, changes: readonly Change[]): Promise<number> {
  let version = 0;
  for (const { balance, key, counters } of changes) {
    const [row] = await sql<{ version: string }[]>`
      UPDATE latest_change SET version = version + 1 WHERE one = 1 RETURNING version`;
    version = Number(row!.version);
    await sql`INSERT INTO changes (version, at, key_hash, balance_id, counters)
      VALUES (${version}, clock_timestamp(), ${key}, ${balance}, ${counters.join(" ")})`;
  }
  await sql`SELECT pg_notify(${CHANGES}, '')`;
  return version;
}

/** How long a node goes on without PostgreSQL, and how long a change waits for a node that is gone. */
const LEASE_MS = 10_000;
const BEAT_MS = 1_000;
const MAX_CHANGES = 1_000;
const FIRST_LOOK_MS = 2;
const LAST_LOOK_MS = 50;

interface ChangeRow {
  readonly version: string;
  readonly key_hash: SecretHash | null;
  readonly balance_id: BalanceId;
  readonly counters: string;
}

const changeOf = ({ key_hash, balance_id, counters }: ChangeRow): Change => ({
  balance: balance_id,
  key: key_hash,
  counters: counters === "" ? [] : counters.split(" "),
});

/** The node's row, locked against everybody who settles or ships for it; returns its epoch. */
async function lockEpoch(sql: TransactionSQL, name: string): Promise<number> {
  await sql`INSERT INTO nodes (name, epoch, open, lease_until, seen) VALUES (${name}, 0, FALSE, clock_timestamp(), 0)
    ON CONFLICT (name) DO NOTHING`;
  const [row] = await sql<{ epoch: string }[]>`SELECT epoch FROM nodes WHERE name = ${name} FOR UPDATE`;
  return Number(row!.epoch);
}

async function freeGrants(sql: TransactionSQL, name: string): Promise<void> {
  await sql`SELECT id FROM counters WHERE id IN (SELECT counter FROM grants WHERE node = ${name}) ORDER BY id FOR UPDATE`;
  await sql`UPDATE counters SET reserved = reserved - (held.granted - held.shipped)
    FROM grants AS held WHERE held.node = ${name} AND held.counter = counters.id`;
  await sql`DELETE FROM grants WHERE node = ${name}`;
}
