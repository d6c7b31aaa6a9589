import {
  type SigningKey,
  type SigningKeyRow,
  type SigningKeyStore,
  signingKeyFromRow,
} from "../signing-keys.ts";
import type { Postgres } from "./postgres.ts";

export class PostgresSigningKeyStore implements SigningKeyStore {
  constructor(private readonly postgres: Postgres) {}

  async list(): Promise<readonly SigningKey[]> {
    const rows = await this.postgres.query<SigningKeyRow<string>>(
      (sql) => sql`SELECT number, created_at, x, d FROM signing_keys ORDER BY number`,
    );
    return rows.map(signingKeyFromRow);
  }

  async add({ number, createdAt, x, d }: SigningKey): Promise<boolean> {
    return this.postgres.transaction(async (sql) => {
      const added = await sql`
        INSERT INTO signing_keys (number, created_at, x, d) VALUES (${number}, ${createdAt}, ${x}, ${d})
        ON CONFLICT DO NOTHING RETURNING number`;
      if (added.length === 1) await sql`UPDATE signing_keys SET d = NULL WHERE number < ${number}`;
      return added.length === 1;
    });
  }
}
