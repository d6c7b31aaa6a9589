import type { FleetStore, NodeSettings } from "../fleet.ts";
import { type SqlDatabase, sql } from "./statement.ts";

export class SqlFleetStore implements FleetStore {
  constructor(private readonly db: SqlDatabase) {}

  async secret(name: string, made: string): Promise<string> {
    await this.db.write(function* () {
      yield* sql`INSERT INTO fleet_secrets (name, secret) VALUES (${name}, ${made}) ON CONFLICT DO NOTHING`;
    });
    const [row] = await this.db.query<{
      secret: string;
    }>`SELECT secret FROM fleet_secrets WHERE name = ${name}`;
    return row!.secret;
  }

  async note(node: string, settings: NodeSettings): Promise<void> {
    await this.db.write(function* () {
      yield* sql`INSERT INTO node_settings (node, settings) VALUES (${node}, ${JSON.stringify(settings)})
        ON CONFLICT (node) DO UPDATE SET settings = excluded.settings`;
    });
  }

  async settings(): Promise<ReadonlyMap<string, NodeSettings>> {
    const rows = await this.db.query<{ node: string; settings: string }>`
      SELECT node, settings FROM node_settings WHERE node IN (SELECT name FROM nodes WHERE open)`;
    return new Map(rows.map(({ node, settings }) => [node, JSON.parse(settings)]));
  }
}
