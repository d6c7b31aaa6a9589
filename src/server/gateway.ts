import type { Route, SurfaceName } from "../catalog/catalog.ts";
import { suggestion } from "../catalog/closest-id.ts";
import { configView } from "../config/config-view.ts";
import {
  EventDelivery,
  OPERATORS_PACE,
  OWNERS_PACE,
  type WebhookLine,
  webhookLine,
} from "../customers/events/delivery.ts";
import type { OutgoingEvent } from "../customers/events/event.ts";
import { OperatorsWebhooks } from "../customers/events/operators-webhooks.ts";
import { OwnWebhooks } from "../customers/events/own-webhooks.ts";
import { SealedSecrets } from "../customers/events/sealed-secrets.ts";
import { type Webhook, webhookId } from "../customers/events/webhook.ts";
import type { Balance, Key } from "../customers/keys/key.ts";
import { BY_GATEWAY, type SuspensionRecord } from "../customers/keys/key-store.ts";
import { eventMailLine, mailboxOf } from "../customers/mail/event-mail.ts";
import { mailLine, OWNERS_MAIL, ownersMail } from "../customers/mail/low-credit.ts";
import type { Mailer } from "../customers/mail/mailer.ts";
import { contractSignatures } from "../customers/wallets/contract-signatures.ts";
import { AppBundle } from "../dashboard/bundle.ts";
import type { GenerationAnswer, GenerationCall } from "../generation/answer.ts";
import { type CountTokensDeps, countMessages } from "../generation/count-tokens.ts";
import type { Counting } from "../generation/counting/counting.ts";
import { DeliveredCounts } from "../generation/delivered-counts.ts";
import type { GenerationDeps } from "../generation/deps.ts";
import { ExpectedOutput } from "../generation/expected-output.ts";
import { generator } from "../generation/generate.ts";
import { DeferredCounts, type PromptCountDeps } from "../generation/prompt-count.ts";
import { PromptSizes } from "../generation/prompt-sizes.ts";
import { KeptPrompts } from "../generation/recount.ts";
import { Receipts } from "../generation/refused-receipts.ts";
import { Repeats } from "../generation/repeats.ts";
import { userPseudonyms } from "../generation/request-tags.ts";
import { rateRefusal } from "../generation/shortfall.ts";
import { ReceiptSigner } from "../generation/signing/receipt-signer.ts";
import { OpenStreams } from "../generation/stream/open-streams.ts";
import { Destinations } from "../hosts/destination.ts";
import { HostCosts } from "../hosts/host-costs.ts";
import { systemResolve, urlProblem } from "../hosts/owner-address.ts";
import { OwnerConnection } from "../hosts/owner-connection.ts";
import { probeFree } from "../hosts/probe.ts";
import { routeReports } from "../hosts/route-report.ts";
import { HostSlots } from "../hosts/slots/host-slots.ts";
import type { Transport } from "../hosts/transport.ts";
import { WebhookConnection } from "../hosts/webhook-connection.ts";
import { WrongTokens } from "../http/admin/wrong-tokens.ts";
import { CONTROL_BODY_MEMORY_BYTES } from "../http/control-body.ts";
import type { HttpDeps, ModelLists } from "../http/deps.ts";
import { checkedSignature } from "../http/identity.ts";
import { UntrustedProxies } from "../http/untrusted-proxies.ts";
import { OpenSockets } from "../http/websocket/open-sockets.ts";
import { AddressThrottle, throttlesOf } from "../ledger/limits/address.ts";
import { CountAllowance } from "../ledger/limits/count-allowance.ts";
import { UnpaidBytes, UnpaidRequests } from "../ledger/limits/unpaid-allowance.ts";
import { SpendableCredit } from "../ledger/spendable-credit.ts";
import { PaymentCounts } from "../payments/rails/payment-counts.ts";
import type { PaymentPace } from "../payments/rails/payment-pace.ts";
import { PaymentWatch } from "../payments/rails/payment-watch.ts";
import { CardRail } from "../payments/rails/stripe/card-rail.ts";
import { openStripe } from "../payments/rails/stripe/stripe-api.ts";
import { openChain } from "../payments/rails/x402/chain.ts";
import { InlinePayments } from "../payments/rails/x402/inline.ts";
import { openSettler } from "../payments/rails/x402/open-settler.ts";
import { Sanctions } from "../payments/rails/x402/sanctions.ts";
import { X402Rail } from "../payments/rails/x402/x402.ts";
import { Affinity } from "../routing/affinity.ts";
import { Health } from "../routing/health.ts";
import { nameRefusal } from "../routing/naming.ts";
import { allowancesOf, FreeRoutes, pseudonyms } from "../routing/open-tier/open-tier.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import { UnusedRemoval } from "../store/customers/unused-keys.ts";
import { openStorage } from "../store/export/export-target.ts";
import { Exporter } from "../store/export/exporter.ts";
import { Retention } from "../store/ledger/fold.ts";
import { ledgerOperations } from "../store/ledger/ledger-operations.ts";
import { schemaVersion } from "../store/schema/migrations.ts";
import { BROKEN_OFF, pairing } from "../surfaces/surfaces.ts";
import { prometheusText } from "../telemetry/metric.ts";
import { faultsAndOutagesTo } from "../telemetry/outages.ts";
import type { LogWriter } from "../telemetry/request-log.ts";
import { ByteBudget } from "../units/byte-budget.ts";
import { atMost, type Clock } from "../units/clock.ts";
import { Deadlines } from "../units/deadlines.ts";
import { errorObject } from "../units/errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import type { Log } from "../units/log.ts";
import { chanceOf, type RandomBytes } from "../units/random.ts";
import type { ActiveConfig } from "./active-config.ts";
import { drain } from "./draining.ts";
import { GracefulShutdown } from "./graceful-shutdown.ts";
import { type InUse, inUse } from "./in-use.ts";
import { KeyFiles } from "./key-files.ts";
import { RequestReporting } from "./reporting.ts";
import { ServiceEvents } from "./service-events.ts";
import type { IpcChannel } from "./workers/messages.ts";
import { PassedRepeats } from "./workers/passed-repeats.ts";
import { RepeatOwners } from "./workers/repeat-owners.ts";
import { type WorkerIdentity, workerIdentity } from "./workers/worker-identity.ts";
import { WorkerPeers } from "./workers/worker-peers.ts";

