import type { Route } from "../catalog/catalog.ts";
import { suggestion } from "../catalog/closest-id.ts";
import type { Balance } from "../customers/keys/key.ts";
import { ExpectedOutput } from "../generation/expected-output.ts";
import { Receipts } from "../generation/refused-receipts.ts";
import { OpenStreams } from "../generation/stream/open-streams.ts";
import { Destinations } from "../hosts/destination.ts";
import { HostCosts } from "../hosts/host-costs.ts";
import { probeFree } from "../hosts/probe.ts";
import { routeReports } from "../hosts/route-report.ts";
import { HostSlots } from "../hosts/slots/host-slots.ts";
import { OpenSockets } from "../http/websocket/open-sockets.ts";
import { AddressThrottle, throttlesOf } from "../ledger/limits/address.ts";
import { UnpaidRequests } from "../ledger/limits/unpaid-allowance.ts";
import { SpendableCredit } from "../ledger/spendable-credit.ts";
import { Affinity } from "../routing/affinity.ts";
import { Health } from "../routing/health.ts";
import { allowancesOf, FreeRoutes, pseudonyms } from "../routing/open-tier/open-tier.ts";
import { openStorage } from "../store/export/export-target.ts";
import { Exporter } from "../store/export/exporter.ts";
import { schemaVersion } from "../store/schema/migrations.ts";
import { faultsAndOutagesTo } from "../telemetry/outages.ts";
import { ByteBudget } from "../units/byte-budget.ts";
import { Deadlines } from "../units/deadlines.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { KeyFiles } from "./key-files.ts";
import { openPayments } from "./payments.ts";
import { RequestReporting } from "./reporting.ts";
import { workerIdentity } from "./workers/worker-identity.ts";
import { WorkerPeers } from "./workers/worker-peers.ts";

/** What requests, pages and reports share. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table of what is shared, in the order in which one needs another
export function openRooms(parts: GatewayParts) {
  const { config: active, clock, transport, books, log } = parts;
  const onFault = faultsAndOutagesTo(log, clock);
  const catalog = () => active.config.catalog;
  const destinations = new Destinations();
  const peers = parts.channel === null ? null : new WorkerPeers(parts.channel, clock);
  const throttles = peers?.throttles ?? throttlesOf(() => new AddressThrottle(clock));
  const health = new Health(clock, peers?.rests);
  const affinity = new Affinity(clock, books.notices?.send ?? peers?.stays);
  books.notices?.listen((routes) => affinity.onRemoteRoutes(routes));
  const spendable = new SpendableCredit(books.ledger, books.balance, clock);
  const receipts = new Receipts(books, peers, spendable);
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
  const payments = openPayments(parts, throttles, onFault);
  const exporter = new Exporter({
    store: books.exports,
    clock,
    log,
    settings: () => active.config.export,
    open: (settings) => openStorage(settings, parts.env),
  });
  const reporting = new RequestReporting(active, parts, {
    hosts: () => health.report(catalog()),
    slots,
    bodies,
    sockets,
    ledger: books.ledger,
    journal: books.journal,
    figures: () => [...books.figures(), ...payments.figures(), ...exporter.figures()],
    schema: schemaVersion(active.config.store),
  });
  const probe = (route: Route) => probeFree(route, { transport, destinations, clock });
  const freeRoutes = new FreeRoutes(health, probe, clock, catalog);
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
    throttles,
    slots,
    bodies,
    sockets,
    reporting,
    freeRoutes,
    exporter,
    spendable,
    payments,
    receipts,
    keyFiles: new KeyFiles(clock, catalog, log),
    openStreams: new OpenStreams(),
    deadlines: new Deadlines(clock, onFault),
    expected: new ExpectedOutput(),
    hostCosts: new HostCosts({ clock, metrics: reporting.metrics, freeRoutes, log }),
    unpaidRequests: new UnpaidRequests(clock, spendable),
    suggest: (id: string) => suggestion(id, catalog(), active.links.baseUrl),
    allowances: (balance: Balance, blocks: readonly string[]) =>
      allowancesOf(balance, blocks, active.config.openTier, pseudonym),
  };
}

export type Rooms = ReturnType<typeof openRooms>;

const REFUSED_KEY =
  "It gets no requests until its variable or file holds another key: replace the file, or set the variable and restart.";
