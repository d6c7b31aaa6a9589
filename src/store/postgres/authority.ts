import { type Authority, type Grant, type Inquiry, LATE_MS, type Statement } from "../../ledger/authority.ts";
import type { CounterId } from "../../ledger/counter.ts";
import { BatchQueue } from "../batch-queue.ts";
import { openInquiries, retireGrants, settleSteps } from "../sql/grants.ts";
import { part, verbatim } from "../sql/statement.ts";
import { type Postgres, URGENT } from "./postgres.ts";
import { PostgresStatements, take } from "./statements.ts";

/** The Authority on PostgreSQL. Statements that come together are settled in one transaction. */
export class PostgresAuthority implements Authority {
  private readonly db: PostgresStatements;
  private readonly queue: BatchQueue<Statement, Grant>;

  constructor(
    private readonly postgres: Postgres,
    defer: (run: () => void) => void = setImmediate,
  ) {
    this.db = new PostgresStatements(postgres);
    this.queue = new BatchQueue((statements) => this.settleAll(statements), defer);
  }

  settle(statement: Statement): Promise<Grant> {
    return this.queue.request(statement);
  }

  async retire(node: string, counters: readonly CounterId[]): Promise<void> {
    if (counters.length > 0) await this.db.write(() => retireGrants(this.db, node, counters));
  }

  /** Notifications arrive sooner, where the database sends them and nothing happened to the connection. */
  inquiries(node: string): Promise<Inquiry[]> {
    return this.db.query<Inquiry>`${openInquiries(node, LATE)}`;
  }

  private settleAll(statements: readonly Statement[]): Promise<Grant[]> {
    return this.postgres.transaction(async (client) => {
      const { grants, recalled } = await take(client, settleSteps(this.db, TERMS, statements));
      const asker = statements[0]!.ledger;
      const words = recalled.map(({ counter, inquiry }) => `${asker} ${counter} ${inquiry}`);
      await this.postgres.notify(client, RECALLS, words);
      return grants;
    }, URGENT);
  }
}

/** The channel on which nodes hear which counters somebody runs short of: `asker counter inquiry`. */
export const RECALLS = "gateway_recalls";

const TERMS = {
  isAlive: part`node IN (SELECT name FROM nodes WHERE lease_until > clock_timestamp())`,
  now: part`clock_timestamp()`,
};
const LATE = part`clock_timestamp() - interval '${verbatim(String(LATE_MS))} milliseconds'`;
