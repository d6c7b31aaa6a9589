import { Database } from "bun:sqlite";
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { Server } from "node:net";
import { dirname, join } from "node:path";
import { BETTER_TOKEN, weaknessOf } from "../customers/operators/token-strength.ts";
import { randomBase58 } from "../units/base58.ts";
import type { RandomBytes } from "../units/random.ts";

/** Where one gateway keeps what it must not forget. */
export interface DataFolder {
  readonly path: string;
  readonly databasePath: string;
  readonly adminToken: string;
  /** Where the token was made, or null when the environment named it. */
  readonly adminTokenPath: string | null;
  /** The name by which the gateways of a shared store know this one: made once, and kept if the folder is. */
  nodeName(): string;
  release(): void;
}

/** The folder cannot be used; the message says why and what to do. */
export class DataFolderError extends Error {
  override name = "DataFolderError";
}

/** What the variable GATEWAY_DATA says; `data` in the working directory where it says nothing. */
export const dataFolderPath = (named: string | undefined, cwd: string): string => named || join(cwd, "data");

/**
 * Creates the folder if it does not exist, and locks it: two gateways on one folder would each count as if
 * they were alone. The operating system holds the lock, so it ends with the process, however that dies.
 */
export function openDataFolder(path: string, envToken: string | undefined, random: RandomBytes): DataFolder {
  if (envToken) refuseWeak("GATEWAY_ADMIN_TOKEN", envToken);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new DataFolderError(
      `cannot create the data folder ${path}: ${messageOf(error)}. ${remedyFor(error)}`,
    );
  }
  const lock = lockFolder(path);
  try {
    takePrivate(path);
    const token = adminToken(path, envToken, random);
    return {
      path,
      databasePath: join(path, DATABASE),
      ...token,
      nodeName: () => nodeName(path, random),
      release: () => lock.close(),
    };
  } catch (error) {
    lock.close();
    if (error instanceof DataFolderError) throw error;
    throw new DataFolderError(
      `cannot write in the data folder ${path}: ${messageOf(error)}. ${remedyFor(error)}`,
    );
  }
}

/**
 * The folder of one of several processes, inside that of them all: a lock, a name and a journal of its own, and the
 * database and the token of all.
 */
export function openWorkerFolder(
  path: string,
  envToken: string | undefined,
  random: RandomBytes,
): DataFolder {
  const around = dirname(path);
  const token = adminToken(around, envToken, random);
  return {
    ...openDataFolder(path, token.adminToken, random),
    ...token,
    databasePath: join(around, DATABASE),
  };
}

/** The folder of a worker of one data folder, by its number from 1. */
export const workerFolderPath = (folder: string, number: number): string => join(folder, `worker-${number}`);

const WORKER_FOLDER = /^worker-(\d+)$/;

/** The numbers of workers that have been a node. */
export const workerNumbers = (folder: string): number[] =>
  readdirSync(folder)
    .flatMap((name) => WORKER_FOLDER.exec(name)?.[1] ?? [])
    .map(Number)
    .filter((number) => existsSync(join(workerFolderPath(folder, number), NODE_NAME)));

/** Where the keeper of a folder's database is reached. */
export const keeperSocketPath = (folder: string): string => join(folder, "keeper.sock");

/** What to do about a data folder that cannot be written. */
export const remedyFor = (error: unknown): string =>
  /ENOSPC|EDQUOT|is full/.test(messageOf(error))
    ? "Free space on its disk."
    : "Set GATEWAY_DATA to a writable folder.";

/** For a gateway that keeps nothing: no file is made, and each start is a new node. */
export function unkeptFolder(path: string, adminToken: string, random: RandomBytes): DataFolder {
  refuseWeak("GATEWAY_ADMIN_TOKEN", adminToken);
  return {
    path,
    databasePath: join(path, DATABASE),
    adminToken,
    adminTokenPath: null,
    nodeName: () => newNodeName(random),
    release: () => {},
  };
}

export const DATABASE = "gateway.sqlite";
const NODE_NAME = "node-name";

