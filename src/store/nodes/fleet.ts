import { type NotedPrices, priceEvents } from "../../ledger/price-events.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { logging } from "../customers/change-log.ts";
import { recording } from "../customers/events.ts";
import { changesOne, type Database, sql } from "../database/database.ts";

/** What all processes of a store have in common: secrets that the first start makes, and what each node runs with. */
export class FleetStore {
  constructor(private readonly db: Database) {}

  /** The secret of this name: `made`, unless another process has made it before. */
  async secret(name: string, made: string): Promise<string> {
    await this.db.commit([
      sql`INSERT INTO fleet_secrets (name, secret) VALUES (${name}, ${made}) ON CONFLICT DO NOTHING`,
    ]);
    const [row] = await this.db.read<{
      secret: string;
    }>`SELECT secret FROM fleet_secrets WHERE name = ${name}`;
    return row!.secret;
  }

  /** What a node runs with, from its start or its latest reload on. */
  async note(node: string, settings: NodeSettings): Promise<void> {
    await this.db.commit([
      sql`INSERT INTO node_settings (node, settings) VALUES (${node}, ${JSON.stringify(settings)})
        ON CONFLICT (node) DO UPDATE SET settings = excluded.settings`,
    ]);
  }

  async settings(): Promise<ReadonlyMap<string, NodeSettings>> {
    const rows = await this.db.read<{ node: string; settings: string }>`
      SELECT node, settings FROM node_settings WHERE node IN (SELECT name FROM nodes WHERE open)`;
    return new Map(rows.map(({ node, settings }) => [node, JSON.parse(settings)]));
  }
}

/** Hashes by which nodes compare themselves: of the admin token, and of each member of the configuration. */
export type NodeSettings = Readonly<Record<string, string>>;

/** Members in which the two differ. */
export function differences(one: NodeSettings, other: NodeSettings): string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].filter((name) => one[name] !== other[name]).sort();
}

/** What a node writes of its admin token: without the fleet's secret, nobody can try tokens against it. */
export const hashOfToken = (token: string, secret: string): string =>
  new Bun.CryptoHasher("sha256", secret).update(`admin token ${token}`).digest("hex");

/** By which free requests of a network are counted. */
export const NETWORKS = "networks";
export const ADMIN_TOKEN = "GATEWAY_ADMIN_TOKEN";

/** Gateways that share a store; none, where one process has its own. */
export interface NodeOperations {
  list(): Promise<readonly NodeReport[]>;
  /** Frees what a node was granted that has no lease any more. */
  close(name: string): Promise<"closed" | "alive" | "unknown">;
}

export interface NodeReport {
  readonly name: string;
  readonly state: "alive" | "silent" | "left";
  readonly leaseUntil: EpochMs;
  readonly epoch: number;
  /** For balances: granted, and not shipped as spent. */
  readonly reserved: NanoUsd;
}

/** A key that receipts are signed with. */
export interface SigningKey {
  /** From 1; the highest one signs. */
  readonly number: number;
  readonly createdAt: EpochMs;
  /** Base64url, as in its JSON Web Key. */
  readonly x: string;
  /** The private part; null once another key has taken its place. */
  readonly d: string | null;
}

/**
 * Where all processes that share a store find the same keys. In SQLite that is the data folder's database,
 * which only its owner can read; in PostgreSQL, every role that may read the table.
 */
export class SigningKeyStore {
  constructor(private readonly db: Database) {}

  /** Oldest first. */
  async list(): Promise<readonly SigningKey[]> {
    return this.db.read<SigningKey>`
      SELECT number, created_at AS "createdAt", x, d FROM signing_keys ORDER BY number`;
  }

  /**
   * Durable; erases the private parts of earlier keys. False where another process has added one of that
   * number, and nothing was changed.
   */
  async add({ number, createdAt, x, d }: SigningKey): Promise<boolean> {
    const added = await this.db.commit([
      changesOne(sql`INSERT INTO signing_keys (number, created_at, x, d)
        VALUES (${number}, ${createdAt}, ${x}, ${d}) ON CONFLICT DO NOTHING`),
      logging({
        action: "signing_key.created",
        subject: String(number),
        balance: null,
        before: {},
        after: { x },
      }),
      sql`UPDATE signing_keys SET d = NULL WHERE number < ${number}`,
    ]);
    return added !== null;
  }
}

/** Models and prices that the operator applied from model lists, on top of what the configuration offers. */
export interface ModelVersion {
  /** From 1; the highest one is in force. */
  readonly number: number;
  readonly at: EpochMs;
  /** The model list that was applied last, as the operator named it. */
  readonly source: string;
  /** The version to go back to; 0 for none, which is what the configuration offers. */
  readonly previous: number;
  /** Rows of models at hosts, as JSON: see config/synced-models. */
  readonly models: string;
}

/** Where all processes that share a store find the same models. */
export class ModelVersionStore {
  constructor(private readonly db: Database) {}

  /** The number of the one in force; 0 for none. */
  async latest(): Promise<number> {
    const [row] = await this.db.read<{ latest: number | null }>`
      SELECT max(number) AS latest FROM model_versions`;
    return Number(row?.latest ?? 0);
  }

  /** Null where none was applied under this number, or it is too old to be kept. */
  async version(number: number): Promise<ModelVersion | null> {
    const [row] = await this.db.read<ModelVersion>`
      SELECT number, at, source, previous, models FROM model_versions WHERE number = ${number}`;
    return row ?? null;
  }

  /** Durable. False where another process has applied one of that number, and nothing was changed. */
  async add({ number, at, source, previous, models }: ModelVersion): Promise<boolean> {
    const added = await this.db.commit([
      changesOne(sql`INSERT INTO model_versions (number, at, source, previous, models)
        VALUES (${number}, ${at}, ${source}, ${previous}, ${models}) ON CONFLICT DO NOTHING`),
      logging({
        action: "models.applied",
        subject: String(number),
        balance: null,
        before: { version: number - 1 },
        after: { version: number, source, previous },
      }),
      sql`DELETE FROM model_versions WHERE number <= ${number - MAX_KEPT_VERSIONS}`,
    ]);
    return added !== null;
  }
}

/** Older versions are deleted. */
const MAX_KEPT_VERSIONS = 100;

/**
 * The prices that some process of the store last put in force: whichever is the first to have others records that as an
 * event. The others find the row as they would have written it.
 */
export class SqlPricesInForce {
  constructor(private readonly db: Database) {}

  /** A process calls this when its own prices have changed, and at its start. One that is behind with model lists is late. */
  note(snapshot: NotedPrices, at: EpochMs): Promise<void> {
    return this.db.change("prices in force", async () => {
      const [row] = await this.db.read<PricesRow>`SELECT number, snapshot FROM prices_in_force`;
      const text = JSON.stringify(snapshot);
      if (row === undefined)
        return {
          result: undefined,
          statements: [
            changesOne(sql`INSERT INTO prices_in_force (one, number, snapshot) VALUES (1, 1, ${text})
              ON CONFLICT DO NOTHING`),
          ],
        };
      const before = JSON.parse(row.snapshot) as NotedPrices;
      if (before.version === snapshot.version || before.modelVersion > snapshot.modelVersion)
        return { result: undefined };
      const number = row.number + 1;
      return {
        result: undefined,
        statements: [
          changesOne(sql`UPDATE prices_in_force SET number = ${number}, snapshot = ${text}
            WHERE number = ${number - 1}`),
          recording(this.db, priceEvents(before, snapshot, { number, at })),
        ],
      };
    });
  }
}

interface PricesRow {
  readonly number: number;
  /** JSON */
  readonly snapshot: string;
}