/**
 * Joins the rooms: whatever any floor needs from another is handed over here and nowhere else, to production
 * (`server/open-gateway`), the simulator, test gateways and benches alike. They differ in what they hand in.
 */
export function buildGateway(parts: GatewayParts): BuiltGateway {
  const { config: active, clock, listen, log } = parts;
  const rooms = roomsOf(parts);
  const generation = generationDeps(rooms, parts);
  const generate = generator(generation);
  const worker = workerIdentity(parts.env);
  const repeats = repeatsOf(generate, generation, worker);
  const passed = worker === null ? null : passedRepeats(repeats, rooms, parts);
  // Bound before the port is open: what the other workers find closed is answered elsewhere.
  const listening = passed?.listen(worker!.socketOf(worker!.number));
  const reporters = listen === null ? [] : reportersOf(rooms, generation, parts, listen.mailer);
  // Endpoints of events first, so that they are sent what the others find.
  const prepare = async () => {
    for (const one of reporters) await one.prepare();
  };
  const background = listen === null ? [] : [...backgroundWork(rooms, parts), ...reporters];
  let started = false;
  const shutdown = new GracefulShutdown({
    clock,
    delayMs: () => active.config.shutdownDelayMs,
    async leave() {
      log("draining");
      rooms.freeRoutes.stop();
      repeats.leave();
      const { drainMs } = active.config;
      if (server !== null)
        await drain(server, { ...rooms, passed, ledger: parts.books.ledger, clock, drainMs });
      passed?.stop();
      repeats.stop();
      await closed(rooms, background, parts);
      const left = used();
      if (left.length > 0) log("left in use", Object.fromEntries(left));
    },
  });
  const serving = { generate, repeats, hasStarted: () => started, isStopping: () => shutdown.started };
  rooms.slots.prepare(active.config.catalog.hosts.values());
  rooms.keyFiles.watch();
  const deps = listen === null ? null : depsOf(rooms, parts, listen, serving);
  const server = deps === null ? null : listen!.open(deps);
  const used = () => inUse({ ...parts.books, ...parts, ...rooms, generation, repeats, passed, deps, server });
  return {
    generation,
    generate,
    port: server?.port ?? null,
    async start() {
      await listening;
      const first = [rooms.freeRoutes.verify(), rooms.x402?.prepare(), prepare()];
      await atMost(clock, FIRST_PROBES_MS, Promise.all(first));
      started = true;
      parts.counting.loadAhead();
    },
    configChanged() {
      const { catalog, bodyMemoryBytes } = active.config;
      rooms.bodies.resize(bodyMemoryBytes);
      passed?.resize(bodyMemoryBytes);
      rooms.health.keep(catalog);
      rooms.slots.prepare(catalog.hosts.values());
      rooms.keyFiles.watch();
      void rooms.freeRoutes.verify();
      void prepare();
    },
    inUse: used,
    stop: () => shutdown.shutDown(),
  };
}

