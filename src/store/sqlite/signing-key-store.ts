import type { Database } from "bun:sqlite";
import {
  type SigningKey,
  type SigningKeyRow,
  type SigningKeyStore,
  signingKeyFromRow,
} from "../signing-keys.ts";

export class SqliteSigningKeyStore implements SigningKeyStore {
  constructor(private readonly db: Database) {}

  async list(): Promise<readonly SigningKey[]> {
    const rows = this.db.query<SigningKeyRow<number>, []>("SELECT * FROM signing_keys ORDER BY number").all();
    return rows.map(signingKeyFromRow);
  }

  async add({ number, createdAt, x, d }: SigningKey): Promise<boolean> {
    return this.db
      .transaction(() => {
        const { changes } = this.db
          .query("INSERT OR IGNORE INTO signing_keys (number, created_at, x, d) VALUES (?, ?, ?, ?)")
          .run(number, createdAt, x, d);
        if (changes === 1) this.db.query("UPDATE signing_keys SET d = NULL WHERE number < ?").run(number);
        return changes === 1;
      })
      .immediate();
  }
}