/** An exclusive SQLite transaction is a portable way to hold an operating-system lock. */
function lockFolder(path: string): Database {
  let lock: Database | null = null;
  try {
    makePrivate(join(path, "lock"));
    lock = new Database(join(path, "lock"));
    lock.run(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`);
    lock.run("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock?.close();
    const busy = /locked|busy/i.test(messageOf(error));
    throw new DataFolderError(
      busy
        ? `the data folder ${path} is in use by another gateway. Stop that one and wait until it has ended, or set GATEWAY_DATA to another folder.`
        : `the data folder ${path} cannot be written: ${messageOf(error)}. ${remedyFor(error)}`,
    );
  }
}

/**
 * Whether a gateway holds the folder right now. False if the folder does not exist or no gateway ever started
 * in it.
 */
export function folderInUse(path: string): boolean {
  if (!existsSync(join(path, "lock"))) return false;
  const lock = new Database(join(path, "lock"));
  try {
    lock.run("BEGIN EXCLUSIVE");
    return false;
  } catch (error) {
    if (/locked|busy/i.test(messageOf(error))) return true;
    throw error;
  } finally {
    lock.close();
  }
}

/** A process that was just killed may need a moment to disappear. */
const LOCK_WAIT_MS = 1_500;

const ADMIN_TOKEN_CHARACTERS = 44;

function adminToken(
  folder: string,
  envToken: string | undefined,
  random: RandomBytes,
): Pick<DataFolder, "adminToken" | "adminTokenPath"> {
  if (envToken !== undefined && envToken !== "") return { adminToken: envToken, adminTokenPath: null };
  const path = join(folder, "admin-token");
  const token = kept(path, () => `or-admin-${randomBase58(ADMIN_TOKEN_CHARACTERS, random)}`);
  refuseWeak(path, token);
  return { adminToken: token, adminTokenPath: path };
}

/** Its holder can credit any balance, and it can be tried from everywhere. */
function refuseWeak(from: string, token: string): void {
  const weakness = weaknessOf(token);
  if (weakness !== null) throw new DataFolderError(`the admin token in ${from} ${weakness}. ${BETTER_TOKEN}`);
}

const NODE_CHARACTERS = 22;

function nodeName(folder: string, random: RandomBytes): string {
  return kept(join(folder, NODE_NAME), () => newNodeName(random));
}

/**
 * The content of a file, which is created if there is none. If a start was killed while creating it, the file
 * is empty, and is written again.
 */
function kept(path: string, make: () => string): string {
  const text = existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  if (text !== "") return text;
  const made = make();
  writeFileSync(path, `${made}\n`, { mode: 0o600, flush: true });
  return made;
}

const newNodeName = (random: RandomBytes): string => `node_${randomBase58(NODE_CHARACTERS, random)}`;

const messageOf = (error: unknown): string => (error as Error).message;

/**
 * Makes a file that only its owner can read, if there is none. SQLite would make its database readable by
 * others, and gives the files next to it the mode of the database.
 */
export const makePrivate = (path: string): void => closeSync(openSync(path, "a", PRIVATE));

/**
 * Takes the gateway's own files in a data folder from everybody but their owner: an earlier version, or a
 * copy, may have left them readable. Files that are not the gateway's stay as they are.
 */
function takePrivate(folder: string): void {
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

/**
 * Listens on a socket that only the owner of its folder can open; it is bound once this returns. The path must be free,
 * or left over from a life before.
 */
export async function listenPrivately(server: Server, path: string): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_PATH_BYTES) {
    throw new DataFolderError(
      `the path of the data folder is too long for the workers' sockets in it (${bytes} bytes, at most ${MAX_PATH_BYTES}): ${path}. Set GATEWAY_DATA to a shorter one, or workers to 1.`,
    );
  }
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    // Else another process could open it before its mode is set.
    const mask = process.umask(0o077);
    server.once("error", reject).listen(path, resolve);
    process.umask(mask);
  });
  chmodSync(path, 0o600);
}

/** Longest address of a socket, on every system. */
const MAX_PATH_BYTES = 103;