export interface GatewayParts {
  readonly config: ConfigInForce;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly transport: Transport;
  readonly books: Bookkeeping;
  readonly counting: TokenCounting;
  /** Null: only who has built it sends requests. */
  readonly listen: Listening | null;
  readonly log: Log;
  readonly adminToken: string;
  /** Makes the pseudonyms of networks that send free requests, and of end users. */
  readonly networkSecret: string;
  /** To the supervisor, where this is one of several workers. */
  readonly channel: IpcChannel | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Takes the lines of the request log. */
  readonly writeLog: LogWriter | null;
  readonly paymentPace: PaymentPace;
}

/** The configuration as it is now: a reload changes what it answers. */
export type ConfigInForce = Pick<
  ActiveConfig,
  "config" | "links" | "generation" | "http" | "needsRestart" | "modelVersion"
>;

/** As its thread does it. */
type TokenCounting = Pick<Counting, keyof Counting>;

/** What a gateway with a port needs besides. */
interface Listening {
  open(deps: HttpDeps): Bun.Server<unknown>;
  readonly mailer: Mailer;
  /** By node: in which settings it differs from this one. */
  nodeDifferences(): Promise<ReadonlyMap<string, readonly string[]>>;
  /** The operator asks for it over HTTP; null once the new configuration is in force, otherwise why it is not. */
  reload(): Promise<string | null>;
  readonly modelLists: ModelLists;
}

export interface BuiltGateway {
  readonly generation: GenerationDeps;
  generate(surface: SurfaceName, call: GenerationCall): Promise<GenerationAnswer>;
  /** Null where none is open. */
  readonly port: number | null;
  /** Resolves once the free routes were probed, or this took too long; `/readyz` is 503 until then. */
  start(): Promise<void>;
  /** After a reload, or when other models were applied. */
  configChanged(): void;
  /** What requests hold, take or wait for at this moment: nothing, once all have ended. */
  inUse(): readonly InUse[];
  /**
   * Serves for `shutdown_delay_ms` more while `/readyz` is 503, then refuses new requests, lets streams
   * finish within `drain_ms`, closes the books. Called again, it skips what is left of the delay.
   */
  stop(): Promise<void>;
}

/** The start waits this long for the free routes to be probed, and goes on without those that take longer. */
const FIRST_PROBES_MS = 5_000;

type Rooms = ReturnType<typeof roomsOf>;

