import { Database } from "bun:sqlite";
import { closeSync, copyFileSync, existsSync, mkdirSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DATABASE } from "./data-folder.ts";
import { syncPath } from "./disk.ts";
import { journalFiles } from "./journal.ts";

/** A folder that cannot be backed up, or not to there; the message says why. */
export class BackupError extends Error {
  override name = "BackupError";
}

/**
 * Makes a data folder `to` of the one at `from`, whether a gateway runs on it or not, as of one moment: everything that was
 * acknowledged before this call is in it. A start on it ends what was under way at that moment as after a crash.
 *
 * First the database, then the journal. Until both are copied a reader stands still in the database, so that no file of the
 * journal can go meanwhile whose ends the copy of the database may lack; what stands in both is booked once.
 */
export function backUp(from: string, to: string): void {
  const database = join(from, DATABASE);
  if (!existsSync(database)) throw new BackupError(`there is no database in ${from}`);
  makeEmpty(to);
  const reader = new Database(database, { readonly: true });
  try {
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM applied").get();
    copyDatabase(database, join(to, DATABASE));
    copyFiles(from, to);
  } finally {
    reader.close();
  }
  syncPath(to);
}

function makeEmpty(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).length > 0) throw new BackupError(`${folder} is not empty`);
}

function copyDatabase(from: string, to: string): void {
  // Made by hand, because SQLite would let others read it.
  closeSync(openSync(to, "wx", 0o600));
  const db = new Database(from, { readonly: true });
  try {
    db.query("VACUUM INTO ?").run(to);
  } finally {
    db.close();
  }
  syncPath(to);
}

/** The operator's token too, because nobody would be let in without it. A node's name stays: there may be one of each. */
function copyFiles(from: string, to: string): void {
  const names = readdirSync(from).filter((name) => name === "admin-token" || isJournal(name));
  for (const name of names.sort()) {
    try {
      copyFileSync(join(from, name), join(to, name));
    } catch (error) {
      // It was about to go as the reader began: the database had all of it.
      if (isJournal(name) && !existsSync(join(from, name))) continue;
      throw error;
    }
    syncPath(join(to, name));
  }
}

const isJournal = (name: string): boolean => journalFiles({ list: () => [name] }).length === 1;
