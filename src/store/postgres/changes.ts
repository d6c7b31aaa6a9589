import type { TransactionSQL } from "bun";
import type { NotedChange } from "../changes.ts";
import type { Postgres } from "./postgres.ts";

/** The channel that wakes nodes when there are changes. */
export const CHANGES = "gateway_changes";

/** Records changes in the transaction that makes them. Returns the version that nodes have to reach. */
export async function noteChanges(
  postgres: Postgres,
  sql: TransactionSQL,
  changes: readonly NotedChange[],
): Promise<number> {
  const [row] = await sql<{ version: bigint }[]>`
    UPDATE latest_change SET version = version + ${changes.length} WHERE one = 1 RETURNING version`;
  const version = Number(row!.version);
  const rows = changes.map(({ balance, key, counters }, at) => ({
    version: version - changes.length + 1 + at,
    key_hash: key,
    balance_id: balance,
    counters: counters.join(" "),
  }));
  // Renewals of leases wait until this commits.
  await sql`INSERT INTO changes (version, at, key_hash, balance_id, counters)
    SELECT version, clock_timestamp(), key_hash, balance_id, counters
    FROM json_to_recordset(${JSON.stringify(rows)}::text::json)
      AS row (version BIGINT, key_hash TEXT, balance_id TEXT, counters TEXT)`;
  await postgres.notify(sql, CHANGES, [""]);
  return version;
}