/** What requests, pages and reports share. */
function roomsOf(parts: GatewayParts) {
  const { config: active, clock, transport, books, log } = parts;
  const onFault = faultsAndOutagesTo(log, clock);
  const catalog = () => active.config.catalog;
  const destinations = new Destinations();
  const peers = parts.channel === null ? null : new WorkerPeers(parts.channel, clock);
  const health = new Health(clock, peers?.rests);
  const affinity = new Affinity(clock, books.notices?.send ?? peers?.stays);
  books.notices?.listen((routes) => affinity.onRemoteRoutes(routes));
  const spendable = new SpendableCredit(books.ledger, books.balance, clock);
  const receipts = new Receipts(books, peers, spendable);
  const keyFiles = new KeyFiles(clock, catalog, log);
  const slots = new HostSlots(clock, peers?.slots, {
    processes: workerIdentity(parts.env)?.workers ?? 1,
    onRetired: (host, key, detail) => log("host key refused", { host, key, detail, next: REFUSED_KEY }),
  });
  const bodies = new ByteBudget(active.config.bodyMemoryBytes, clock);
  const sockets = new OpenSockets(clock, {
    messageBytes: active.config.websocketMessageBytes,
    bodies,
    settings: () => active.config,
  });
  const { x402, paying, figures: ofBooks } = x402Parts(parts);
  const exporter = exporterOf(parts);
  const figures = () => [...ofBooks(), ...exporter.figures()];
  const hosts = () => health.report(catalog());
  const { ledger, journal } = books;
  const schema = schemaVersion(active.config.store);
  const measured = { hosts, slots, bodies, sockets, ledger, journal, figures, schema };
  const reporting = new RequestReporting(active, parts, measured);
  const probe = (route: Route) => probeFree(route, { transport, destinations, clock });
  const freeRoutes = new FreeRoutes(health, probe, clock, catalog);
  const card = cardRail(parts, paying, onFault);
  const hostsHere = () => ({ routes: routeReports(health, catalog()), loads: [...slots.loads()] });
  const state = () => ({ metrics: reporting.metrics.read(), hosts: hostsHere() });
  peers?.join({ state, slots, health, affinity, receipts });
  const pseudonym = pseudonyms(parts.networkSecret);
  return {
    onFault,
    destinations,
    health,
    affinity,
    hostsHere,
    peers,
    keyFiles,
    slots,
    bodies,
    reporting,
    freeRoutes,
    exporter,
    openStreams: new OpenStreams(),
    sockets,
    deadlines: new Deadlines(clock, onFault),
    spendable,
    x402,
    throttles: peers?.throttles ?? throttlesOf(() => new AddressThrottle(clock)),
    payments: paying.rail.store,
    card,
    unpaidRequests: new UnpaidRequests(clock, spendable),
    receipts,
    suggest: (id: string) => suggestion(id, catalog(), active.links.baseUrl),
    allowances: (balance: Balance, blocks: readonly string[]) =>
      allowancesOf(balance, blocks, active.config.openTier, pseudonym),
  };
}

/** What all ways to pay share. */
function paymentParts({ config: active, clock, random, books, paymentPace }: GatewayParts) {
  const { payments } = active.config;
  const { keys, keyring } = books;
  const sanctions = new Sanctions(payments?.sanctions ?? { list: null, oracle: false }, clock);
  const counts = new PaymentCounts(() => sanctions.figures());
  const figures = () => (payments === null ? books.figures() : [...books.figures(), ...counts.figures()]);
  return {
    sanctions,
    figures,
    rail: { store: counts.counted(books.payments), debit: books.debit, pace: paymentPace, clock, random },
    /** Suspends by the gateway itself, or lifts that; durable. */
    decide:
      (decided: Pick<SuspensionRecord, "reason" | "lifted">) => async (subject: BalanceId, note: string) => {
        await keys.suspend({ subject, ...decided, at: clock.now(), by: BY_GATEWAY, note });
        keyring.forgetBalance(subject);
      },
  };
}

type PaymentParts = Omit<ReturnType<typeof paymentParts>, "figures">;

