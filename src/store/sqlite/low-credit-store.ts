import type { Database } from "bun:sqlite";
import type { Email } from "../../accounts/email.ts";
import type { LowCreditMark, LowCreditStore, MarkChange, WatchedBalance } from "../../accounts/low-credit.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { NanoUsd } from "../../units/usd.ts";

/** Marks of low credit in SQLite. The marks of a page share one sync. */
export class SqliteLowCreditStore implements LowCreditStore {
  private readonly statements;

  constructor(private readonly db: Database) {
    this.statements = prepare(db);
  }

  async watched(after: WatchedBalance | null): Promise<readonly WatchedBalance[]> {
    return this.statements.watched
      .all(after?.accountId ?? "", after?.id ?? "", WATCHED_PAGE)
      .map(watchedFromRow);
  }

  async mark<C extends MarkChange>(changes: readonly C[]): Promise<readonly C[]> {
    if (changes.length === 0) return [];
    return this.db.transaction(() => changes.filter((change) => this.markOne(change))).immediate();
  }

  private markOne({ balance, mark: { state, until, credited } }: MarkChange): boolean {
    const { id, mark: was } = balance;
    const { changes } =
      was === null
        ? this.statements.add.run(id, state, until, credited)
        : this.statements.change.run(state, until, credited, id, was.state, was.until, was.credited);
    return changes === 1;
  }
}

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

function prepare(db: Database) {
  return {
    // In the order of the index by account, in which accountless balances do not appear.
    watched: db.query<WatchedRow<number>, [string, string, number]>(
      `SELECT b.id, b.account_id, a.email, coalesce(t.credited, 0) AS credited, coalesce(t.spent, 0) AS spent,
         m.state, m.until, m.credited AS marked_at
       FROM balances b JOIN accounts a ON a.id = b.account_id
         LEFT JOIN totals t ON t.account = 'balance:' || b.id
         LEFT JOIN low_credit m ON m.balance_id = b.id
       WHERE b.account_id >= ?1 AND (b.account_id > ?1 OR b.id > ?2)
         AND b.suspended IS NULL AND a.suspended IS NULL
       ORDER BY b.account_id, b.id LIMIT ?3`,
    ),
    add: db.query<never, [string, string, number, number]>(
      "INSERT OR IGNORE INTO low_credit (balance_id, state, until, credited) VALUES (?, ?, ?, ?)",
    ),
    change: db.query<never, [string, number, number, string, string, number, number]>(
      `UPDATE low_credit SET state = ?, until = ?, credited = ?
       WHERE balance_id = ? AND state = ? AND until = ? AND credited = ?`,
    ),
  };
}
