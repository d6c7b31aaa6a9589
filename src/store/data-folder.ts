import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { randomBase58 } from "../units/base58.ts";
import type { RandomBytes } from "../units/random.ts";
import { makePrivate, takePrivate } from "./private-files.ts";
import { guessingBits } from "./token-strength.ts";

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

/** Of the workers of one data folder, by their numbers from 1. */
export const workerFolderPath = (folder: string, number: number): string => join(folder, `worker-${number}`);

const WORKER_FOLDER = /^worker-(\d+)$/;

/** Of those that have been a node. */
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

/** Whoever has it can credit any balance, and it can be tried from everywhere. */
function refuseWeak(from: string, token: string): void {
  const weakness = weaknessOf(token);
  if (weakness !== null) throw new DataFolderError(`the admin token in ${from} ${weakness}. ${BETTER_TOKEN}`);
}

/** Why a start refuses an admin token; null where it does not. */
export const weaknessOf = (token: string): string | null =>
  token.length < MIN_TOKEN_CHARACTERS
    ? `must have ${MIN_TOKEN_CHARACTERS} characters or more, and has ${token.length}`
    : null;

/** Whether an admin token that a start accepts is made of words, years and rows, which guessers try first. */
export const isGuessable = (token: string): boolean => guessingBits(token) < MIN_TOKEN_BITS;

const MIN_TOKEN_CHARACTERS = 16;
/** At 100,000 guesses a second, 20,000 years. */
const MIN_TOKEN_BITS = 56;

export const BETTER_TOKEN =
  "Set a random one, such as `openssl rand -hex 32` prints, or none: the gateway then makes one.";

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

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
