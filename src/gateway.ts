import { dirname, join } from "node:path";
import { LRUCache } from "lru-cache";
import type { Bookkeeping } from "./bookkeeping.ts";
import { openPostgresBooks } from "./bookkeeping-postgres.ts";
import { openSqliteBooks } from "./bookkeeping-sqlite.ts";
import type { Route } from "./catalog/catalog.ts";
import { isNameable, nameableIds, suggestion } from "./catalog/closest-id.ts";
import { type Config, isDiskless, type Links, linksOf, listeningUrl } from "./config/config.ts";
import { configView } from "./config/config-view.ts";
import { type ConfigPlace, type FoundConfig, findConfig } from "./config/find-config.ts";
import type { FoundHosts } from "./config/found-hosts.ts";
import { formatProblems } from "./config/problem.ts";
import { contractSignatures } from "./contract-signatures.ts";
import { Counting } from "./counting.ts";
import { AppBundle } from "./dashboard/bundle.ts";
import { refused } from "./errors/refusal.ts";
import { generator } from "./generation/generate.ts";
import type { Settings } from "./generation/house.ts";
import { formatReceipt, type Receipt } from "./generation/receipt.ts";
import { rateRefusal } from "./generation/shortfall.ts";
import type { Try } from "./hosts/attempt.ts";
import { Destinations } from "./hosts/destination.ts";
import { http1Transport } from "./hosts/http1-transport.ts";
import { probeFree } from "./hosts/probe.ts";
import { startSimulatedHost } from "./hosts/simulated.ts";
import { AddressThrottle, throttlesOf } from "./http/address.ts";
import { type Address, httpApp, listen } from "./http/app.ts";
import type { HttpDeps, HttpSettings, LedgerAudit, LedgerDesk, ReceiptReader } from "./http/deps.ts";
import type { Balance } from "./keys/key.ts";
import { allowanceCounter, budgetCounter, keyCounter } from "./ledger/counter.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { ByteBudget } from "./limits/byte-budget.ts";
import { CountAllowance } from "./limits/count-allowance.ts";
import { HostSlots } from "./limits/host-slots.ts";
import { Mailer } from "./mailer.ts";
import { allowancesOf, FreeRoutes, pseudonyms } from "./open-tier.ts";
import { Affinity } from "./routing/affinity.ts";
import { Health, type Lesson } from "./routing/health.ts";
import { routeReports } from "./routing/route-report.ts";
import type { Stop } from "./routing/stop.ts";
import { type DataFolder, openDataFolder, unkeptFolder } from "./store/data-folder.ts";
import type { StoreAudit, StoredReceipt } from "./store/ledger-store.ts";
import { Retention } from "./store/retention.ts";
import { pairing, SURFACES } from "./surfaces/surfaces.ts";
import { prometheusText } from "./telemetry/metric.ts";
import { Metrics } from "./telemetry/metrics.ts";
import { type LogWriter, RequestLog } from "./telemetry/request-log.ts";
import type { Known } from "./telemetry/spans.ts";
import { TraceExporter } from "./telemetry/trace-exporter.ts";
import { tracingSettings } from "./telemetry/tracing-settings.ts";
import { type Clock, systemClock } from "./units/clock.ts";
import type { ReceiptId } from "./units/id.ts";
import { chanceOf, type RandomBytes, systemRandom } from "./units/random.ts";
import { Colleagues } from "./workers/colleagues.ts";
import type { Line } from "./workers/messages.ts";

/** The configuration cannot be used; the message lists every problem. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

/**
 * Builds the whole gateway and opens its port. Everything that any floor needs from another is handed over here and
 * nowhere else.
 */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { env, cwd, log, clock = systemClock, random = systemRandom } = options;
  const simulated = startSimulatedHost({ clock, random });
  const find = async (): Promise<FoundConfig> => {
    const found = await findConfig({ env, cwd, now: clock.now(), simulatedUrl: simulated.url });
    if (Array.isArray(found)) throw new ConfigError(formatProblems(found));
    return found;
  };
  let folder: DataFolder | null = null;
  try {
    const { config, found } = await find();
    if (config.store.kind === "postgres" && !env.GATEWAY_ADMIN_TOKEN) {
      throw new ConfigError(
        "store: postgres://… needs GATEWAY_ADMIN_TOKEN in the environment, the same for every gateway of the store.",
      );
    }
    const path = env.GATEWAY_DATA || join(cwd, "data");
    folder = isDiskless(config)
      ? unkeptFolder(path, env.GATEWAY_ADMIN_TOKEN!, random)
      : openDataFolder(path, env.GATEWAY_ADMIN_TOKEN, random);
    return await assemble({
      config,
      found,
      find,
      folder,
      clock,
      random,
      env,
      log,
      stopSimulated: () => simulated.stop(),
      onLost: options.onLost ?? (() => {}),
      writeLog: options.writeLog ?? null,
      onReloaded: options.onReloaded ?? (() => {}),
      line: options.line ?? null,
    });
  } catch (error) {
    folder?.release();
    await simulated.stop();
    throw error;
  }
}

