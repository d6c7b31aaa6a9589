import { configView } from "../config/config-view.ts";
import type { Key } from "../customers/keys/key.ts";
import { contractSignatures } from "../customers/wallets/contract-signatures.ts";
import { AppBundle } from "../dashboard/bundle.ts";
import { type CountTokensDeps, countMessages } from "../generation/count-tokens.ts";
import type { Repeats } from "../generation/idempotency.ts";
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
  const { peers, reporting } = rooms;
  const { keyring } = books;
  const countTokensDeps: CountTokensDeps = {
    ...promptCountDeps(rooms, parts),
    nameRefusal: (model: string, { allowedModels }: Key) =>
      nameRefusal({ model, allowedModels }, active.config.catalog, rooms.suggest),
  };
  return {
    config: {
      get settings() {
        return active.http;
      },
      get catalog() {
        return active.config.catalog;
      },
      schema: schemaVersion(active.config.store),
      modelLists,
      view: () => configView(active.config, active.links),
      reload: async () => ({ problem: await reload(), needsRestart: active.needsRestart }),
      nodeDifferences,
    },
    lifecycle,
    clock,
    random,
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
    books,
    ledger: ledgerOperations(books, rooms.allowances),
    receipts: rooms.receipts,
    receiptSigner: new ReceiptSigner({
      store: books.signingKeys,
      clock,
      random,
      issuer: () => active.links.baseUrl,
    }),
    payments: rooms.payments.methods,
    webhooks: events.ownWebhooks,
    operatorsWebhooks: events.operatorsWebhooks,
    generation: {
      generate,
      generateOnce: (surface, call) => repeats.answer(surface, call),
      turnedAway: (surface, code) => reporting.metrics.turnedAway(surface, code),
      overRate(key) {
        const short = books.ledger.overRate(key);
        return short === null ? null : rateRefusal(short, active.links.dashboardUrl);
      },
      countTokens: (body, asker) => countMessages(body, asker, countTokensDeps),
      compaction: (...work) => counting.compaction(...work),
    },
    sockets: rooms.sockets,
    bodies: {
      prompts: rooms.bodies,
      control: new ByteBudget(CONTROL_BODY_MEMORY_BYTES, clock),
      unpaid: new UnpaidBytes(clock),
    },
    unpaidRequests: rooms.unpaidRequests,
    throttles: rooms.throttles,
    untrustedProxies: new UntrustedProxies(
      (address) => reporting.metrics.untrustedProxy(address),
      (address) => log("untrusted proxy", { address, next: UNTRUSTED }),
    ),
    admin: {
      token: parts.adminToken,
      wrongTokens: new WrongTokens(clock, (network, count) =>
        log("wrong admin token", { network, ...(count > 1 ? { more: count } : {}) }),
      ),
    },
    health: rooms.health,
    processes: {
      hosts: async () => (await peers?.query("hosts")) ?? rooms.hostsHere(),
      metrics: async () => prometheusText((await peers?.query("metrics")) ?? reporting.metrics.read()),
    },
    apps: new AppBundle(),
    onFault: rooms.onFault,
  };
}

interface Serving extends Pick<HttpDeps["generation"], "generate"> {
  readonly repeats: Repeats;
  readonly lifecycle: Lifecycle;
  readonly events: Events;
}

const UNTRUSTED =
  "It sends X-Forwarded-For. If it is your proxy, add it to trusted_proxies: until then all its clients count as one.";
