import type { Database } from "bun:sqlite";
import type { LowCreditStore, MarkChange, WatchedBalance } from "../../accounts/low-credit.ts";
import { WATCHED_PAGE, type WatchedRow, watchedFromRow } from "../low-credit-rows.ts";

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

function prepare(db: Database) {
  return {
    // In the order of the index by account, in which accountless balances do not appear.
    watched: db.query<WatchedRow<number>, [string, string, number]>(
      `SELECT b.id, b.account_id, a.email, coalesce(t.credited, 0) AS credited, coalesce(t.spent, 0) AS spent,
         m.state, m.until, m.credited AS marked_at
       FROM balances b JOIN accounts a ON a.id = b.account_id
         LEFT JOIN totals t ON t.account = 'balance:' || b.id
         LEFT JOIN low_credit m ON m.balance_id = b.id
       WHERE b.closed_at IS NULL AND b.account_id >= ?1 AND (b.account_id > ?1 OR b.id > ?2)
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