/** How many processes the configuration asks for; a file with problems is left to `openGateway` to refuse. */
export async function wantedWorkers(place: Omit<ConfigPlace, "simulatedUrl" | "fetch">): Promise<number> {
  const noHost = () => Promise.reject(new Error("only the file is read"));
  const read = await findConfig({ ...place, simulatedUrl: "http://127.0.0.1", fetch: noHost as never });
  if (Array.isArray(read)) return 1;
  const { workers, store } = read.config;
  return store.kind === "sqlite" ? 1 : workers;
}

export interface GatewayOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly log: Log;
  readonly clock?: Clock;
  readonly random?: RandomBytes;
  /** Takes the lines of the request log, if the configuration wants one. */
  readonly writeLog?: LogWriter;
  /** The store no longer counts with this process, which must end: nothing is admitted any more. */
  readonly onLost?: (error: Error) => void;
  /** The configuration was read again because the operator asked this process over HTTP. */
  readonly onReloaded?: () => void;
  /** To the supervisor, where this is one of several workers. */
  readonly line?: Line | null;
}

/** One event for the operator; `fields` never hold keys, hashes, prompts or answers. */
export type Log = (event: string, fields?: Readonly<Record<string, unknown>>) => void;

export interface Gateway {
  readonly url: string;
  readonly folder: DataFolder;
  readonly config: Config;
  readonly found: FoundHosts;
  /** Null when the new configuration is in force; otherwise why it was refused, and the old one stays. */
  reload(): Promise<string | null>;
  /** Refuses new requests, lets streams finish within `drain_ms`, closes the books. */
  stop(): Promise<void>;
}

/** What the floors are told of a configuration, worked out once and not for every request. */
interface InForce {
  readonly links: Links;
  readonly generation: Settings;
  readonly http: HttpSettings;
}

function settingsOf(config: Config, url: string): InForce {
  const links = linksOf(config, url);
  const { generation, routing, openTier } = config;
  return {
    links,
    generation: {
      ...links,
      attempts: { ...generation, hedgeMs: routing.hedgeMs },
      order: routing.order,
      chunkGapMs: generation.chunkGapMs,
      totalMs: generation.totalMs,
      writeOffTokens: generation.writeOffTokens,
      defaultMaxOutputTokens: generation.defaultMaxOutputTokens,
      openTierRpm: openTier.rpm,
    },
    http: {
      ...links,
      bodyBytes: config.bodyBytes,
      accountlessKeysPerAddressPerHour: config.setup.accountlessKeysPerAddressPerHour,
      receiptDays: config.receipts.keepDays,
      trustedProxies: config.trustedProxies,
    },
  };
}

interface Parts {
  readonly config: Config;
  readonly found: FoundHosts;
  readonly find: () => Promise<FoundConfig>;
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly env: GatewayOptions["env"];
  readonly log: Log;
  readonly stopSimulated: () => Promise<void>;
  onLost(error: Error): void;
  onReloaded(): void;
  readonly line: Line | null;
  readonly writeLog: LogWriter | null;
}

/** Receipts of refused requests, which opened no hold and are not written down. */
const MAX_REFUSED_RECEIPTS = 10_000;
const DRAIN_POLL_MS = 20;
/** The start waits this long for the free routes to be probed, and goes on without those that take longer. */
const FIRST_PROBES_MS = 5_000;

