import type { EpochMs } from "../../units/clock.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import { sql } from "../database/database.ts";
import { endOf, type ReceiptSource } from "./receipt-source.ts";

/** What a key was charged in a period, and when its newest request began. */
export interface KeyActivity {
  readonly keyId: KeyId;
  readonly chargedNano: number;
  readonly lastAt: EpochMs;
}

export interface KeyActivityScope {
  readonly balanceId: BalanceId;
  /** The period that charges are added up over. */
  readonly since: EpochMs;
  readonly until: EpochMs | null;
  /** Keys that were not used from then on are left out. */
  readonly usedSince: EpochMs;
}

/** No receipt's body is read, which takes a tenth of the time that sums by model take. */
export function keyActivity(
  { db, newest }: ReceiptSource,
  { balanceId, since, until, usedSince }: KeyActivityScope,
): Promise<readonly KeyActivity[]> {
  const isUsed = sql`at >= ${usedSince}`;
  const all = { balanceId, until: null, filter: isUsed, most: MAX_RECEIPTS };
  const receipts = newest(sql`key_id, at, charged`, all);
  return db.read<KeyActivity>`
    SELECT key_id AS "keyId", max(at) AS "lastAt",
      CAST(sum(CASE WHEN at >= ${since} AND at < ${endOf(until)} THEN charged ELSE 0 END) AS BIGINT) AS "chargedNano"
    FROM (${receipts}) AS receipts GROUP BY key_id`;
}

/** The newest of the balance: six tenths of a second of the thread. */
const MAX_RECEIPTS = 1_000_000;
