import type { Config } from "../config/config.ts";
import { readSynced, withSynced } from "../config/synced-models.ts";
import { sql } from "../store/database/database.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { type CommandContext, messageOf } from "./console.ts";
import { openStore } from "./present-store.ts";

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
async function latestModels(store: StoreConfig, context: CommandContext): Promise<string | null> {
  await using present = openStore(store, context, ANSWER_MS);
  if (!(await present.has("model_versions"))) return null;
  const latest = sql`SELECT models FROM model_versions ORDER BY number DESC LIMIT 1`;
  const [row] = await present.database!.rows<{ readonly models: string }>(latest);
  return row?.models ?? null;
}

/** A check in a pipeline, which cannot reach the database, is not to wait long. */
const ANSWER_MS = 3_000;
