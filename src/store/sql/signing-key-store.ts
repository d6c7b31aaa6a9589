import type { SigningKey, SigningKeyStore } from "../signing-keys.ts";
import { type SqlDatabase, sql } from "./statement.ts";

export class SqlSigningKeyStore implements SigningKeyStore {
  constructor(private readonly db: SqlDatabase) {}

  async list(): Promise<readonly SigningKey[]> {
    return this.db.query<SigningKey>`
      SELECT number, created_at AS "createdAt", x, d FROM signing_keys ORDER BY number`;
  }

  async add({ number, createdAt, x, d }: SigningKey): Promise<boolean> {
    return this.db.write(function* () {
      const added = yield* sql`INSERT INTO signing_keys (number, created_at, x, d)
        VALUES (${number}, ${createdAt}, ${x}, ${d}) ON CONFLICT DO NOTHING RETURNING number`;
      if (added.length === 1) yield* sql`UPDATE signing_keys SET d = NULL WHERE number < ${number}`;
      return added.length === 1;
    });
  }
}
