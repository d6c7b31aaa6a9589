import type {
  LowCreditMark,
  LowCreditStore,
  MarkChange,
  WatchedBalance,
} from "../../customers/accounts/low-credit.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { type SqlDatabase, type Steps, sql } from "./statement.ts";

/** Marks of low credit: of several gateways that make the same mark, one has made it. A page of them shares one sync. */
export class SqlLowCreditStore implements LowCreditStore {
  constructor(private readonly db: SqlDatabase) {}

  async watched(after: WatchedBalance | null): Promise<readonly WatchedBalance[]> {
    const account = after?.accountId ?? "";
    const id = after?.id ?? "";
    // In the order of the index by account, in which accountless balances do not appear.
    const rows = await this.db.query<WatchedRow>`
      SELECT b.id, b.account_id AS "accountId", a.email, coalesce(t.credited, 0) AS credited,
        coalesce(t.credited, 0) - coalesce(t.spent, 0) AS "left", m.state, m.until, m.credited AS "markedAt"
      FROM balances b JOIN accounts a ON a.id = b.account_id
        LEFT JOIN counters t ON t.id = 'balance:' || b.id
        LEFT JOIN low_credit m ON m.balance_id = b.id
      WHERE b.closed_at IS NULL AND b.account_id >= ${account} AND (b.account_id > ${account} OR b.id > ${id})
        AND b.suspended IS NULL AND a.suspended IS NULL
      ORDER BY b.account_id, b.id LIMIT ${WATCHED_PAGE}`;
    return rows.map(watchedFromRow);
  }

  async mark<C extends MarkChange>(changes: readonly C[]): Promise<readonly C[]> {
    if (changes.length === 0) return [];
    return this.db.write(function* () {
      const made: C[] = [];
      for (const change of changes) if (yield* markOne(change)) made.push(change);
      return made;
    });
  }
}

function* markOne({ balance: { id, mark: was }, mark }: MarkChange): Steps<boolean> {
  const { state, until, credited } = mark;
  const rows =
    was === null
      ? yield* sql`INSERT INTO low_credit (balance_id, state, until, credited)
          VALUES (${id}, ${state}, ${until}, ${credited}) ON CONFLICT DO NOTHING RETURNING balance_id`
      : yield* sql`UPDATE low_credit SET state = ${state}, until = ${until}, credited = ${credited}
          WHERE balance_id = ${id} AND state = ${was.state} AND until = ${was.until} AND credited = ${was.credited}
          RETURNING balance_id`;
  return rows.length === 1;
}

/** Balances that are read at once: two milliseconds of the event loop where SQLite's file is large. */
const WATCHED_PAGE = 50;

/** Without a mark, its members are null. */
type WatchedRow = Omit<WatchedBalance, "mark"> & {
  readonly state: LowCreditMark["state"] | null;
  readonly until: EpochMs;
  readonly markedAt: NanoUsd;
};

const watchedFromRow = ({ state, until, markedAt, ...balance }: WatchedRow): WatchedBalance => ({
  ...balance,
  mark: state === null ? null : { state, until, credited: markedAt },
});
