import { dirname } from "node:path";
import { type Config, isDiskless, listeningUrl } from "../config/config.ts";
import { type ConfigEnvironment, type FoundConfig, findConfig } from "../config/find-config.ts";
import type { FoundHosts } from "../config/hosts-from-environment.ts";
import { ConfigError, formatProblems } from "../config/problem.ts";
import { Mailer } from "../customers/mail/mailer.ts";
import { Counting } from "../generation/counting/counting.ts";
import { Http1Transport } from "../hosts/http1/transport.ts";
import { startSimulatedHost } from "../hosts/simulated/host.ts";
import { httpApp } from "../http/app.ts";
import { PAYMENT_PACE } from "../payments/rails/payment-pace.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import { openPostgresBooks } from "../store/books/bookkeeping-postgres.ts";
import { openSqliteBooks } from "../store/books/bookkeeping-sqlite.ts";
import {
  type DataFolder,
  dataFolderPath,
  openDataFolder,
  openWorkerFolder,
  unkeptFolder,
} from "../store/data-folder.ts";
import { openKeeperBooks } from "../store/nodes/keeper-node-store.ts";
import { bookAllWorkers } from "../store/nodes/orphaned-journals.ts";
import { type Clock, systemClock } from "../units/clock.ts";
import { coalesceRuns } from "../units/coalesced-runs.ts";
import { StoreUnreachable } from "../units/errors/bookkeeping.ts";
import { faultsTo } from "../units/log.ts";
import { type RandomBytes, systemRandom } from "../units/random.ts";
import { ActiveConfig } from "./active-config.ts";
import { AppliedModels } from "./applied-models.ts";
import { type BuiltGateway, buildGateway } from "./gateway.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { type InUse, socketsInUse } from "./in-use.ts";
import { hostOf, opened, openedMetrics, portOf } from "./listening.ts";
import { NodeComparison, networkSecret } from "./node-comparison.ts";
import { ReloadLog } from "./reload-log.ts";

/** Finds the configuration, opens disk, database and sockets, builds the gateway on them, and opens its port. */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { env, cwd, clock = systemClock, random = systemRandom } = options;
  const simulated = startSimulatedHost({ clock, random });
  let folder: DataFolder | null = null;
  const release = async () => {
    await simulated.stop();
    folder?.release();
  };
  const find = async (): Promise<FoundConfig> => {
    const found = await findConfig({ env, cwd, now: clock.now(), simulatedUrl: simulated.url });
    if (Array.isArray(found)) throw new ConfigError(formatProblems(found));
    return found;
  };
  try {
    const read = await find();
    folder = openFolder(read.config, options);
    const active = new ActiveConfig(read);
    return await openIn(folder, {
      ...options,
      clock,
      random,
      active,
      find,
      simulatedUrl: simulated.url,
      release,
    });
  } catch (error) {
    await release();
    throw error;
  }
}

function openFolder(config: Config, { env, cwd, random = systemRandom }: GatewayOptions): DataFolder {
  const { GATEWAY_ADMIN_TOKEN: adminToken } = env;
  if (config.store.kind === "postgres" && !adminToken) {
    throw new ConfigError(
      "store: postgres://… needs GATEWAY_ADMIN_TOKEN in the environment, the same for every gateway of the store.",
    );
  }
  const path = dataFolderPath(env.GATEWAY_DATA, cwd);
  if (isDiskless(config)) return unkeptFolder(path, adminToken!, random);
  return config.store.kind === "sqlite" && env.GATEWAY_WORKER !== undefined
    ? openWorkerFolder(path, adminToken, random)
    : openDataFolder(path, adminToken, random);
}

interface Start extends GatewayOptions {
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly active: ActiveConfig;
  find(): Promise<FoundConfig>;
  readonly simulatedUrl: string;
  release(): Promise<void>;
}