function x402Parts(parts: GatewayParts) {
  const { figures, ...paying } = paymentParts(parts);
  const x402 = x402Rail(parts, paying);
  return { x402, paying, figures: () => [...figures(), ...(x402?.figures() ?? [])] };
}

/** Null where nothing is paid by it; then nothing of it is loaded. */
function x402Rail(
  { config: active, clock, books, paymentPace: pace, log }: GatewayParts,
  { rail, sanctions, decide }: PaymentParts,
): X402Rail | null {
  const { payments } = active.config;
  if (payments === null || payments.x402.length === 0) return null;
  return new X402Rail({
    ...rail,
    networks: payments.x402,
    open: async (network) => ({
      chain: await openChain(network),
      settler: await openSettler(network, { store: books.gasLine, clock, pace, log }),
    }),
    sanctions,
    suspend: decide({ reason: "sanctions", lifted: null }),
    log,
  });
}

/** Null where no card is taken; then nothing of it is loaded. */
function cardRail(
  { config: active }: GatewayParts,
  { rail, decide }: PaymentParts,
  onFault: (error: unknown) => void,
) {
  const stripe = active.config.payments?.stripe ?? null;
  if (stripe === null) return null;
  return new CardRail({
    ...rail,
    api: openStripe(stripe),
    fee: stripe.fee,
    suspend: decide({ reason: "chargeback", lifted: null }),
    lift: decide({ reason: null, lifted: "chargeback" }),
    returnUrl: (payment) => `${active.links.dashboardUrl}#/credit/${payment}`,
    onFault,
  });
}

function inlinePayments({ x402, throttles, onFault }: Rooms, { config: active, clock }: GatewayParts) {
  const { payments } = active.config;
  if (payments === null || x402 === null) return null;
  return new InlinePayments({
    rail: x402,
    amounts: payments.amounts,
    perHour: payments.inlinePerHour,
    againstForging: (blocks, check) => checkedSignature(throttles.wrong_signatures, blocks, check),
    baseUrl: () => active.links.baseUrl,
    contact: () => active.links.contact,
    clock,
    onFault,
  });
}

/** What a generation request passes through. */
function generationDeps(rooms: Rooms, parts: GatewayParts): GenerationDeps {
  const { config: active, clock, random, books, counting, transport, log } = parts;
  const { health, freeRoutes, reporting } = rooms;
  return {
    clock,
    random,
    ledger: books.ledger,
    journal: books.journal,
    transport,
    destinations: rooms.destinations,
    pairing,
    health,
    chance: chanceOf(random),
    affinity: rooms.affinity,
    expected: new ExpectedOutput(),
    slots: rooms.slots,
    tried({ route }, outcome, observation) {
      reporting.metrics.tried(route.host.id, outcome);
      if (!route.free) return;
      if (observation.kind === "served") freeRoutes.served(route);
      if (observation.kind === "failed") freeRoutes.doubt(route);
    },
    openStreams: rooms.openStreams,
    delivered: deliveredCounts(parts),
    deadlines: rooms.deadlines,
    catalog: () => active.config.catalog,
    settings: () => active.generation,
    suggest: rooms.suggest,
    keyring: books.keyring,
    runs: books.runs,
    spendable: rooms.spendable,
    unpaidRequests: rooms.unpaidRequests,
    receipts: rooms.receipts,
    payments: inlinePayments(rooms, parts),
    allowances: rooms.allowances,
    userPseudonym: userPseudonyms(parts.networkSecret),
    hostCosts: new HostCosts({ clock, metrics: reporting.metrics, freeRoutes, log }),
    reporting,
    prompts: new KeptPrompts(),
    promptSizes: new PromptSizes(),
    counting: {
      ...promptCountDeps(rooms, parts),
      countAnswer: (texts, family) => counting.count(texts, family),
      countPrompt: (body, family) => counting.billedPrompt(body, family),
    },
    onFault: rooms.onFault,
  };
}

