import { configView } from "../config/config-view.ts";
import type { Key } from "../customers/keys/key.ts";
import { contractSignatures } from "../customers/wallets/contract-signatures.ts";
import { AppBundle } from "../dashboard/bundle.ts";
import { type CountTokensDeps, countMessages } from "../generation/count-tokens.ts";
import type { Repeats } from "../generation/repeats.ts";
import { rateRefusal } from "../generation/shortfall.ts";
import { ReceiptSigner } from "../generation/signing/receipt-signer.ts";
import { WrongTokens } from "../http/admin/wrong-tokens.ts";
import { CONTROL_BODY_MEMORY_BYTES } from "../http/control-body.ts";
import type { HttpDeps } from "../http/deps.ts";
import { UntrustedProxies } from "../http/untrusted-proxies.ts";
import { UnpaidBytes } from "../ledger/limits/unpaid-allowance.ts";
import { nameRefusal } from "../routing/naming.ts";
import { ledgerOperations } from "../store/ledger/ledger-operations.ts";
import { schemaVersion } from "../store/schema/migrations.ts";
import { prometheusText } from "../telemetry/metric.ts";
import { ByteBudget } from "../units/byte-budget.ts";
import type { Events } from "./events.ts";
import type { GatewayParts, Listening } from "./gateway-parts.ts";
import { promptCountDeps } from "./generation.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Rooms } from "./rooms.ts";

/** What HTTP serves. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table: what HTTP serves, and what serves it.
export function httpDeps(
  rooms: Rooms,
  parts: GatewayParts,
  { mailer, reload, modelLists, nodeDifferences }: Listening,
  { generate, repeats, lifecycle, events }: Serving,
): HttpDeps {
  const { config: active, clock, random, books, counting, log } = parts;
  const { health, peers, hostsHere, reporting, payments } = rooms;
  const { ledger, keyring } = books;
  const countTokensDeps: CountTokensDeps = {
    ...promptCountDeps(rooms, parts),
    nameRefusal: (model: string, { allowedModels }: Key) =>
      nameRefusal({ model, allowedModels }, active.config.catalog, rooms.suggest),
  };
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
    webhooks: events.ownWebhooks,
    operatorsWebhooks: events.operatorsWebhooks,
    throttles: rooms.throttles,
    adminToken: parts.adminToken,
    wrongTokens: new WrongTokens(clock, (network, count) =>
      log("wrong admin token", { network, ...(count > 1 ? { more: count } : {}) }),
    ),
    untrustedProxies: new UntrustedProxies(
      (address) => reporting.metrics.untrustedProxy(address),
      (address) => log("untrusted proxy", { address, next: UNTRUSTED }),
    ),
    settings: () => active.http,
    generate,
    generateOnce: (surface, call) => repeats.answer(surface, call),
    turnedAway: (surface, code) => reporting.metrics.turnedAway(surface, code),
    overRate(key) {
      const short = ledger.overRate(key);
      return short === null ? null : rateRefusal(short, active.links.dashboardUrl);
    },
    payments: payments.methods,
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
    unready: () => lifecycle.unready(),
    stopping: () => lifecycle.isStopping,
    reload: async () => ({ problem: await reload(), needsRestart: active.needsRestart }),
    modelLists,
    configInForce: () => configView(active.config, active.links),
    metrics: async () => prometheusText((await peers?.metrics()) ?? reporting.metrics.read()),
    onFault: rooms.onFault,
  };
}

interface Serving extends Pick<HttpDeps, "generate"> {
  readonly repeats: Repeats;
  readonly lifecycle: Lifecycle;
  readonly events: Events;
}

const UNTRUSTED =
  "It sends X-Forwarded-For. If it is your proxy, add it to trusted_proxies: until then all its clients count as one.";
