import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { DATABASE, dataFolderPath } from "../store/data-folder.ts";
import { Postgres, presentSchema as presentInPostgres } from "../store/database/postgres.ts";
import { presentSchema as presentInSqlite } from "../store/database/sqlite.ts";
import { schemaFor } from "../store/schema/migrations.ts";
import { migrationsFrom, type PresentSchema, versionOf } from "../store/schema/schema-version.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { systemClock } from "../units/clock.ts";
import { StoreUnusable } from "../units/errors/bookkeeping.ts";
import { RELEASE } from "../units/version.ts";
import { validConfiguration } from "./config.ts";
import { type CommandContext, counted, messageOf, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/** Says what a start of this release does to the store, without changing it. Exit code 1 if it would not start on it. */
export async function checkUpgrade(
  { json }: { readonly json: boolean },
  context: CommandContext,
): Promise<void> {
  const { store } = await validConfiguration(context);
  const schema = schemaFor(store);
  const own = versionOf(schema);
  const { present, where } = await readPresent(store, context);
  try {
    const missing = migrationsFrom(present, schema).length;
    const facts = {
      release: RELEASE,
      schema: own,
      oldest_user: schema.oldestUser,
      present_schema: present.version,
      migrations: present.version === 0 ? 0 : missing,
    };
    show(context, json, facts, [
      `This is ${RELEASE}, with schema ${own}. ${where} ${has(present)}.`,
      ...effect(present, own, missing),
      ...(present.version === 0 || missing === 0 ? [] : wayBack(present.version, own, schema.oldestUser)),
    ]);
  } catch (error) {
    if (!(error instanceof StoreUnusable)) throw error;
    throw new CommandFailure(EXIT.found, messageOf(error), "Nothing was changed.");
  }
}

const has = ({ version }: PresentSchema): string => (version === 0 ? "is empty" : `has schema ${version}`);

function effect({ version }: PresentSchema, own: number, missing: number): string[] {
  if (version === 0) return ["The first start makes its tables."];
  if (version > own)
    return ["A newer gateway migrated it, and this one can still use it. A start changes nothing."];
  if (missing === 0) return ["A start changes nothing."];
  return [`The next start runs ${counted(missing, "migration")}.`];
}

/** Which gateways can still use the store afterwards. */
const wayBack = (present: number, own: number, oldestUser: number): string[] =>
  present >= oldestUser
    ? [
        `Gateways of schema ${oldestUser} to ${own - 1} can still use it afterwards: nodes may be replaced one at a time, and put back.`,
      ]
    : [
        `The gateways that use it now (schema ${present}) cannot use it afterwards: make a backup first, and replace all nodes.`,
      ];

async function readPresent(
  store: StoreConfig,
  { env, cwd }: CommandContext,
): Promise<{ readonly present: PresentSchema; readonly where: string }> {
  if (store.kind === "sqlite") {
    const path = join(resolve(cwd, dataFolderPath(env.GATEWAY_DATA, cwd)), DATABASE);
    if (!existsSync(path)) return { present: { version: 0, oldestUser: null }, where: path };
    using db = new Database(path, { readonly: true });
    return { present: presentInSqlite(db), where: path };
  }
  const where = "The database";
  const postgres = new Postgres({ url: store.url, connections: 1, deadlineMs: ANSWER_MS }, systemClock);
  try {
    const [table] = await postgres.query<{ made: boolean }>(
      (sql) => sql`SELECT to_regclass('gateway_schema') IS NOT NULL AS made`,
    );
    if (!table!.made) return { present: { version: 0, oldestUser: null }, where };
    return { present: await postgres.transaction(presentInPostgres), where };
  } catch (error) {
    throw new CommandFailure(EXIT.unreachable, messageOf(error), "Check `store` in the configuration.");
  } finally {
    await postgres.close();
  }
}

const ANSWER_MS = 10_000;
