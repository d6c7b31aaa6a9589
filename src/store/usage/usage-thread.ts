import { Database } from "bun:sqlite";
import { systemClock } from "../../units/clock.ts";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import { Postgres } from "../database/postgres.ts";
import { keyActivityFromPostgres, keyActivityFromSqlite } from "./key-activity.ts";
import { spendingFromPostgres, spendingFromSqlite } from "./spending.ts";
import type { UsageQuestion, UsageResult, UsageScope, UsageThreadAnswer } from "./usage.ts";
import { sumUsage, type UsageRow, type UsageSums } from "./usage-sums.ts";

/** Reads and adds up receipts, off the event loop: see usage.ts. */
declare const self: Worker;

let db: Database | null = null;

let postgres: Postgres | null = null;

self.onmessage = async ({ data: question }: MessageEvent<UsageQuestion>) => {
  try {
    self.postMessage({ id: question.id, sums: await answer(question) } satisfies UsageThreadAnswer);
  } catch (error) {
    const unreachable = error instanceof StoreUnreachable;
    const problem = unreachable ? error.message : String(error);
    self.postMessage({ id: question.id, problem, unreachable } satisfies UsageThreadAnswer);
  }
};

async function answer({ path, ...query }: UsageQuestion): Promise<UsageResult> {
  if (path.includes("://")) {
    postgres ??= new Postgres({ url: path, connections: 1, deadlineMs: DEADLINE_MS }, systemClock);
    if (query.kind === "keys") return keyActivityFromPostgres(postgres, query.of);
    return query.kind === "sums"
      ? answerFromPostgres(postgres, query.of)
      : spendingFromPostgres(postgres, query.of);
  }
  db ??= new Database(path, { readonly: true });
  if (query.kind === "keys") return keyActivityFromSqlite(db, query.of);
  return query.kind === "sums" ? answerFromSqlite(db, query.of) : spendingFromSqlite(db, query.of);
}

async function answerFromPostgres(store: Postgres, of: UsageScope): Promise<UsageSums> {
  const { balanceId, keyId, run = null, since, until = null } = of;
  const rows = await store.query<UsageRow>(
    (sql) => sql`
      SELECT at, key_id AS "keyId", state, charged, body FROM ends
      WHERE at >= ${since} AND (${until}::bigint IS NULL OR at < ${until}) AND (${balanceId}::text IS NULL OR balance_id = ${balanceId})
        AND (${keyId}::text IS NULL OR key_id = ${keyId})
        AND (${run}::text IS NULL OR body::json ->> 'run' = ${run})
      ORDER BY at DESC LIMIT ${MAX_ROWS + 1}`,
  );
  return sumUsage(rows, of, MAX_ROWS);
}

function answerFromSqlite(books: Database, of: UsageScope) {
  const { balanceId, keyId, run = null, since, until = null } = of;
  // The newest only, through an index that ends in the sequence: how long this takes does not grow with the
  // books.
  const newest =
    balanceId === null
      ? "SELECT * FROM ends WHERE ?1 IS NULL ORDER BY seq DESC"
      : "SELECT * FROM ends WHERE balance_id = ?1 ORDER BY seq DESC";
  const rows = books
    .query<UsageRow, [string | null, string | null, number, string | null, number | null]>(
      `SELECT at, key_id AS keyId, state, charged, body FROM (${newest} LIMIT ${MAX_ROWS + 1})
       WHERE (?2 IS NULL OR key_id = ?2) AND at >= ?3 AND (?5 IS NULL OR at < ?5) AND (?4 IS NULL OR body ->> '$.run' = ?4)`,
    )
    .iterate(balanceId, keyId, since, run, until);
  return sumUsage(rows, of, MAX_ROWS);
}

/** Receipts that one answer looks at: half a second of this thread. */
const MAX_ROWS = 50_000;
/** Nobody waits longer for a chart; one connection that hangs would keep all of them waiting. */
const DEADLINE_MS = 30_000;