async function assemble(parts: Parts): Promise<Gateway> {
  const { folder, clock, random, env, log, find } = parts;
  let { config, found } = parts;
  let inForce: InForce;
  let draining = false;

  const books = await openBooks(parts);
  const { ledger, keyring } = books;
  const mailer = new Mailer({
    // A worker's folder is inside the operator's, who looks for one outbox.
    folder: env.GATEWAY_WORKER === undefined ? folder.path : dirname(folder.path),
    clock,
    random,
    smtp: () => config.smtp,
    log,
  });
  const transport = http1Transport({ clock, onFault: (error) => log("fault", { error: stackOf(error) }) });
  const destinations = new Destinations(SURFACES);
  const health = new Health(clock);
  const hostsHere = () => ({ routes: routeReports(health, config.catalog), lines: [...slots.lines()] });
  const ownParts = { state: () => ({ metrics: metrics.read(), hosts: hostsHere() }), slots: () => slots };
  const colleagues = parts.line === null ? null : new Colleagues(parts.line, clock, ownParts);
  const slots = new HostSlots(clock, colleagues?.places);
  const bodies = new ByteBudget(config.bodyMemoryBytes, clock);
  const roads = {
    usable: health.usable.bind(health),
    restMs: health.restMs.bind(health),
    chance: chanceOf(random),
    verifiedFree: health.verifiedFree.bind(health),
    speed: health.speed.bind(health),
    joins: () => true,
  };
  const probe = (route: Route) =>
    probeFree(route, { transport, destinations, clock, surfaces: SURFACES, pairing });
  const freeRoutes = new FreeRoutes(health, probe, clock, () => config.catalog);
  const pseudonym = pseudonyms(folder.adminToken);
  const allowances = (balance: Balance, blocks: readonly string[]) =>
    allowancesOf(balance, blocks, config.openTier, pseudonym);
  const counting = new Counting();
  const countsAsked = new CountAllowance(clock);
  const knows = (model: string) => isNameable(model, config.catalog);
  const requestLog = parts.writeLog === null ? null : new RequestLog(parts.writeLog, clock, knows);
  const tracing = openTracing(parts, { model: knows, server: (host) => serverOf(host, config) });
  const metrics = new Metrics({
    knows,
    hosts: () => health.report(config.catalog),
    slots,
    bodies,
    ledger,
    journal: books.journal,
    figures: books.figures,
    dropped: () => ({
      ...(requestLog === null ? {} : { log: requestLog.dropped }),
      ...(tracing === null ? {} : { trace: tracing.dropped }),
    }),
  });
  const refusedReceipts = new LRUCache<ReceiptId, StoredReceipt>({ max: MAX_REFUSED_RECEIPTS });

  const onFault = (error: unknown, receipt: ReceiptId) => log("fault", { receipt, error: stackOf(error) });

  const generate = generator({
    clock,
    random,
    ledger,
    journal: books.journal,
    transport,
    destinations,
    surfaces: SURFACES,
    pairing,
    roads,
    health,
    affinity: new Affinity(clock),
    slots,
    observe,
    ended: (stop, end) => health.streamEnded(stop.route, end),
    catalog: () => config.catalog,
    settings: () => inForce.generation,
    suggest: (id) => suggestion(id, nameableIds(config.catalog), inForce.links.baseUrl),
    identify: (secret, at) => keyring.identify(secret, at),
    allowances: ({ balance }, call) => allowances(balance, call.blocks()),
    charged({ route }) {
      log("free route charges", { host: route.host.id, model: route.model });
      freeRoutes.doubt(route);
    },
    counting: {
      countText: ({ body }) => counting.count("text", body),
      boundFiles: ({ body }) => counting.count("files", body),
      allowance: new CountAllowance(clock),
    },
    openTrace: (headers) => tracing?.open(headers) ?? null,
    finished(done) {
      metrics.finished(done);
      if (config.log === "json") requestLog?.add(done);
      tracing?.add(done);
    },
    keepRefused,
    onFault,
  });

  function observe({ route }: Stop, outcome: Try["outcome"], lesson: Lesson): void {
    metrics.tried(route.host.id, outcome);
    health.observe(route, lesson);
    if (!route.free) return;
    if (lesson.kind === "served") freeRoutes.served(route);
    if (lesson.kind === "failed") freeRoutes.doubt(route);
  }

  function keepRefused(receipt: Receipt & { balanceId: StoredReceipt["balanceId"] }): void {
    const { id, createdAt, keyId, balanceId } = receipt;
    refusedReceipts.set(id, { id, at: createdAt, keyId, balanceId, body: formatReceipt(receipt) });
  }

  const retention = new Retention({
    clock,
    keepDays: () => config.receipts.keepDays,
    fold: books.fold,
    onDeleted: (receipts) => log("receipts deleted", { receipts }),
    onFault: (error) => log("books", { error: String(error) }),
  });

  const receipts: ReceiptReader = {
    async receipt(id) {
      const kept = refusedReceipts.get(id);
      if (kept !== undefined) return kept;
      return books.receipt(id);
    },
    receipts: books.receipts,
  };

  const ledgerDesk: LedgerDesk = {
    balance: books.balance,
    async keyUse({ lineage }, at) {
      const day = await books.use(keyCounter("day", lineage, at));
      const month = await books.use(keyCounter("month", lineage, at));
      return { day: day.spent, month: month.spent, held: month.held };
    },
    budgetUse: (budget, at) => books.use(budgetCounter(budget.id, budget.window, at)),
    async openTier(balance, blocks, at) {
      const uses = allowances(balance, blocks).map(async ({ owner, limit }) => {
        const { spent: used } = await books.use(allowanceCounter(owner, at));
        return { limit, used };
      });
      return (await Promise.all(uses)).reduce((a, b) => (b.limit - b.used < a.limit - a.used ? b : a));
    },
    credit: books.credit,
    credits: books.credits,
    async audit() {
      return auditOf(await books.audit(), ledger);
    },
  };

  const deps: HttpDeps = {
    desk: {
      store: books.keys,
      keyring,
      clock,
      random,
      settings: () => ({ defaults: config.defaults, graceMs: config.graceMs }),
    },
    accounts: {
      store: books.accounts,
      clock,
      random,
      contracts: contractSignatures(() => config.walletRpc),
      post: (mail) => mailer.post(mail),
      links: () => inForce.links,
      forgetBalance: (id) => keyring.forgetEstate(id),
    },
    throttles: colleagues?.throttles ?? throttlesOf(() => new AddressThrottle(clock)),
    adminToken: folder.adminToken,
    settings: () => inForce.http,
    generate,
    turnedAway: (surface, code) => metrics.turnedAway(surface, code),
    overRate(key) {
      const short = ledger.overRate(key);
      return short === null ? null : rateRefusal(short, inForce.links.dashboardUrl);
    },
    bodies,
    async countTokens(body, { balance }) {
      const request = SURFACES.messages.readRequest(withCeiling(body));
      if (refused(request)) return request;
      const counts = countsAsked.take(balance.id, request.body.length) !== null;
      return (counts ? await counting.count("text", request.body) : null) ?? request.promptEstimate;
    },
    catalog: () => config.catalog,
    roads,
    hostsNow: async () => (await colleagues?.hosts()) ?? hostsHere(),
    hostReports: () => health.report(config.catalog),
    ledger: ledgerDesk,
    receipts,
    nodes: books.nodes,
    usage: books.usage,
    apps: new AppBundle(),
    ready: () => !draining && books.healthy(),
    async reload() {
      const problem = await reload();
      if (problem === null) parts.onReloaded();
      return { problem };
    },
    configInForce: () => configView(config, inForce.links),
    metrics: async () => prometheusText((await colleagues?.metrics()) ?? metrics.read()),
    onFault,
  };

  const hostname = env.HOST || "127.0.0.1";
  // Links are only read by requests, and none arrives before the port is known.
  inForce = settingsOf(config, "");
  slots.prepare(config.catalog.hosts.values());
  const app = httpApp(deps);
  const server = opened(app, { hostname, port: portOf(env.PORT), shared: env.GATEWAY_WORKER !== undefined });
  const url = listeningUrl(hostname, server.port!);
  inForce = settingsOf(config, url);
  await Promise.race([freeRoutes.verify(), sleep(clock, FIRST_PROBES_MS)]);

  async function reload(): Promise<string | null> {
    try {
      ({ config, found } = await find());
      inForce = settingsOf(config, url);
      bodies.resize(config.bodyMemoryBytes);
      health.keep(config.catalog);
      slots.prepare(config.catalog.hosts.values());
      void freeRoutes.verify();
      log("reloaded", { models: config.catalog.models.size, hosts: config.catalog.hosts.size });
      return null;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      log("reload refused", { problem: error.message });
      return error.message;
    }
  }

  return {
    url,
    folder,
    get config() {
      return config;
    },
    get found() {
      return found;
    },
    reload,
    async stop() {
      draining = true;
      freeRoutes.stop();
      const stopped = server.stop();
      const deadlineMs = clock.elapsedMs() + config.drainMs;
      while (ledger.openHolds > 0 && clock.elapsedMs() < deadlineMs) await sleep(clock, DRAIN_POLL_MS);
      // What has settled still has its last frames to give.
      const givenMs = Math.min(deadlineMs, clock.elapsedMs() + CUT_MS);
      while (server.pendingRequests > 0 && clock.elapsedMs() < givenMs) await sleep(clock, DRAIN_POLL_MS);
      // Streams that are still open now are cut; each settles for what it delivered.
      void server.stop(true);
      const cutMs = clock.elapsedMs() + CUT_MS;
      while (ledger.openHolds > 0 && clock.elapsedMs() < cutMs) await sleep(clock, DRAIN_POLL_MS);
      await Promise.race([stopped, sleep(clock, CUT_MS)]);
      // Nobody may be reading the log any more.
      await Promise.race([requestLog?.flush(), sleep(clock, CUT_MS)]);
      await tracing?.stop(CUT_MS);
      await Promise.race([retention.stop(), sleep(clock, CUT_MS)]);
      await books.close();
      counting.stop();
      transport.close();
      await Promise.race([mailer.close(), sleep(clock, CUT_MS)]);
      await parts.stopSimulated();
      folder.release();
    },
  };
}

