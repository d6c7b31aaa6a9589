import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { SqliteDatabase } from "../../src/store/database/sqlite-database.ts";
import { systemClock } from "../../src/units/clock.ts";
import { until } from "../fakes/until.ts";
import { describeOnPostgres } from "../postgres/fixture.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";
import { loggedDifferences } from "../store/logged-changes.ts";
import { ADMIN, Folder, GatewayProcess } from "./gateway.ts";

const KILLS = rounds(2, 8, 500);
const CLIENTS = 4;

test("after each kill of a gateway on SQLite, the log has the changes that were made", async () => {
  const folder = new Folder("");
  await killed(folder, async () => {
    const connection = new Database(join(folder.path, "data", "gateway.sqlite"), { readonly: true });
    const differences = await loggedDifferences(new SqliteDatabase(connection));
    connection.close();
    return differences;
  });
  folder.remove();
}, 3_600_000);

describeOnPostgres("on PostgreSQL", (cluster) => {
  test("after each kill, the log has the changes that were made", async () => {
    const url = await cluster.database();
    const folder = new Folder(`store: "${url}"\n`);
    const postgres = new Postgres({ url, connections: 1, deadlineMs: 30_000 }, systemClock);
    const sql = new Bun.SQL(url, { max: 1 });
    await killed(folder, async () => {
      // PostgreSQL may still be committing what the gateway had sent.
      await until(async () => {
        const [row] = await sql`SELECT count(*)::int AS others FROM pg_stat_activity
          WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
        return row.others <= 1;
      });
      return loggedDifferences(new PostgresDatabase(postgres));
    });
    await sql.close();
    await postgres.close();
    folder.remove();
  }, 3_600_000);
});

/** Kills the gateway while operators change what they like, and looks at the store before the next one starts. */
async function killed(folder: Folder, audit: () => Promise<readonly string[]>): Promise<void> {
  const random = new Random(11);
  let changes = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const gateway = await GatewayProcess.start(folder);
    const last = 5 + random.below(60);
    let done = 0;
    const { promise: due, resolve } = Promise.withResolvers<void>();
    const clients = Array.from({ length: CLIENTS }, async (_, at) => {
      const client = new ChangingClient(gateway, new Random(1_000 * kill + at));
      while (await client.step()) if (++done === last) resolve();
    });
    await due;
    // In the middle of what the others have sent.
    for (let turns = random.below(20); turns > 0; turns--) await new Promise((next) => setImmediate(next));
    await gateway.kill();
    await Promise.all(clients);
    changes += done;
    expect(await audit()).toEqual([]);
  }
  expect(changes).toBeGreaterThan(5 * KILLS);
  if (KILLS > 2) console.log(`${KILLS} kills, ${changes} changes answered`);
}

/** One request after another, on balances of its own, until the gateway is gone. */
class ChangingClient {
  private made: { id: string; balance_id: string } | null = null;
  private count = 0;

  constructor(
    private readonly gateway: GatewayProcess,
    private readonly random: Random,
  ) {}

  async step(): Promise<boolean> {
    try {
      await this.change();
      return true;
    } catch (error) {
      // The process is gone; anything else is a mistake here.
      if (error instanceof TypeError || (error as { code?: string }).code !== undefined) return false;
      throw error;
    }
  }

  private async change(): Promise<void> {
    const { random } = this;
    if (this.made === null || random.chance(0.1)) {
      this.made = (await this.send("POST", "/admin/keys", {})).json;
      return;
    }
    const { id, balance_id: balance } = this.made;
    const entry = { balance_id: balance, idempotency_key: `${balance} ${this.count++}` };
    switch (random.below(6)) {
      case 0:
        await this.send("PATCH", `/admin/keys/${id}`, { rpm_limit: 1 + random.below(99) });
        return;
      case 1:
        await this.send("POST", "/admin/credits", { ...entry, amount_usd: 1 + random.below(9) });
        return;
      case 2:
        await this.send("POST", "/admin/debits", { ...entry, amount_usd: 1 });
        return;
      case 3:
        await this.send("POST", `/admin/accounts/${balance}/suspend`, { reason: "sanctions" });
        return;
      case 4:
        await this.send("POST", `/admin/accounts/${balance}/unsuspend`, {});
        return;
      default:
        await this.send("POST", "/admin/operators", { name: `p${random.below(1e9)}`, role: "read" });
    }
  }

  private async send(method: string, path: string, body: object) {
    const reply = await this.gateway.send(method, path, body, ADMIN);
    if (reply.status >= 500) throw new Error(`${method} ${path} answered ${reply.status}: ${reply.text}`);
    return reply;
  }
}