/** The ledger's checkpoints have the open streams counted. */
function deliveredCounts({ books, counting }: GatewayParts): DeliveredCounts {
  const delivered = new DeliveredCounts(books.ledger, (answers) => counting.countEach(answers));
  books.ledger.countDelivered = () => delivered.count();
  return delivered;
}

/** Requests and `count_tokens` have an allowance each. */
const promptCountDeps = ({ spendable }: Rooms, { counting, clock }: GatewayParts): PromptCountDeps => ({
  count: (what, { body }, turn) => counting.prompt(what, body, turn),
  readUnpaid: (work, turn) => counting.request(work, turn),
  credit: (balance) => spendable.of(balance),
  allowance: new CountAllowance(clock),
  later: new DeferredCounts(),
});

const repeatsOf = (
  generate: BuiltGateway["generate"],
  { clock, deadlines, settings, keyring, spendable, unpaidRequests }: GenerationDeps,
  worker: WorkerIdentity | null,
): Repeats =>
  new Repeats({
    clock,
    generate,
    keyring,
    spendable,
    unpaidRequests,
    peers:
      worker === null
        ? null
        : new RepeatOwners(worker, {
            clock,
            deadlines,
            silenceMs: () => settings().totalMs + SETTLED_MS,
            brokenOff: (surface, why) => BROKEN_OFF[surface](errorObject(why, settings().baseUrl)),
          }),
  });

/** What an answer may take beyond its own time, until it is settled and sent. */
const SETTLED_MS = 60_000;

const passedRepeats = (
  repeats: Repeats,
  { deadlines, onFault }: Rooms,
  { config: active, clock }: GatewayParts,
) =>
  new PassedRepeats(active.config.bodyMemoryBytes, {
    clock,
    deadlines,
    onFault,
    answer: (surface, call, ifKept) => repeats.answerPassed(surface, call, ifKept),
  });

interface ServingState extends Pick<BuiltGateway, "generate"> {
  readonly repeats: Repeats;
  hasStarted(): boolean;
  isStopping(): boolean;
}

