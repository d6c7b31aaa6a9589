import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { DATABASE } from "../store/data-folder.ts";
import { BackupError, backUp } from "../store/database/backup.ts";
import { dataFolder } from "./connection.ts";
import { type CommandContext, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/** Copies the data folder, while the gateway serves or while it is stopped. */
export function backup(to: string, { json }: { readonly json: boolean }, context: CommandContext): void {
  const from = dataFolder(context);
  const folder = resolve(context.cwd, to);
  try {
    if (context.columns !== null) context.err(`copying ${resolve(from)} …\n`);
    backUp(from, folder);
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    throw new CommandFailure(
      EXIT.found,
      error.message,
      "Set GATEWAY_DATA to the gateway's data folder, and name a new or empty folder for the copy. With store: postgres://…, use pg_dump instead.",
    );
  }
  const bytes = statSync(join(folder, DATABASE)).size;
  show(context, json, { folder, database_bytes: bytes }, [
    `${folder} holds everything that was acknowledged until now (database: ${(bytes / 1e6).toFixed(1)} MB).`,
    `To start a gateway from it, set GATEWAY_DATA=${folder}`,
  ]);
}
