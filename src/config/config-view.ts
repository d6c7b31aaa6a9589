import type { ConfigAnswer } from "../api/admin.ts";
import type { Host, Model, Price, Route } from "../catalog/catalog.ts";
import { priceEntry } from "../catalog/entry.ts";
import type { NewKeyLimits } from "../keys/deps.ts";
import { DEFAULT_CONCURRENT } from "../limits/host-slots.ts";
import type { SmtpConfig } from "../mail/mailer.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { type NanoUsd, usdFromNano } from "../units/usd.ts";
import { type Config, hostAndPort, isDiskless, type Links, type PaymentsConfig } from "./config.ts";
import { inFile } from "./plain-settings.ts";
import { quirkRow } from "./quirks.ts";

/**
 * The configuration in force as its operator may read it: the members of the file, every default applied, and
 * no secret. Members are named one by one, but for those of groups that hold none, so that one that is added
 * later stays unseen until somebody decides that it may be shown.
 */
export function configView(config: Config, links: Links): ConfigAnswer {
  const { catalog, generation, openTier, routing, setup, signIn } = config;
  return {
    file: config.file,
    base_url: links.baseUrl,
    dashboard_url: links.dashboardUrl,
    status_url: links.statusUrl,
    contact: config.contact,
    catalog: config.catalogIsPublic ? "public" : "keyed",
    hosts: [...catalog.hosts.values()].map(hostRow),
    models: [...catalog.models.values()].map(modelRow),
    auto: Object.fromEntries(catalog.auto),
    defaults: { accountless: limits(config.defaults.accountless), account: limits(config.defaults.account) },
    low_credit_usd: config.lowCredit === null ? null : usdFromNano(config.lowCredit),
    open_tier: inFile(openTier),
    setup: inFile(setup),
    sign_in: inFile(signIn),
    generation: inFile(generation),
    routing: inFile(routing),
    receipts: inFile(config.receipts),
    payments: config.payments === null ? null : paymentsRow(config.payments),
    unused_days: config.unusedDays,
    body_bytes: config.bodyBytes,
    body_memory_bytes: config.bodyMemoryBytes,
    websocket_message_bytes: config.websocketMessageBytes,
    shutdown_delay_ms: config.shutdownDelayMs,
    drain_ms: config.drainMs,
    grace_ms: config.graceMs,
    store: storeRow(config.store),
    journal: isDiskless(config) ? "postgres" : "disk",
    workers: config.workers,
    durability: config.durability,
    log: config.log,
    metrics: config.metrics === null ? null : hostAndPort(config.metrics),
    trusted_proxies: config.trustedProxies.rows,
    smtp: config.smtp === null ? null : smtpRow(config.smtp),
    wallet: { rpc: Object.fromEntries([...config.walletRpc].map(([chain, url]) => [chain, nodeRow(url)])) },
  };
}

/** In place of a secret: whether there is one is worth knowing, what it is nobody needs to read here. */
const MASK = "***";
const masked = (secret: string | null): string | null => (secret === null ? null : MASK);

const hostRow = (host: Host) => ({
  id: host.id,
  base_url: withoutPassword(host.baseUrl),
  speaks: host.speaks,
  api_key: masked(host.apiKey),
  auth: host.auth,
  // A header may be the way that this host takes its key.
  headers: Object.fromEntries(Object.keys(host.headers).map((name) => [name, MASK])),
  on_disconnect: host.onDisconnect,
  ...(host.billsCancelled === undefined ? {} : { bills_cancelled: host.billsCancelled }),
  paused: host.paused === true,
  max_concurrent: host.maxConcurrent ?? DEFAULT_CONCURRENT,
  ...(host.cacheMs === undefined ? {} : { cache_ms: host.cacheMs }),
  auto_cache: host.autoCache ?? false,
  data_collection: host.privacy?.collectsNothing === true ? "deny" : "allow",
  zdr: host.privacy?.retainsNothing === true,
  quirks: quirkRow(host.quirks),
});

const modelRow = ({
  id,
  name,
  aliases,
  contextLength,
  maxOutputTokens,
  abilities,
  price,
  order,
  routes,
}: Model) => ({
  id,
  name,
  ...(aliases === undefined ? {} : { aliases }),
  context_length: contextLength,
  max_output_tokens: maxOutputTokens,
  ...(abilities ?? {}),
  price: priceRow(price),
  ...(order === undefined ? {} : { order }),
  routes: routes.map(routeRow),
});

const routeRow = ({ host, model, price, free, cacheMs, autoCache, quantization, parameters }: Route) => ({
  host: host.id,
  model,
  price: priceRow(price),
  free,
  ...(cacheMs === undefined ? {} : { cache_ms: cacheMs }),
  ...(autoCache === undefined ? {} : { auto_cache: autoCache }),
  quantization: quantization ?? "unknown",
  parameters: parameters === undefined ? null : [...parameters],
});

const priceRow = (price: Price | null) => (price === null ? null : priceEntry(price));

const limits = ({ rpmLimit, tpmLimit, dailyLimit, monthlyLimit }: NewKeyLimits) => ({
  rpm_limit: rpmLimit,
  tpm_limit: tpmLimit,
  daily_limit_usd: amount(dailyLimit),
  monthly_limit_usd: amount(monthlyLimit),
});

const amount = (limit: NanoUsd | null): number | null => (limit === null ? null : usdFromNano(limit));

const storeRow = (store: StoreConfig): string =>
  store.kind === "sqlite" ? "sqlite" : withoutPassword(store.url);

function withoutPassword(address: string): string {
  if (!URL.canParse(address)) return MASK;
  const url = new URL(address);
  if (url.username === "" && url.password === "" && url.search === "") return address;
  // Some drivers take the password as a parameter.
  if (url.search !== "") url.search = MASK;
  if (url.username !== "") url.username = MASK;
  if (url.password !== "") url.password = MASK;
  return url.href;
}

/** Providers of nodes put the key into the path. */
const nodeRow = (address: string): string => `${new URL(address).origin}/${MASK}`;

const paymentsRow = ({ amounts, x402, stripe, sanctions, inlinePerHour }: PaymentsConfig) => ({
  amounts: {
    min_usd: usdFromNano(amounts.min),
    suggested_usd: usdFromNano(amounts.suggested),
    max_usd: usdFromNano(amounts.max),
    max_usd_per_day: usdFromNano(amounts.maxPerDay),
  },
  x402: x402.map((network) => ({
    network: network.network,
    asset: network.asset,
    pay_to: network.payTo,
    rpc: nodeRow(network.rpc),
    ...("gasKey" in network.settledBy
      ? { gas_key: MASK }
      : { facilitator: nodeRow(network.settledBy.facilitator) }),
    confirmations: network.confirmations,
    finalized_above_usd: usdFromNano(network.finalizedAbove),
    wasted_gas_per_hour: network.wastedGasPerHour,
    wait_ms: network.waitMs,
  })),
  stripe:
    stripe === null
      ? null
      : {
          secret_key: MASK,
          webhook_secret: stripe.webhookSecrets.map(() => MASK),
          fee: { percent: stripe.fee.percent, fixed_usd: usdFromNano(stripe.fee.fixed) },
        },
  sanctions: { list: sanctions.list, oracle: sanctions.oracle },
  inline: {
    enabled: inlinePerHour !== null,
    max_usd_per_hour: inlinePerHour === null ? null : usdFromNano(inlinePerHour),
  },
});

const smtpRow = ({ host, port, user, password, from }: SmtpConfig) => ({
  host,
  port,
  user,
  password: masked(password),
  from,
});
