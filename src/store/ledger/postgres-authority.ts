import type { TransactionSQL } from "bun";
import { type Authority, type Grant, type Inquiry, LATE_MS, type Statement } from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import { type Postgres, URGENT } from "../database/postgres.ts";
import { PostgresDatabase, rowsOf } from "../database/postgres-database.ts";
import { sql, verbatim } from "../database/statement.ts";
import { BatchQueue } from "../nodes/batch-queue.ts";
import { askingOthers, type OthersRow, openInquiries, retiring, settling } from "./grants.ts";

/** The Authority on PostgreSQL. Statements that come together are settled in one transaction. */
export class PostgresAuthority implements Authority {
  private readonly db: PostgresDatabase;
  private readonly queue: BatchQueue<Statement, Grant>;

  constructor(
    private readonly postgres: Postgres,
    defer: (run: () => void) => void = setImmediate,
  ) {
    this.db = new PostgresDatabase(postgres);
    this.queue = new BatchQueue((statements) => this.settleAll(statements), defer);
  }

  settle(statement: Statement): Promise<Grant> {
    return this.queue.request(statement);
  }

  async retire(node: string, counters: readonly CounterId[]): Promise<void> {
    if (counters.length > 0) await this.db.commit([retiring(this.db, node, counters)]);
  }

  /** Notifications arrive sooner, where the database sends them and nothing happened to the connection. */
  inquiries(node: string): Promise<Inquiry[]> {
    return this.db.rows<Inquiry>(openInquiries(node, LATE));
  }

  private async settleAll(statements: readonly Statement[]): Promise<readonly Grant[]> {
    const asker = statements[0]!.ledger;
    const others = async (client: TransactionSQL, granted: Grant[]) => {
      const { query, decided } = askingOthers(this.db, IS_ALIVE, statements, granted);
      const rows = await Promise.all(query.map((one) => rowsOf(client, one)));
      const { grants, recalled } = decided(rows.flat() as OthersRow[]);
      const words = recalled.map(({ counter, inquiry }) => `${asker} ${counter} ${inquiry}`);
      await this.postgres.notify(client, RECALLS, words);
      return [...grants];
    };
    return this.db.locked(settling(this.db, sql`clock_timestamp()`, statements), others, URGENT);
  }
}

/** The channel on which nodes hear which counters somebody runs short of: `asker counter inquiry`. */
export const RECALLS = "gateway_recalls";

const IS_ALIVE = sql`node IN (SELECT name FROM nodes WHERE lease_until > clock_timestamp())`;
const LATE = sql`clock_timestamp() - interval '${verbatim(String(LATE_MS))} milliseconds'`;