/** What HTTP serves. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table: what HTTP serves, and what serves it.
function depsOf(
  rooms: Rooms,
  parts: GatewayParts,
  { mailer, reload, modelLists, nodeDifferences }: Listening,
  serving: ServingState,
): HttpDeps {
  const { config: active, clock, random, books, counting, log } = parts;
  const { health, peers, hostsHere, reporting } = rooms;
  const { ledger, keyring } = books;
  const countTokensDeps: CountTokensDeps = {
    ...promptCountDeps(rooms, parts),
    nameRefusal: (model: string, { allowedModels }: Key) =>
      nameRefusal({ model, allowedModels }, active.config.catalog, rooms.suggest),
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
      settings: () => active.config,
      spendable: rooms.spendable,
    },
    accounts: {
      store: books.accounts,
      clock,
      random,
      contracts: contractSignatures(() => active.config.wallet.rpc),
      mailer,
      links: () => active.links,
      keyring,
    },
    webhooks: ownWebhooks(parts, mailer),
    operatorsWebhooks: new OperatorsWebhooks({
      store: books.webhooks,
      clock,
      send: sending(operatorsLine(parts)),
    }),
    throttles: rooms.throttles,
    adminToken: parts.adminToken,
    wrongTokens,
    untrustedProxies,
    settings: () => active.http,
    generate: serving.generate,
    generateOnce: (surface, call) => serving.repeats.answer(surface, call),
    turnedAway: (surface, code) => reporting.metrics.turnedAway(surface, code),
    overRate(key) {
      const short = ledger.overRate(key);
      return short === null ? null : rateRefusal(short, active.links.dashboardUrl);
    },
    payments:
      active.config.payments === null
        ? null
        : {
            amounts: active.config.payments.amounts,
            store: rooms.payments,
            x402: rooms.x402,
            card: rooms.card,
          },
    bodies: rooms.bodies,
    unpaidBytes: new UnpaidBytes(clock),
    unpaidRequests: rooms.unpaidRequests,
    mailer,
    controlBodies: new ByteBudget(CONTROL_BODY_MEMORY_BYTES, clock),
    counting,
    countTokens: (body, asker) => countMessages(body, asker, countTokensDeps),
    catalog: () => active.config.catalog,
    books,
    sockets: rooms.sockets,
    health,
    hostsNow: async () => (await peers?.hosts()) ?? hostsHere(),
    ledger: ledgerOperations(books, rooms.allowances),
    receipts: rooms.receipts,
    receiptSigner: new ReceiptSigner({
      store: books.signingKeys,
      clock,
      random,
      issuer: () => active.links.baseUrl,
    }),
    nodeDifferences,
    schema: schemaVersion(active.config.store),
    apps: new AppBundle(),
    unready() {
      if (serving.isStopping()) return "it is stopping";
      if (!serving.hasStarted()) return "it is starting";
      return books.healthy() ? null : "it cannot record requests";
    },
    stopping: serving.isStopping,
    reload: async () => ({ problem: await reload(), needsRestart: active.needsRestart }),
    modelLists,
    configInForce: () => configView(active.config, active.links),
    metrics: async () => prometheusText((await peers?.metrics()) ?? reporting.metrics.read()),
    onFault: rooms.onFault,
  };
}

const REFUSED_KEY =
  "It gets no requests until its variable or file holds another key: replace the file, or set the variable and restart.";

const UNTRUSTED =
  "It sends X-Forwarded-For. If it is your proxy, add it to trusted_proxies: until then all its clients count as one.";

/** What is done now and then, without a request. */
function backgroundWork(
  { x402, card, payments }: Rooms,
  { config: active, paymentPace, clock, books, log }: GatewayParts,
) {
  const onFault = (error: unknown) => log("books", { error: String(error) });
  const rails = [x402, card].filter((rail) => rail !== null);
  const watches = rails.length === 0 ? [] : [new PaymentWatch(payments, rails, paymentPace, clock, log)];
  return [
    ...watches,
    new Retention({
      clock,
      keepDays: () => active.config.receipts.keepDays,
      fold: books.fold,
      onDeleted: (receipts) => log("receipts deleted", { receipts }),
      onFault,
    }),
    new Retention({
      clock,
      keepDays: () => active.config.changes.keepDays,
      fold: (before) => books.changes.forget(before),
      onDeleted: (changes) => log("changes deleted", { changes }),
      onFault,
    }),
    new UnusedRemoval({
      clock,
      days: () => active.config.unusedDays,
      store: books.keys,
      keyring: books.keyring,
      isInUse: (balance) => books.ledger.counters.ofBalance(balance) !== undefined,
      onRemoved: (removed) => log("unused removed", removed),
      onFault,
    }),
  ];
}

/** What tells others of what happens here. */
function reportersOf(
  { exporter, health }: Rooms,
  { hostCosts }: GenerationDeps,
  parts: GatewayParts,
  mailer: Mailer,
) {
  const { config, clock, books, log } = parts;
  const hosts = () => health.report(config.config.catalog);
  return [
    ...eventDelivery(parts, mailer),
    exporter,
    new ServiceEvents({ books, hosts, hostCosts, config, clock, log }),
  ];
}

const exporterOf = ({ config: active, clock, books, log, env }: GatewayParts): Exporter =>
  new Exporter({
    store: books.exports,
    clock,
    log,
    settings: () => active.config.export,
    open: (settings) => openStorage(settings, env),
  });

