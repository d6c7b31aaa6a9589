import type { Clock } from "../../units/clock.ts";
import { logging, SqlChangeLog } from "../customers/change-log.ts";
import { SqlEventReader } from "../customers/event-reader.ts";
import { SqlOperatorStore } from "../customers/operator-store.ts";
import { SqlOwnWebhookStore } from "../customers/own-webhook-store.ts";
import { SqlWebhookStore } from "../customers/webhook-store.ts";
import type { Database } from "../database/database.ts";
import { changesOne, sql } from "../database/statement.ts";
import { SqlExportStore } from "../export/export-store.ts";
import type { FleetStore, NodeSettings } from "../nodes/fleet.ts";
import { SqlGasLineStore } from "../payments/gas-line-store.ts";
import { SqlPaymentStore } from "../payments/payment-store.ts";
import { MAX_KEPT_VERSIONS, type ModelVersion, type ModelVersionStore } from "./model-versions.ts";
import type { SigningKey, SigningKeyStore } from "./signing-keys.ts";

/** The stores whose changes no node has to notice. */
export const sqlStores = (db: Database, clock: Pick<Clock, "now">) => ({
  events: new SqlEventReader(db),
  webhooks: new SqlWebhookStore(db),
  ownWebhooks: new SqlOwnWebhookStore(db),
  exports: new SqlExportStore(db),
  payments: new SqlPaymentStore(db, clock),
  gasLine: new SqlGasLineStore(db),
  signingKeys: new SqlSigningKeyStore(db),
  fleet: new SqlFleetStore(db),
  modelVersions: new SqlModelVersionStore(db),
  changes: new SqlChangeLog(db),
  operators: new SqlOperatorStore(db),
});

export class SqlFleetStore implements FleetStore {
  constructor(private readonly db: Database) {}

  async secret(name: string, made: string): Promise<string> {
    await this.db.commit([
      sql`INSERT INTO fleet_secrets (name, secret) VALUES (${name}, ${made}) ON CONFLICT DO NOTHING`,
    ]);
    const [row] = await this.db.read<{
      secret: string;
    }>`SELECT secret FROM fleet_secrets WHERE name = ${name}`;
    return row!.secret;
  }

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

export class SqlSigningKeyStore implements SigningKeyStore {
  constructor(private readonly db: Database) {}

  async list(): Promise<readonly SigningKey[]> {
    return this.db.read<SigningKey>`
      SELECT number, created_at AS "createdAt", x, d FROM signing_keys ORDER BY number`;
  }

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

class SqlModelVersionStore implements ModelVersionStore {
  constructor(private readonly db: Database) {}

  async latest(): Promise<number> {
    const [row] = await this.db.read<{ latest: number | null }>`
      SELECT max(number) AS latest FROM model_versions`;
    return Number(row?.latest ?? 0);
  }

  async version(number: number): Promise<ModelVersion | null> {
    const [row] = await this.db.read<ModelVersion>`
      SELECT number, at, source, previous, models FROM model_versions WHERE number = ${number}`;
    return row ?? null;
  }

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
