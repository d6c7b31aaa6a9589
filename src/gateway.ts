import { dirname } from "node:path";
import type { Route } from "./catalog/catalog.ts";
import { suggestion } from "./catalog/closest-id.ts";
import { type Config, isDiskless, listeningUrl } from "./config/config.ts";
import { configView } from "./config/config-view.ts";
import { type ConfigPlace, type FoundConfig, findConfig } from "./config/find-config.ts";
import type { FoundHosts } from "./config/found-hosts.ts";
import { ConfigError, formatProblems } from "./config/problem.ts";
import { Counting } from "./counting/counting.ts";
import { AppBundle } from "./dashboard/bundle.ts";
import { type CountTokensDeps, countMessages } from "./generation/count-tokens.ts";
import type { GenerationDeps } from "./generation/deps.ts";
import { ExpectedOutput } from "./generation/expected-output.ts";
import { generator } from "./generation/generate.ts";
import { DeferredCounts } from "./generation/prompt-count.ts";
import { Receipts } from "./generation/refused-receipts.ts";
import { rateRefusal } from "./generation/shortfall.ts";
import { Destinations } from "./hosts/destination.ts";
import { HostCosts } from "./hosts/host-costs.ts";
import { http1Transport } from "./hosts/http1/transport.ts";
import { probeFree } from "./hosts/probe.ts";
import { startSimulatedHost } from "./hosts/simulated/host.ts";
import { AddressThrottle, throttlesOf } from "./http/address.ts";
import { WrongTokens } from "./http/admin/wrong-tokens.ts";
import { httpApp } from "./http/app.ts";
import { UntrustedProxies } from "./http/client-blocks.ts";
import { CONTROL_BODY_MEMORY_BYTES } from "./http/control-body.ts";
import type { HttpDeps } from "./http/deps.ts";
import type { Balance, Key } from "./keys/key.ts";
import { SpendableCredit } from "./ledger/spendable-credit.ts";
import { ByteBudget } from "./limits/byte-budget.ts";
import { CountAllowance } from "./limits/count-allowance.ts";
import { HostSlots } from "./limits/host-slots.ts";
import { UnpaidBytes, UnpaidRequests } from "./limits/unpaid-allowance.ts";
import { wideNetwork } from "./limits/wide-network.ts";
import { LowCreditWatch } from "./mail/low-credit.ts";
import { Mailer } from "./mail/mailer.ts";
import { allowancesOf, FreeRoutes, pseudonyms } from "./open-tier/open-tier.ts";
import { Affinity } from "./routing/affinity.ts";
import { Health } from "./routing/health.ts";
import { nameRefusal } from "./routing/naming.ts";
import { routeReports } from "./routing/route-report.ts";
import { Departure } from "./server/departure.ts";
import { drain } from "./server/draining.ts";
import { InForce } from "./server/in-force.ts";
import { hostOf, opened, portOf } from "./server/listening.ts";
import { Reporting } from "./server/reporting.ts";
import type { Bookkeeping } from "./store/books/bookkeeping.ts";
import { openPostgresBooks } from "./store/books/bookkeeping-postgres.ts";
import { openSqliteBooks } from "./store/books/bookkeeping-sqlite.ts";
import { ledgerOperations } from "./store/books/ledger-operations.ts";
import { type DataFolder, dataFolderPath, openDataFolder, unkeptFolder } from "./store/data-folder.ts";
import { Retention } from "./store/retention.ts";
import { UnusedRemoval } from "./store/unused.ts";
import { OpenStreams } from "./stream/open-streams.ts";
import { pairing, SURFACES } from "./surfaces/surfaces.ts";
import { prometheusText } from "./telemetry/metric.ts";
import type { LogWriter } from "./telemetry/request-log.ts";
import { atMost, type Clock, systemClock } from "./units/clock.ts";
import { Deadlines } from "./units/deadlines.ts";
import type { BalanceId, ReceiptId } from "./units/id.ts";
import { inTurn } from "./units/in-turn.ts";
import type { Log } from "./units/log.ts";
import { chanceOf, type RandomBytes, systemRandom } from "./units/random.ts";
import { contractSignatures } from "./wallets/contract-signatures.ts";
import { Colleagues } from "./workers/colleagues.ts";
import type { Line } from "./workers/messages.ts";

