import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { banner } from "../config/banner.ts";
import { type Config, isDiskless } from "../config/config.ts";
import { ConfigError } from "../config/problem.ts";
import { DEFAULTS } from "../config/read-config.ts";
import { BETTER_TOKEN, isGuessable } from "../customers/operators/token-strength.ts";
import { DataFolderError, dataFolderPath, remedyFor } from "../store/data-folder.ts";
import { diskRefused, isDamaged } from "../store/database/sqlite.ts";
import { isDamagedFile } from "../store/journal/journal.ts";
import { schemaVersion } from "../store/schema/migrations.ts";
import { processMetrics } from "../telemetry/metrics.ts";
import { isoTime, systemClock } from "../units/clock.ts";
import { StoreUnreachable, StoreUnusable } from "../units/errors/bookkeeping.ts";
import type { Log } from "../units/log.ts";
import { keep } from "./keep.ts";
import { hostOf, portOf } from "./listening.ts";
import { openGateway, writtenConfig } from "./open-gateway.ts";
import { ownCommand } from "./runtime.ts";
import { channelToSupervisor } from "./workers/ipc-channel.ts";
import { Supervisor, WorkersEnded } from "./workers/supervisor.ts";

/** Serves, alone or with workers, until a signal stops it. */
const { env } = process;
const worker = env.GATEWAY_WORKER;
/** How many workers this process keeps the database for, if it does. */
const keeperOf = env.GATEWAY_KEEPER;
const log: Log = (event, fields = {}) =>
  console.error(
    JSON.stringify({
      at: isoTime(systemClock.now()),
      ...(worker === undefined ? {} : { worker }),
      ...(keeperOf === undefined ? {} : { keeper: true }),
      event,
      ...fields,
    }),
  );

/** Resolves when the other end has taken it, so that a reader that is slow is waited for. */
const writeLog = (text: string): Promise<void> =>
  new Promise((resolve) => void process.stderr.write(text, () => resolve()));

/** What ends a start and is for the operator to fix, so that its message says all. */
const EXPECTED = [ConfigError, DataFolderError, StoreUnreachable, StoreUnusable, WorkersEnded];

/** A keeper calls none. */
const NO_HOSTS = { routes: [], loads: [] };
const PARENT_CHECK_MS = 50;
const MAX_WORKERS = 256;

// A signal that nobody listens to would end the start. What was read by then may be old: read it again.
let reloadRequested = false;
const requestReload = () => {
  reloadRequested = true;
};
process.on("SIGHUP", requestReload);

// A terminal signals this process and the one that began it, which passes the signal on.
const SAME_SIGNAL_MS = 250;
let signalledMs: number | null = null;

const serving = await start();

process.off("SIGHUP", requestReload).on("SIGHUP", () => serving.reload());
if (reloadRequested) serving.reload();
if (keeperOf !== undefined) {
  // It ends after its workers, even if the signal reached all: its supervisor says when.
  onStopSignal(() => {});
  const channel = channelToSupervisor();
  channel.listen((message) => {
    if (message.kind === "end") void end(serving.stop);
    else if (message.kind === "question")
      channel.send({
        kind: "answer",
        id: message.id,
        answer: { metrics: processMetrics(), hosts: NO_HOSTS },
      });
  });
}
// A process that waits for this line may send a signal at once.
console.log(serving.announcement);

// `npm start`, `bun run start` and the supervisor of workers stand between the operator and this process.
// When that is killed, this one must not live on unseen, holding the port and the data folder; being
// crash-safe, it may end as abruptly.
const endAbruptly = () => process.kill(process.pid, "SIGKILL");
if (worker !== undefined || keeperOf !== undefined) {
  process.on("disconnect", endAbruptly);
  if (!process.connected) endAbruptly();
} else if (env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) endAbruptly();
  }, PARENT_CHECK_MS).unref();
}

/** Once the port is open, a signal lets requests end; before, there are none, and it ends the process. */
function stopsBySignal(stop: () => Promise<void>): void {
  onStopSignal(() => void end(stop));
}

function onStopSignal(act: () => void): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, act);
}

async function end(stop: () => Promise<void>): Promise<void> {
  const nowMs = systemClock.elapsedMs();
  const again = signalledMs !== null;
  if (signalledMs !== null && nowMs - signalledMs < SAME_SIGNAL_MS) return;
  signalledMs = nowMs;
  const stopped = stop();
  if (again) return;
  log("stopping");
  await stopped;
  log("stopped");
  process.exit(0);
}

