import type { EpochMs } from "../../units/clock.ts";

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
 * which only its owner can read; in PostgreSQL, whoever may read the table.
 */
export interface SigningKeyStore {
  /** Oldest first. */
  list(): Promise<readonly SigningKey[]>;
  /**
   * Durable; erases the private parts of earlier keys. False where another process has added one of that
   * number, and nothing was changed.
   */
  add(key: SigningKey): Promise<boolean>;
}