/** Time for cut streams to settle. */
const CUT_MS = 2_000;

const sleep = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

function openTracing({ env, clock, random, log }: Parts, known: Known): TraceExporter | null {
  const settings = tracingSettings(env);
  if (settings === null) return null;
  // Headers may hold a secret, and so may an address.
  log("tracing", { host: URL.parse(settings.url)?.host ?? null });
  return new TraceExporter(settings, { clock, random, known, fetch });
}

function serverOf(id: string, { catalog }: Config): ReturnType<Known["server"]> {
  const url = URL.parse(catalog.hosts.get(id)?.baseUrl ?? "");
  if (url === null) return null;
  return { address: url.hostname, port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) };
}

const openBooks = (parts: Parts): Promise<Bookkeeping> => {
  const { store } = parts.config;
  return store.kind === "sqlite" ? openSqliteBooks(parts) : openPostgresBooks(parts, store);
};

const stackOf = (error: unknown) => (error instanceof Error ? error.stack : String(error));

/** The recomputed books, with what is held at this moment. */
function auditOf({ credits, charges, losses, writeOffs, drifts }: StoreAudit, ledger: Ledger): LedgerAudit {
  let held = 0n;
  for (const { id, held: holds } of ledger.booked()) if (id.startsWith("balance:")) held += BigInt(holds);
  return {
    creditsNano: credits,
    chargesNano: charges,
    heldNano: held,
    availableNano: credits - charges - held,
    writeOffsNano: writeOffs,
    lossesNano: losses,
    drifts,
  };
}

/** Anthropic's counting endpoint takes a request without a ceiling. */
function withCeiling(body: Uint8Array): Uint8Array {
  try {
    const json = JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>;
    if (typeof json !== "object" || json === null || "max_tokens" in json) return body;
    return new TextEncoder().encode(JSON.stringify({ ...json, max_tokens: 1 }));
  } catch {
    return body;
  }
}

/** An address that is taken or not this machine's is the operator's to mend, like any other setting. */
function opened(app: ReturnType<typeof httpApp>, address: Address): Bun.Server<unknown> {
  try {
    return listen(app, address);
  } catch (error) {
    const { hostname, port } = address;
    throw new ConfigError(
      `nothing can listen on ${hostname}:${port} (${(error as NodeJS.ErrnoException).code ?? error}). Set HOST to an address of this machine and PORT to one that is free; 0 picks one.`,
    );
  }
}

export function portOf(text: string | undefined): number {
  if (text === undefined || text === "") return DEFAULT_PORT;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new ConfigError(`PORT is "${text}": expected a number from 0 to 65535.`);
  }
  return port;
}

const DEFAULT_PORT = 8080;