/**
 * Builds the whole gateway and opens its port. Everything that any floor needs from another is handed over
 * here and nowhere else.
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
    const read = await find();
    const { config } = read;
    if (config.store.kind === "postgres" && !env.GATEWAY_ADMIN_TOKEN) {
      throw new ConfigError(
        "store: postgres://… needs GATEWAY_ADMIN_TOKEN in the environment, the same for every gateway of the store.",
      );
    }
    const path = dataFolderPath(env.GATEWAY_DATA, cwd);
    folder = isDiskless(config)
      ? unkeptFolder(path, env.GATEWAY_ADMIN_TOKEN!, random)
      : openDataFolder(path, env.GATEWAY_ADMIN_TOKEN, random);
    return await assemble({
      inForce: new InForce(read),
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

export interface Gateway {
  readonly url: string;
  readonly folder: DataFolder;
  readonly config: Config;
  readonly found: FoundHosts;
  /** Null when the new configuration is in force; otherwise why it was refused, and the old one stays. */
  reload(): Promise<string | null>;
  /**
   * Serves for `shutdown_delay_ms` more while `/readyz` is 503, then refuses new requests, lets streams
   * finish within `drain_ms`, closes the books. Called again, it skips what is left of the delay.
   */
  stop(): Promise<void>;
}