/** To the operator's endpoints and owners' mailboxes; and, at a pace of its own, to owners' endpoints. */
function eventDelivery(parts: GatewayParts, mailer: Mailer): readonly [EventDelivery, EventDelivery] {
  const { config: active, clock, books, log } = parts;
  const mails = mailLine({
    accounts: books.accounts,
    log,
    deliver: (mail) => mailer.deliver(mail),
    links: () => active.links,
  });
  const webhooks = () => {
    const { lowCredit, webhooks } = active.config;
    const endpoints = (webhooks?.endpoints ?? []).map(({ url, format, secret, kinds }) => ({
      id: webhookId(url),
      url,
      format,
      kinds,
      secrets: secret,
      lowCredit,
    }));
    return [...endpoints, ownersMail(lowCredit)];
  };
  const shared = { clock, log };
  const line = operatorsLine(parts);
  return [
    new EventDelivery({
      ...shared,
      queue: books.webhooks,
      operators: { store: books.webhooks, webhooks },
      pace: OPERATORS_PACE,
      open: (webhook) => (webhook.id === OWNERS_MAIL ? mails : line(webhook)),
    }),
    new EventDelivery({
      ...shared,
      queue: books.ownWebhooks,
      operators: null,
      pace: OWNERS_PACE,
      open: ownersLine(parts, mailer),
    }),
  ];
}

/** To an endpoint of the configuration, which may be in the operator's own network. */
const operatorsLine =
  ({ clock, log }: GatewayParts) =>
  (webhook: Webhook): WebhookLine => {
    const onFault = (error: unknown) => log("webhooks", { problem: String(error) });
    return webhookLine(webhook, clock, new WebhookConnection(webhook.url, clock, onFault));
  };

/** One event. */
const sending = (open: (webhook: Webhook) => WebhookLine) => (webhook: Webhook, event: OutgoingEvent) => {
  const line = open(webhook);
  return line.send(event).finally(() => line.close());
};

/** To owners' endpoints, whose secrets are sealed. */
function ownersLine(
  { config: active, clock, random, networkSecret, log, books }: GatewayParts,
  mailer: Mailer,
) {
  const onFault = (error: unknown) => log("webhooks", { problem: String(error) });
  const sealed = new SealedSecrets(networkSecret, random);
  const mails = eventMailLine({
    accounts: books.accounts,
    hours: books.mailHours,
    clock,
    deliver: (mail) => mailer.deliver(mail),
    links: () => active.links,
  });
  return (webhook: Webhook): WebhookLine => {
    if (webhook.format === "mail") return mails;
    return webhookLine(
      { ...webhook, secrets: webhook.secrets.map((one) => sealed.open(one)) },
      clock,
      new OwnerConnection(webhook.url, {
        allowed: () => active.config.webhooks?.owners ?? "public",
        resolve: systemResolve,
        clock,
        onFault,
      }),
    );
  };
}

function ownWebhooks(parts: GatewayParts, mailer: Mailer): OwnWebhooks {
  const { config: active, clock, random, networkSecret, books } = parts;
  return new OwnWebhooks({
    store: books.ownWebhooks,
    clock,
    random,
    sealed: new SealedSecrets(networkSecret, random),
    isFunded: async (balance) => (await books.balance(balance)).credited > 0,
    urlProblem: (url) => urlProblem(url, active.config.webhooks?.owners ?? "public"),
    hasMailbox: async (balance) => (await mailboxOf(balance, books.accounts))?.email != null,
    send: sending(ownersLine(parts, mailer)),
  });
}

/** Closes every part; the books once nothing writes to them any more. */
async function closed(
  { reporting, keyFiles }: Rooms,
  background: readonly Stoppable[],
  parts: GatewayParts,
): Promise<void> {
  const { clock, books, counting, transport, listen } = parts;
  keyFiles.stop();
  // Nobody may be reading the log any more.
  await atMost(clock, CLOSE_MS, reporting.flushLog());
  await reporting.stopSending(CLOSE_MS);
  await atMost(clock, CLOSE_MS, Promise.all(background.map((one) => one.stop())));
  await books.close();
  counting.stop();
  transport.close();
  if (listen !== null) await atMost(clock, CLOSE_MS, listen.mailer.close());
}

type Stoppable = { stop(): Promise<void> };

/** The longest that closing waits for any one part. */
const CLOSE_MS = 2_000;
