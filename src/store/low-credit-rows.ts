import type { Email } from "../accounts/email.ts";
import type { LowCreditMark, WatchedBalance } from "../accounts/low-credit.ts";
import type { EpochMs } from "../units/clock.ts";
import type { AccountId, BalanceId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";

/** Balances that are read at once: two milliseconds of the event loop where the file is large. */
export const WATCHED_PAGE = 50;

/** A balance with its account and mark. Whole numbers come as numbers from SQLite, as text from PostgreSQL. */
export interface WatchedRow<Whole extends number | string> {
  readonly id: BalanceId;
  readonly account_id: AccountId;
  readonly email: Email | null;
  readonly credited: Whole;
  readonly spent: Whole;
  readonly state: LowCreditMark["state"] | null;
  readonly until: Whole | null;
  readonly marked_at: Whole | null;
}

export function watchedFromRow(row: WatchedRow<number | string>): WatchedBalance {
  const { id, account_id, email, state } = row;
  const credited = Number(row.credited) as NanoUsd;
  return {
    id,
    accountId: account_id,
    email,
    credited,
    left: (credited - Number(row.spent)) as NanoUsd,
    mark:
      state === null
        ? null
        : { state, until: Number(row.until) as EpochMs, credited: Number(row.marked_at) as NanoUsd },
  };
}
