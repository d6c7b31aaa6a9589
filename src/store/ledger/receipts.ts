import type { TerminalRecord } from "../../ledger/record.ts";
import { type EpochMs, epochMs, HOUR_MS } from "../../units/clock.ts";
import { type BalanceId, firstReceiptId, type KeyId, type ReceiptId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { type SqlPart, sql } from "../database/database.ts";

export interface StoredReceipt {
  readonly id: ReceiptId;
  readonly at: EpochMs;
  readonly balanceId: BalanceId;
  readonly keyId: KeyId;
  /** JSON, as it is answered. */
  readonly body: string;
}

/** What the store will say of this end once it is booked. */
export const storedReceipt = ({ receipt, at, balance, key, body }: TerminalRecord): StoredReceipt => ({
  id: receipt,
  at,
  balanceId: balance,
  keyId: key,
  body,
});

/** Null for any. */
export interface ReceiptFilter {
  readonly keyId: KeyId | null;
  /** As asked for, or as served. */
  readonly model: string | null;
  readonly state: string | null;
  /** The one that served. */
  readonly host: string | null;
  readonly error: string | null;
  readonly leastCost: NanoUsd | null;
  /** When the request began: from then on, and before then. */
  readonly since: EpochMs | null;
  readonly until: EpochMs | null;
}

export const ANY_RECEIPT: ReceiptFilter = {
  keyId: null,
  model: null,
  state: null,
  host: null,
  error: null,
  leastCost: null,
  since: null,
  until: null,
};

export interface StoredReceiptPage {
  readonly receipts: readonly StoredReceipt[];
  /** The id to pass as `before` for the next page; null at the end. */
  readonly nextBefore: ReceiptId | null;
}

/** Ends that no other process can read yet. */
export interface UnbookedReceipts {
  /** The end with this receipt, if it is durable and the database does not have it yet; otherwise null. */
  unbooked(id: ReceiptId): StoredReceipt | null;
}

export interface ReceiptReader {
  /** `patient`: a young one that is not there is looked for again, once other nodes may have shipped it. */
  receipt(id: ReceiptId, patient?: boolean): Promise<StoredReceipt | null>;
  /** Newest first, from below `before`; with null for the balance, everybody's. */
  receipts(
    balance: BalanceId | null,
    filter: ReceiptFilter,
    limit: number,
    before: ReceiptId | null,
  ): Promise<StoredReceiptPage>;
}

/** In SQLite, the sequence from which on no request began before `at`; null: beyond all. */
export const seqBehind = (at: EpochMs | null): SqlPart =>
  at === null
    ? sql`${Number.MAX_SAFE_INTEGER}`
    : sql`coalesce((SELECT seq FROM ends WHERE receipt >= ${firstReceiptId(epochMs(at + LATE_MS))}
        ORDER BY receipt LIMIT 1), ${Number.MAX_SAFE_INTEGER})`;

/** Ends are in the order of their booking, which is at most so long after their requests began. */
export const LATE_MS = HOUR_MS;
