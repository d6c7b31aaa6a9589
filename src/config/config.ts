import type { Catalog, HostOrder } from "../catalog/catalog.ts";
import type { NewKeyLimits } from "../keys/deps.ts";
import type { SmtpConfig } from "../mail/mailer.ts";
import type { OpenTierConfig } from "../open-tier/open-tier.ts";
import type { PaymentAmounts } from "../payments/amounts.ts";
import type { StripeConfig } from "../rails/stripe/stripe-config.ts";
import type { X402Network } from "../rails/x402/network.ts";
import type { SanctionsConfig } from "../rails/x402/sanctions.ts";
import type { DurabilityMode, StoreConfig } from "../store/store-config.ts";
import type { Networks } from "../units/networks.ts";
import type { NanoUsd } from "../units/usd.ts";

/**
 * What the operator decided, checked and complete: every default is applied, times are in milliseconds, money
 * is in nano-dollars. Immutable; a reload builds another one. Contract §2.
 */
export interface Config {
  /** The file it was read from; null when there was none. */
  readonly file: string | null;
  /** As configured; `linksOf` has the defaults. */
  readonly baseUrl: string | null;
  readonly dashboardUrl: string | null;
  readonly statusUrl: string | null;
  /** Where customers reach the operator: a page, or `mailto:` and an address. */
  readonly contact: string | null;
  readonly catalog: Catalog;
  /** Whether what is served may be read without a key. */
  readonly catalogIsPublic: boolean;
  /** Limits that a new key gets. */
  readonly defaults: { readonly accountless: NewKeyLimits; readonly account: NewKeyLimits };
  /** Owners are told by mail when their credit falls below; null: they are not. */
  readonly lowCredit: NanoUsd | null;
  readonly openTier: OpenTierConfig;
  readonly setup: { readonly accountlessKeysPerAddressPerHour: number };
  readonly signIn: { readonly mailsPerHour: number };
  readonly generation: GenerationConfig;
  readonly routing: RoutingConfig;
  /** Days; null means for ever. `sign`: signed receipts are given to those who ask for them. */
  readonly receipts: { readonly keepDays: number | null; readonly sign: boolean };
  /** After how many days balances and keys are removed that nobody used; null: never. */
  readonly unusedDays: number | null;
  readonly bodyBytes: number;
  /** Memory for large request bodies. */
  readonly bodyMemoryBytes: number;
  /** The largest message over a WebSocket. */
  readonly websocketMessageBytes: number;
  /** How long everything is still served after SIGTERM, while balancers find out that it will not be. */
  readonly shutdownDelayMs: number;
  readonly drainMs: number;
  /** How long a rotated key keeps working. */
  readonly graceMs: number;
  readonly store: StoreConfig;
  /** Processes on one port; `auto`: as many as the machine has cores. */
  readonly workers: number | "auto";
  readonly durability: DurabilityMode;
  /** `json`: one line for each generation request. */
  readonly log: "off" | "json";
  /** Where metrics are served without a token; null: nowhere. */
  readonly metrics: MetricsAddress | null;
  /** Whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: Networks;
  /** Null: mail is written into the data folder's `outbox`. */
  readonly smtp: SmtpConfig | null;
  /** Null: credit enters by the operator's hand alone. */
  readonly payments: PaymentsConfig | null;
  /** RPC nodes to ask about contract wallets, by chain. */
  readonly walletRpc: ReadonlyMap<number, string>;
}

export interface MetricsAddress {
  readonly hostname: string;
  readonly port: number;
}

export interface PaymentsConfig {
  readonly amounts: PaymentAmounts;
  readonly x402: readonly X402Network[];
  readonly stripe: StripeConfig | null;
  readonly sanctions: SanctionsConfig;
  /** The most that requests of one key for answers may pay within an hour; null: they pay nothing. */
  readonly inlinePerHour: NanoUsd | null;
}

export interface GenerationConfig {
  /** Time to the first token, across all hosts. */
  readonly firstTokenMs: number;
  readonly maxHosts: number;
  readonly chunkGapMs: number;
  readonly keepaliveMs: number | null;
  readonly totalMs: number;
  readonly writeOffTokens: number;
  readonly defaultMaxOutputTokens: number;
}

export interface RoutingConfig {
  readonly order: HostOrder;
  /** After this long without a first token the next host is asked as well; null: never. */
  readonly hedgeMs: number | null;
}

/** Nothing is kept in the data folder, and none is needed. */
export const isDiskless = ({ store }: Pick<Config, "store">): boolean =>
  store.kind === "postgres" && store.journal === "postgres";

/** The addresses that messages and pages name. */
export interface Links {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  readonly statusUrl: string;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
}

/**
 * `listening` is the address that the server took, `http://HOST:PORT`: the base address where none is
 * configured.
 */
export function linksOf(config: Config, listening: string): Links {
  const baseUrl = config.baseUrl ?? listening;
  return {
    baseUrl,
    dashboardUrl: config.dashboardUrl ?? `${baseUrl}/dashboard`,
    statusUrl: config.statusUrl ?? `${baseUrl}/status`,
    contact: config.contact,
  };
}

/** Every address of this machine. */
export const isWildcard = (hostname: string): boolean =>
  hostname === "0.0.0.0" || hostname === "::" || hostname === "";

/** The address for a person to open, which a wildcard address is not. */
export function listeningUrl(hostname: string, port: number): string {
  return `http://${hostAndPort({ hostname: isWildcard(hostname) ? "localhost" : hostname, port })}`;
}

export const hostAndPort = ({ hostname, port }: MetricsAddress): string =>
  `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
