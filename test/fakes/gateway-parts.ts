import type { Catalog } from "../../src/catalog/catalog.ts";
import type { Config } from "../../src/config/config.ts";
import { DEFAULTS } from "../../src/config/read-config.ts";
import type { GenerationSettings } from "../../src/generation/deps.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { PAYMENT_PACE } from "../../src/payments/rails/payment-pace.ts";
import type { ConfigInForce, GatewayParts } from "../../src/server/gateway-parts.ts";
import type { Bookkeeping } from "../../src/store/books/bookkeeping.ts";

/** What is handed to `buildGateway` by tests that send it requests without a port. */
export function partsOf(own: OwnParts): GatewayParts {
  return {
    counting: COUNTS_NOTHING,
    listen: null,
    log: () => {},
    adminToken: "a secret of the operator",
    networkSecret: "a secret of the store",
    channel: null,
    env: {},
    writeLog: null,
    paymentPace: PAYMENT_PACE,
    ...own,
  };
}

type OwnParts = Pick<GatewayParts, "config" | "clock" | "random" | "transport" | "books"> &
  Partial<GatewayParts>;

/** As an operator would have configured it. */
export function configOf(
  catalog: Catalog,
  generation: GenerationSettings,
  more: Partial<Config> = {},
): ConfigInForce {
  const { baseUrl, dashboardUrl, contact } = generation;
  return {
    config: { ...DEFAULTS, catalog, payments: null, ...more } as Partial<Config> as Config,
    generation,
    links: { baseUrl, dashboardUrl, statusUrl: `${baseUrl}/status`, contact },
    http: {} as ConfigInForce["http"],
    needsRestart: [],
    modelVersion: 0,
  };
}

/** As far as requests need them. */
export const booksOf = ({
  ledger,
  ...own
}: { readonly ledger: Ledger } & Pick<Bookkeeping, "journal" | "keyring"> &
  Partial<Bookkeeping>): Bookkeeping =>
  ({
    ledger,
    balance: (id) => ledger.balance(id),
    figures: () => [],
    // Payments are counted as they are stored, also where nobody pays.
    payments: {} as Bookkeeping["payments"],
    ...own,
  }) satisfies Partial<Bookkeeping> as Partial<Bookkeeping> as Bookkeeping;

export const COUNTS_NOTHING: GatewayParts["counting"] = {
  inUse: 0,
  prompt: async () => null,
  count: async () => null,
  countEach: async () => null,
  billedPrompt: async () => null,
  request: async () => null,
  compaction: async () => null,
  loadAhead() {},
  stop() {},
};