async function start(): Promise<RunningServer> {
  try {
    // Before anything is made on the disk.
    portOf(env.PORT);
    if (worker !== undefined) return await serve();
    const config = await writtenConfig({ env, cwd: process.cwd(), now: systemClock.now() });
    if (keeperOf !== undefined) return await keepFor(config, Number(keeperOf));
    const workers = config === null ? 1 : workersOf(config.workers);
    return await (workers === 1 ? serve() : supervise(workers, config!));
  } catch (error) {
    // What was closed under the start made it fail; `end` exits.
    if (signalledMs !== null) return new Promise<never>(() => {});
    const why = explained(error);
    console.error(why === null ? error : `The gateway did not start: ${why}`);
    process.exit(1);
  }
}

function workersOf(configured: Config["workers"]): number {
  return configured === "auto" ? Math.min(availableParallelism(), MAX_WORKERS) : configured;
}

/** Null where nobody but us could do anything about it. */
function explained(error: unknown): string | null {
  if (EXPECTED.some((kind) => error instanceof kind)) return (error as Error).message;
  const folder = `the data folder ${dataFolderPath(env.GATEWAY_DATA, process.cwd())}`;
  const { message } = error as Error;
  if (isDamaged(error)) return `the database in ${folder} is damaged: ${message}. Start on a backup.`;
  return diskRefused(error) || isOfDisk(error)
    ? `${folder} cannot be written: ${message}. ${remedyFor(error)}`
    : null;
}

/** What the operating system says of a file. */
function isOfDisk(error: unknown): boolean {
  return /^(ENOSPC|EDQUOT|EROFS|EIO|EACCES|EPERM)$/.test((error as { code?: string } | null)?.code ?? "");
}

interface RunningServer {
  readonly announcement: string;
  reload(): void;
  stop(): Promise<void>;
}

function lost(error: Error): void {
  log("lost", { error: error.message });
  process.exit(1);
}

async function keepFor(config: Config | null, workers: number): Promise<RunningServer> {
  // A file that was broken since the start must not keep the database from being served again.
  const { stop } = await keep({
    env,
    cwd: process.cwd(),
    config: config ?? DEFAULTS,
    workers,
    log,
    onLost: lost,
  });
  return { announcement: "listening on the socket in the data folder", reload() {}, stop };
}

async function serve(): Promise<RunningServer> {
  const gateway = await openGateway({
    env,
    cwd: process.cwd(),
    log,
    writeLog,
    channel: worker === undefined ? null : channelToSupervisor(),
    onLost: lost,
    onListening: stopsBySignal,
    onReloaded() {
      // Asked over HTTP, one worker was reached: the supervisor tells the others.
      if (worker !== undefined) process.kill(process.ppid, "SIGHUP");
    },
  });
  const announcement = banner({
    config: gateway.config,
    schema: schemaVersion(gateway.config.store),
    found: gateway.found,
    listening: gateway.url,
    hostname: hostOf(env.HOST),
    adminTokenPath: gateway.folder.adminTokenPath,
    guessableToken: isGuessable(gateway.folder.adminToken)
      ? `The admin token is made of words or rows that can be guessed. ${BETTER_TOKEN}`
      : null,
    dataPath: resolve(dirname(gateway.folder.databasePath)),
    damagedFiles: damagedFiles(gateway.folder.path),
  }).join("\n");
  return { announcement, reload: () => void gateway.reload(), stop: () => gateway.stop() };
}

/** Damaged journals, in the folder and in that of a node. */
function damagedFiles(path: string): string[] {
  const folders = [path, join(path, "node")].filter((folder) => existsSync(folder));
  return folders.flatMap((folder) =>
    readdirSync(folder)
      .filter(isDamagedFile)
      .map((name) => resolve(folder, name)),
  );
}

async function supervise(workers: number, config: Config): Promise<RunningServer> {
  const dataFolder = dataFolderPath(env.GATEWAY_DATA, process.cwd());
  const { supervisor, announcement } = await Supervisor.start({
    workers,
    isKept: config.store.kind === "sqlite",
    command: ownCommand(),
    env,
    hostname: hostOf(env.HOST),
    port: portOf(env.PORT),
    dataFolder,
    socketFolder: isDiskless(config) ? temporaryFolder() : dataFolder,
    clock: systemClock,
    log,
    onListening: stopsBySignal,
  });
  return { announcement, reload: () => supervisor.reload(), stop: () => supervisor.stop() };
}

/** For the sockets of workers that keep nothing; null, and each of them by itself, where no file can be made at all. */
function temporaryFolder(): string | null {
  try {
    const path = mkdtempSync(join(tmpdir(), "gateway-"));
    process.once("exit", () => rmSync(path, { recursive: true, force: true }));
    return path;
  } catch (error) {
    log("repeats not shared", { error: String(error), next: "Set TMPDIR to a writable folder." });
    return null;
  }
}
