import { Database } from "bun:sqlite";
import { chmodSync, closeSync, copyFileSync, existsSync, mkdirSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DATABASE, workerFolderPath, workerNumbers } from "../data-folder.ts";
import { syncPath } from "../journal/disk.ts";
import { journalFiles } from "../journal/journal.ts";

/** The folder cannot be backed up, or not to that place; the message says why. */
export class BackupError extends Error {
  override name = "BackupError";
}

/**
 * Copies the data folder `from` to `to` as of one moment, whether or not a gateway is running on it:
 * everything acknowledged before this call is in the copy. A gateway started on the copy ends what was under
 * way at that moment, as after a crash.
 *
 * The database is copied first, then the journal. Until both are copied, an open read transaction on the
 * database prevents the removal of journal files whose records the copied database may lack. What is in both
 * is booked only once.
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
  // Created here, because SQLite would make it readable by others.
  closeSync(openSync(to, "wx", 0o600));
  const db = new Database(from, { readonly: true });
  try {
    db.query("VACUUM INTO ?").run(to);
  } finally {
    db.close();
  }
  syncPath(to);
}

/**
 * Copies the operator's token too, because nobody could get in without it. The name of a node on PostgreSQL is not
 * copied, because it must be unique; workers are known by theirs in the database that was copied.
 */
function copyFiles(from: string, to: string): void {
  copyNamed(from, to, "admin-token");
  for (const number of workerNumbers(from)) {
    const [worker, copy] = [workerFolderPath(from, number), workerFolderPath(to, number)];
    mkdirSync(join(copy, "node"), { recursive: true, mode: 0o700 });
    copyNamed(worker, copy, "node-name");
    copyNamed(join(worker, "node"), join(copy, "node"), null);
    syncPath(copy);
  }
}

/** Journals, and the file of this name. */
function copyNamed(from: string, to: string, other: string | null): void {
  const names = existsSync(from) ? readdirSync(from).filter((name) => name === other || isJournal(name)) : [];
  for (const name of names.sort()) {
    try {
      copyFileSync(join(from, name), join(to, name));
      chmodSync(join(to, name), 0o600);
    } catch (error) {
      // It was being removed as the read transaction began, so the database had all of it.
      if (isJournal(name) && !existsSync(join(from, name))) continue;
      throw error;
    }
    syncPath(join(to, name));
  }
  syncPath(to);
}

const isJournal = (name: string): boolean => journalFiles({ list: () => [name] }).length === 1;
