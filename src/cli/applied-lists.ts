import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../config/config.ts";
import { readSynced, withSynced } from "../config/synced-models.ts";
import { DATABASE, dataFolderPath } from "../store/data-folder.ts";
import { Postgres } from "../store/database/postgres.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { systemClock } from "../units/clock.ts";
import { type CommandContext, messageOf } from "./console.ts";

/** A configuration as it is in force: with the models that model lists added or changed. */
export interface InForce {
  readonly config: Config;
  /** Models of applied lists that the store has. */
  readonly listed: number;
  /** Why the store could not be read; null where it was, or there is none yet. */
  readonly unread: string | null;
}

/** Reads what `gateway models sync` applied from the store, which it does not change; no gateway has to run. */
export async function inForce(config: Config, context: CommandContext): Promise<InForce> {
  try {
    const models = await latestModels(config.store, context);
    const rows = models === null ? [] : readSynced(models);
    return { config: withSynced(config, rows), listed: rows.length, unread: null };
  } catch (error) {
    return { config, listed: 0, unread: messageOf(error) };
  }
}

/** Null where no list was applied. */
async function latestModels(store: StoreConfig, { env, cwd }: CommandContext): Promise<string | null> {
  if (store.kind === "sqlite") {
    const path = join(resolve(cwd, dataFolderPath(env.GATEWAY_DATA, cwd)), DATABASE);
    if (!existsSync(path)) return null;
    using db = new Database(path, { readonly: true });
    const made = db.query("SELECT 1 FROM sqlite_master WHERE name = 'model_versions'").get();
    return made === null ? null : ((db.query(LATEST).get() as Latest | null)?.models ?? null);
  }
  const postgres = new Postgres({ url: store.url, connections: 1, deadlineMs: ANSWER_MS }, systemClock);
  try {
    const [table] = await postgres.query<{ made: boolean }>(
      (sql) => sql`SELECT to_regclass('model_versions') IS NOT NULL AS made`,
    );
    if (!table!.made) return null;
    const [row] = await postgres.query<Latest>((sql) => sql.unsafe(LATEST));
    return row?.models ?? null;
  } finally {
    await postgres.close();
  }
}

interface Latest {
  readonly models: string;
}

const LATEST = "SELECT models FROM model_versions ORDER BY number DESC LIMIT 1";
/** A check in a pipeline, which cannot reach the database, is not to wait long. */
const ANSWER_MS = 3_000;
