import { chmodSync, closeSync, lstatSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";

/**
 * Makes a file that only its owner can read, if there is none. SQLite would make its database readable by
 * others, and gives the files next to it the mode of the database.
 */
export const makePrivate = (path: string): void => closeSync(openSync(path, "a", PRIVATE));

/**
 * Takes the gateway's own files in a data folder from everybody but their owner: an earlier version, or a
 * copy, may have left them readable. Files that are not the gateway's stay as they are.
 */
export function takePrivate(folder: string): void {
  tighten(folder, OWN);
  tighten(join(folder, "node"), OWN);
  tighten(join(folder, "outbox"), MAIL);
}

function tighten(folder: string, own: RegExp): void {
  for (const name of namesIn(folder)) {
    if (!own.test(name)) continue;
    const path = join(folder, name);
    const file = lstatSync(path, { throwIfNoEntry: false });
    if (file?.isFile() && (file.mode & FOR_OTHERS) !== 0) chmodSync(path, PRIVATE);
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const OWN = /^(gateway\.sqlite(-\w+)?|lock(-\w+)?|admin-token|node-name|journal-\d+\..+)$/;
const MAIL = /\.eml$/;
const PRIVATE = 0o600;
const FOR_OTHERS = 0o077;