interface Parts {
  readonly inForce: InForce;
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

/** Rooms, the conductor, HTTP over them, the port. */
async function assemble(parts: Parts): Promise<Gateway> {
  const { inForce, folder, clock, env } = parts;
  const rooms = await openRooms(parts);
  const generate = generator(generationDeps(rooms, parts));
  const reload = inTurn(() => reloaded(rooms, parts));
  let started = false;
  const departure = new Departure({
    clock,
    delayMs: () => inForce.config.shutdownDelayMs,
    async leave() {
      parts.log("draining");
      rooms.freeRoutes.stop();
      const { openStreams } = rooms;
      const { drainMs } = inForce.config;
      await drain(server, { ledger: rooms.books.ledger, openStreams, clock, drainMs });
      await closed(rooms, parts);
    },
  });
  const app = httpApp(
    depsOf(rooms, parts, {
      generate,
      reload,
      hasStarted: () => started,
      isStopping: () => departure.begun,
    }),
  );
  const hostname = hostOf(env.HOST);
  rooms.slots.prepare(inForce.config.catalog.hosts.values());
  const server = opened(app, { hostname, port: portOf(env.PORT), shared: env.GATEWAY_WORKER !== undefined });
  const url = listeningUrl(hostname, server.port!);
  inForce.listensAt(url);
  await atMost(clock, FIRST_PROBES_MS, rooms.freeRoutes.verify());
  started = true;
  rooms.counting.loadAhead();
  return {
    url,
    folder,
    get config() {
      return inForce.config;
    },
    get found() {
      return inForce.found;
    },
    reload,
    stop: () => departure.depart(),
  };
}

/** The start waits this long for the free routes to be probed, and goes on without those that take longer. */
const FIRST_PROBES_MS = 5_000;

type Rooms = Awaited<ReturnType<typeof openRooms>>;

/** Everything that lives as long as the gateway, from the books upward. */
async function openRooms(parts: Parts) {
  const { inForce, folder, clock, random, env, log } = parts;
  const onFault = (error: unknown, receipt?: ReceiptId) =>
    log("fault", { ...(receipt === undefined ? {} : { receipt }), error: stackOf(error) });
  const books = await openBooks(parts);
  const retention = new Retention({
    clock,
    keepDays: () => inForce.config.receipts.keepDays,
    fold: books.fold,
    onDeleted: (receipts) => log("receipts deleted", { receipts }),
    onFault: (error) => log("books", { error: String(error) }),
  });
  const unused = new UnusedRemoval({
    clock,
    days: () => inForce.config.unusedDays,
    store: books.keys,
    keyring: books.keyring,
    inUse: (balance) => books.ledger.isLoaded(balance),
    onRemoved: (removed) => log("unused removed", removed),
    onFault: (error) => log("books", { error: String(error) }),
  });
  const mailer = new Mailer({
    // A worker's folder is inside the operator's, who looks for one outbox.
    folder: env.GATEWAY_WORKER === undefined ? folder.path : dirname(folder.path),
    clock,
    random,
    smtp: () => inForce.config.smtp,
    log,
  });
  const lowCredit = new LowCreditWatch({
    store: books.lowCredit,
    clock,
    log,
    below: () => inForce.config.lowCredit,
    deliver: (mail) => mailer.deliver(mail),
    links: () => inForce.links,
  });

  const transport = http1Transport({ clock, onFault });
  const destinations = new Destinations(SURFACES);
  const hostsHere = () => ({
    routes: routeReports(health, inForce.config.catalog),
    lines: [...slots.lines()],
  });
  const ownParts = {
    state: () => ({ metrics: reporting.metrics.read(), hosts: hostsHere() }),
    slots: () => slots,
    health: () => health,
    receipts: () => receipts,
  };
  const colleagues = parts.line === null ? null : new Colleagues(parts.line, clock, ownParts);
  const health = new Health(clock, colleagues?.rests);
  const receipts = new Receipts(books, colleagues);
  const slots = new HostSlots(clock, colleagues?.places);
  const bodies = new ByteBudget(inForce.config.bodyMemoryBytes, clock);
  const reporting = new Reporting(inForce, parts, { health, slots, bodies, books });
  const probe = (route: Route) =>
    probeFree(route, { transport, destinations, clock, surfaces: SURFACES, pairing });
  const freeRoutes = new FreeRoutes(health, probe, clock, () => inForce.config.catalog);
  const spendable = new SpendableCredit(books.ledger, books.balance, clock);
  const unpaidRequests = new UnpaidRequests(clock);
  const pseudonym = pseudonyms(folder.adminToken);

  return {
    onFault,
    books,
    retention,
    unused,
    mailer,
    lowCredit,
    transport,
    destinations,
    health,
    hostsHere,
    colleagues,
    slots,
    bodies,
    reporting,
    freeRoutes,
    openStreams: new OpenStreams(),
    deadlines: new Deadlines(clock, onFault),
    counting: new Counting(clock),
    spendable,
    unpaidWaitS(balance: BalanceId, blocks: () => readonly string[], bytes: number): number | null {
      if (spendable.known(balance) !== 0) return null;
      return unpaidRequests.take({ balance, network: wideNetwork(blocks()) }, bytes);
    },
    receipts,
    suggest: (id: string) => suggestion(id, inForce.config.catalog, inForce.links.baseUrl),
    allowances: (balance: Balance, blocks: readonly string[]) =>
      allowancesOf(balance, blocks, inForce.config.openTier, pseudonym),
  };
}

/** What a generation request passes through. */
function generationDeps(rooms: Rooms, { inForce, clock, random, log }: Parts): GenerationDeps {
  const hostCosts = new HostCosts(clock);
  const { books, health, freeRoutes, reporting, counting, receipts } = rooms;
  return {
    clock,
    random,
    ledger: books.ledger,
    journal: books.journal,
    transport: rooms.transport,
    destinations: rooms.destinations,
    surfaces: SURFACES,
    pairing,
    health,
    chance: chanceOf(random),
    affinity: new Affinity(clock),
    expected: new ExpectedOutput(),
    slots: rooms.slots,
    tried({ route }, outcome, observation) {
      reporting.metrics.tried(route.host.id, outcome);
      if (!route.free) return;
      if (observation.kind === "served") freeRoutes.served(route);
      if (observation.kind === "failed") freeRoutes.doubt(route);
    },
    openStreams: rooms.openStreams,
    deadlines: rooms.deadlines,
    catalog: () => inForce.config.catalog,
    settings: () => inForce.generation,
    suggest: rooms.suggest,
    identify: (secret, at) => books.keyring.identify(secret, at),
    allowances: ({ balance }, call) => rooms.allowances(balance, call.blocks()),
    hostCharged({ model, route }, saidUsd, cost) {
      if (saidUsd <= 0) return;
      const at = { host: route.host.id, model: route.model };
      reporting.metrics.hostCharged(model.id, at.host, saidUsd);
      if (route.free) {
        log("free route charges", at);
        freeRoutes.doubt(route);
        return;
      }
      const undercharged = hostCosts.note(`${at.host} ${at.model}`, saidUsd, cost);
      if (undercharged !== null) log("host charges more", { ...at, ...undercharged });
    },
    unpaidWaitS: (balance, call) => rooms.unpaidWaitS(balance, () => call.blocks(), call.body.length),
    counting: {
      count: (what, { body }, turn) => counting.prompt(what, body, turn),
      readUnpaid: (asked, turn) => counting.request(asked, turn),
      credit: (balance) => rooms.spendable.of(balance),
      later: new DeferredCounts(),
      countAnswer: (texts, family) => counting.count(texts, family),
      countPrompt: (body, family) => counting.billedPrompt(body, family),
      allowance: new CountAllowance(clock),
    },
    openTrace: (headers) => reporting.openTrace(headers),
    finished: (done) => reporting.finished(done),
    keepRefused: (receipt) => receipts.keepRefused(receipt, rooms.spendable.known(receipt.balanceId) !== 0),
    onFault: rooms.onFault,
  };
}

interface Serving {
  readonly generate: HttpDeps["generate"];
  reload(): Promise<string | null>;
  hasStarted(): boolean;
  isStopping(): boolean;
}

/** What HTTP serves. */
function depsOf(rooms: Rooms, parts: Parts, serving: Serving): HttpDeps {
  const { generate, reload, hasStarted, isStopping } = serving;
  const { inForce, clock, random, folder, log } = parts;
  const { books, health, colleagues, hostsHere, reporting, counting, mailer } = rooms;
  const { ledger, keyring } = books;
  const countDesk: CountTokensDeps = {
    count: (what, { body }, turn) => counting.prompt(what, body, turn),
    readUnpaid: (asked, turn) => counting.request(asked, turn),
    credit: (balance) => rooms.spendable.of(balance),
    allowance: new CountAllowance(clock),
    later: new DeferredCounts(),
    nameRefusal: (model: string, { allowedModels }: Key) =>
      nameRefusal({ model, allowedModels }, inForce.config.catalog, rooms.suggest),
  };
  const wrongTokens = new WrongTokens(clock, (network, count) =>
    log("wrong admin token", { network, ...(count > 1 ? { more: count } : {}) }),
  );
  const untrustedProxies = new UntrustedProxies(
    (address) => reporting.metrics.untrustedProxy(address),
    (address) => log("untrusted proxy", { address, next: UNTRUSTED }),
  );
  return {
    keyDeps: {
      store: books.keys,
      keyring,
      clock,
      random,
      settings: () => inForce.config,
      credit: (balance) => rooms.spendable.of(balance),
    },
    accounts: {
      store: books.accounts,
      clock,
      random,
      contracts: contractSignatures(() => inForce.config.walletRpc),
      post: (mail) => mailer.post(mail),
      links: () => inForce.links,
      forgetBalance: (id) => keyring.forgetBalance(id),
    },
    throttles: colleagues?.throttles ?? throttlesOf(() => new AddressThrottle(clock)),
    adminToken: folder.adminToken,
    wrongAdminToken: (network) => wrongTokens.note(network),
    untrustedProxy: (address) => untrustedProxies.note(address),
    settings: () => inForce.http,
    generate,
    turnedAway: (surface, code) => reporting.metrics.turnedAway(surface, code),
    overRate(key) {
      const short = ledger.overRate(key);
      return short === null ? null : rateRefusal(short, inForce.links.dashboardUrl);
    },
    bodies: rooms.bodies,
    unpaidBytes: new UnpaidBytes(clock),
    unpaidWaitS: rooms.unpaidWaitS,
    mailsHeldBack: () => mailer.heldBack(),
    controlBodies: new ByteBudget(CONTROL_BODY_MEMORY_BYTES, clock),
    compactUnpaid: (body, turn) => counting.compaction(body, turn),
    countTokens: (body, asker) => countMessages(body, asker, countDesk),
    catalog: () => inForce.config.catalog,
    routeState: health,
    hostsNow: async () => (await colleagues?.hosts()) ?? hostsHere(),
    hostReports: () => health.report(inForce.config.catalog),
    ledger: ledgerOperations(books, rooms.allowances),
    receipts: rooms.receipts,
    nodes: books.nodes,
    usage: books.usage,
    spending: books.spending,
    apps: new AppBundle(),
    unready() {
      if (isStopping()) return "it has been told to stop";
      if (!hasStarted()) return "it is starting";
      return books.healthy() ? null : "it cannot record requests";
    },
    stopping: isStopping,
    async reload() {
      const problem = await reload();
      if (problem === null) parts.onReloaded();
      return { problem, needsRestart: inForce.needsRestart };
    },
    configInForce: () => configView(inForce.config, inForce.links),
    metrics: async () => prometheusText((await colleagues?.metrics()) ?? reporting.metrics.read()),
    diskRefused: books.diskRefused,
    onFault: rooms.onFault,
  };
}

const UNTRUSTED =
  "It sends X-Forwarded-For. If it is your proxy, add it to trusted_proxies: until then all its clients count as one.";

/** Null once the new configuration is in force; otherwise why it is not. */
async function reloaded(rooms: Rooms, { inForce, find, log }: Parts): Promise<string | null> {
  try {
    inForce.replace(await find());
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log("reload refused", { problem: error.message });
    return error.message;
  }
  const { catalog, bodyMemoryBytes } = inForce.config;
  rooms.bodies.resize(bodyMemoryBytes);
  rooms.health.keep(catalog);
  rooms.slots.prepare(catalog.hosts.values());
  void rooms.freeRoutes.verify();
  const { needsRestart } = inForce;
  log("reloaded", {
    models: catalog.models.size,
    hosts: catalog.hosts.size,
    ...(needsRestart.length > 0 ? { needs_restart: needsRestart.join(", ") } : {}),
  });
  return null;
}

/** Closes every part; the books once nothing writes to them any more. */
async function closed(rooms: Rooms, { clock, folder, stopSimulated }: Parts): Promise<void> {
  const { reporting, retention, unused, lowCredit, books, counting, transport, mailer } = rooms;
  // Nobody may be reading the log any more.
  await atMost(clock, CLOSE_MS, reporting.flushLog());
  await reporting.stopTracing(CLOSE_MS);
  await atMost(clock, CLOSE_MS, Promise.all([retention.stop(), unused.stop(), lowCredit.stop()]));
  await books.close();
  counting.stop();
  transport.close();
  await atMost(clock, CLOSE_MS, mailer.close());
  await stopSimulated();
  folder.release();
}

/** The longest that closing waits for any one part. */
const CLOSE_MS = 2_000;

const openBooks = (parts: Parts): Promise<Bookkeeping> => {
  const { inForce, folder, clock, log, onLost } = parts;
  const { config } = inForce;
  const { store } = config;
  const tools = { config, folder, clock, log, onLost };
  return store.kind === "sqlite" ? openSqliteBooks(tools) : openPostgresBooks(tools, store);
};

const stackOf = (error: unknown) => (error instanceof Error ? error.stack : String(error));
