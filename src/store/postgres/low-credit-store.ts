import type { TransactionSQL } from "bun";
import type { LowCreditStore, MarkChange, WatchedBalance } from "../../accounts/low-credit.ts";
import { WATCHED_PAGE, type WatchedRow, watchedFromRow } from "../low-credit-rows.ts";
import type { Postgres } from "./postgres.ts";

/** Marks of low credit in PostgreSQL: of several gateways that make the same mark, one has made it. */
export class PostgresLowCreditStore implements LowCreditStore {
  constructor(private readonly postgres: Postgres) {}

  async watched(after: WatchedBalance | null): Promise<readonly WatchedBalance[]> {
    const account = after?.accountId ?? "";
    const id = after?.id ?? "";
    const rows = await this.postgres.query<WatchedRow<string>>(
      (sql) => sql`
        SELECT b.id, b.account_id, a.email, coalesce(c.credited, 0) AS credited, coalesce(c.spent, 0) AS spent,
          m.state, m.until, m.credited AS marked_at
        FROM balances b JOIN accounts a ON a.id = b.account_id
          LEFT JOIN counters c ON c.id = 'balance:' || b.id
          LEFT JOIN low_credit m ON m.balance_id = b.id
        WHERE b.closed_at IS NULL AND b.account_id >= ${account} AND (b.account_id > ${account} OR b.id > ${id})
          AND b.suspended IS NULL AND a.suspended IS NULL
        ORDER BY b.account_id, b.id LIMIT ${WATCHED_PAGE}`,
    );
    return rows.map(watchedFromRow);
  }

  async mark<C extends MarkChange>(changes: readonly C[]): Promise<readonly C[]> {
    if (changes.length === 0) return [];
    return this.postgres.transaction(async (sql) => {
      const made: C[] = [];
      for (const change of changes) if (await markOne(sql, change)) made.push(change);
      return made;
    });
  }
}

async function markOne(sql: TransactionSQL, { balance, mark }: MarkChange): Promise<boolean> {
  const { state, until, credited } = mark;
  const { id, mark: was } = balance;
  const rows =
    was === null
      ? await sql`INSERT INTO low_credit (balance_id, state, until, credited)
          VALUES (${id}, ${state}, ${until}, ${credited}) ON CONFLICT DO NOTHING RETURNING balance_id`
      : await sql`UPDATE low_credit SET state = ${state}, until = ${until}, credited = ${credited}
          WHERE balance_id = ${id} AND state = ${was.state} AND until = ${was.until} AND credited = ${was.credited}
          RETURNING balance_id`;
  return rows.length === 1;
}