async function openIn(folder: DataFolder, start: Start): Promise<Gateway> {
  const { active, clock, random, env, log, simulatedUrl, onReloaded = () => {} } = start;
  const [hostname, shared] = [hostOf(env.HOST), env.GATEWAY_WORKER !== undefined];
  const { metrics } = active.config;
  let metricsServer: Bun.Server<undefined> | null = null;
  let gateway: BuiltGateway | null = null;
  const reload = coalesceRuns(async () => {
    const problem = await reread(start, reloads);
    if (problem === null) gateway?.configChanged();
    return problem ?? comparison.note();
  });
  const books = await openBooks(folder, start);
  const reloads = new ReloadLog(books.changes, clock, active.config);
  const secret = await networkSecret(books, random);
  const comparison = new NodeComparison({ books, active, folder, simulatedUrl, secret, log });
  const onChanged = () => gateway?.configChanged();
  const modelLists = new AppliedModels({ books, active, clock, log, comparison, onChanged });
  await modelLists.catchUp();
  const transport = new Http1Transport({ clock, onFault: faultsTo(log) });
  gateway = buildGateway({
    config: active,
    clock,
    random,
    transport,
    books,
    counting: start.counting ?? new Counting(clock),
    listen: {
      open(deps) {
        const port = portOf(env.PORT);
        if (metrics !== null) metricsServer = openedMetrics(deps, { ...metrics, shared }, port);
        return opened(httpApp(deps), { hostname, port, shared }, deps.sockets.messageBytes);
      },
      mailer: openMailer(folder, start),
      modelLists,
      nodeDifferences: () => comparison.differences(),
      async reload() {
        const problem = await reload();
        if (problem === null) onReloaded();
        return problem;
      },
    },
    log,
    adminToken: folder.adminToken,
    networkSecret: secret,
    channel: start.channel ?? null,
    env,
    writeLog: start.writeLog ?? null,
    paymentPace: start.paymentPace ?? PAYMENT_PACE,
  });
  const url = listeningUrl(hostname, gateway.port!);
  active.listensAt(url);
  const stop = () => close([modelLists, gateway!], metricsServer, start);
  start.onListening?.(stop);
  await gateway.start();
  await comparison.note();
  modelLists.follow();
  return {
    url,
    folder,
    get config() {
      return active.config;
    },
    get found() {
      return active.found;
    },
    reload,
    inUse: () => [...gateway!.inUse(), ...socketsInUse(transport)],
    stop,
  };
}

/** Each once the one before has stopped. */
async function close(
  parts: readonly { stop(): Promise<void> }[],
  metricsServer: Bun.Server<undefined> | null,
  { release }: Start,
): Promise<void> {
  for (const part of parts) await part.stop();
  await metricsServer?.stop(true);
  await release();
}

const openMailer = (folder: DataFolder, { active, clock, random, env, log }: Start): Mailer =>
  new Mailer({
    // A worker's folder is inside the operator's, who looks for one outbox.
    folder: env.GATEWAY_WORKER === undefined ? folder.path : dirname(folder.path),
    clock,
    random,
    smtp: () => active.config.smtp,
    log,
  });

/** Null once the new configuration is in force; otherwise why it is not. */
async function reread({ active, find, log }: Start, reloads: ReloadLog): Promise<string | null> {
  try {
    const read = await find();
    await reloads.append(read.config);
    active.replace(read);
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof StoreUnreachable)) throw error;
    log("reload refused", { problem: error.message });
    return error.message;
  }
  const { needsRestart, config } = active;
  log("reloaded", {
    models: config.catalog.models.size,
    prices: config.catalog.priceVersion,
    hosts: config.catalog.hosts.size,
    ...(needsRestart.length > 0 ? { needs_restart: needsRestart.join(", ") } : {}),
  });
  return null;
}

async function openBooks(
  folder: DataFolder,
  { active, clock, random, env, log, onLost = () => {} }: Start,
): Promise<Bookkeeping> {
  const { config } = active;
  const parts = { config, folder, clock, log, onLost };
  if (config.store.kind === "postgres")
    return openPostgresBooks(parts, { url: config.store.url, journal: config.journal });
  if (env.GATEWAY_WORKER !== undefined) return openKeeperBooks(parts);
  await bookAllWorkers({ ...parts, random });
  return openSqliteBooks(parts);
}

/** What the configuration says without its hosts; null for a file with problems, which `openGateway` refuses. */
export async function writtenConfig(
  source: Omit<ConfigEnvironment, "simulatedUrl" | "fetch">,
): Promise<Config | null> {
  const noHost = () => Promise.reject(new Error("only the file is read"));
  const read = await findConfig({ ...source, simulatedUrl: "http://127.0.0.1", fetch: noHost as never });
  return Array.isArray(read) ? null : read.config;
}

export interface GatewayOptions
  extends Pick<GatewayParts, "env" | "log">,
    Partial<Pick<GatewayParts, "clock" | "random" | "counting" | "writeLog" | "paymentPace" | "channel">> {
  readonly cwd: string;
  /** The store no longer counts with this process, which must end: nothing is admitted any more. */
  readonly onLost?: (error: Error) => void;
  /** The port has just been opened. The start goes on, and may be overtaken by a stop. */
  readonly onListening?: (stop: () => Promise<void>) => void;
  /** The configuration was read again because the operator asked this process over HTTP. */
  readonly onReloaded?: () => void;
}

export interface Gateway {
  readonly url: string;
  readonly folder: DataFolder;
  readonly config: Config;
  readonly found: FoundHosts;
  /** Null when the new configuration is in force; otherwise why it was refused, and the old one stays. */
  reload(): Promise<string | null>;
  /** As `BuiltGateway`'s, and the sockets to hosts. */
  inUse(): readonly InUse[];
  /** As `BuiltGateway`'s. */
  stop(): Promise<void>;
}
