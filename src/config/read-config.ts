import type { NewKeyLimits } from "../keys/deps.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { Networks } from "../units/networks.ts";
import { type NanoUsd, nanoFromUsd } from "../units/usd.ts";
import { readAddress, readContact, readListenAddress } from "./address.ts";
import type { Config } from "./config.ts";
import { DEFAULTS } from "./defaults.ts";
import type { FoundHosts } from "./found-hosts.ts";
import { withDefaults } from "./plain-settings.ts";
import type { Path, ReportProblem } from "./problem.ts";
import { readCatalog } from "./read-catalog.ts";
import { readPayments } from "./read-payments.ts";
import type { ConfigFile, LimitsConfig } from "./schema.ts";
import { describe } from "./validate.ts";

/**
 * The file's rows as the gateway uses them. What no schema can tell is checked here: references, duplicates,
 * addresses, decimals. Problems go to `report`; the config is only good when there were none.
 */
export function readConfig(
  file: string | null,
  rows: ConfigFile,
  found: FoundHosts,
  report: ReportProblem,
): Config {
  const { defaults = {}, smtp } = rows;
  const generation = withDefaults<Config["generation"]>(DEFAULTS.generation, rows.generation);
  const { totalMs } = generation;
  const firstTokenMs = rows.generation?.first_token_ms ?? Math.min(generation.firstTokenMs, totalMs);
  if (firstTokenMs > totalMs) {
    const path: Path = ["generation", "first_token_ms"];
    report(path, describe(firstTokenMs), `at most total_ms, ${totalMs}`);
  }
  return {
    file,
    baseUrl: baseUrl(rows.base_url, report),
    dashboardUrl: readAddress(rows.dashboard_url, ["dashboard_url"], report),
    statusUrl: readAddress(rows.status_url, ["status_url"], report),
    contact: readContact(rows.contact, ["contact"], report),
    catalog: readCatalog(rows, found, report),
    catalogIsPublic: rows.catalog === "public",
    defaults: {
      accountless: limits(defaults.accountless, DEFAULTS.accountless, ["defaults", "accountless"], report),
      account: limits(defaults.account, DEFAULTS.account, ["defaults", "account"], report),
    },
    lowCredit: amount(rows.low_credit_usd, null, ["low_credit_usd"], report),
    openTier: withDefaults<Config["openTier"]>(DEFAULTS.openTier, rows.open_tier),
    setup: withDefaults<Config["setup"]>(DEFAULTS.setup, rows.setup),
    signIn: withDefaults<Config["signIn"]>(DEFAULTS.signIn, rows.sign_in),
    generation: { ...generation, firstTokenMs },
    routing: withDefaults<Config["routing"]>(DEFAULTS.routing, rows.routing),
    receipts: withDefaults<Config["receipts"]>(DEFAULTS.receipts, rows.receipts),
    payments: readPayments(rows.payments, report),
    unusedDays: rows.unused_days === undefined ? DEFAULTS.unusedDays : rows.unused_days,
    bodyBytes: rows.body_bytes ?? DEFAULTS.bodyBytes,
    bodyMemoryBytes: rows.body_memory_bytes ?? DEFAULTS.bodyMemoryBytes,
    websocketMessageBytes: rows.websocket_message_bytes ?? DEFAULTS.websocketMessageBytes,
    shutdownDelayMs: rows.shutdown_delay_ms ?? DEFAULTS.shutdownDelayMs,
    drainMs: rows.drain_ms ?? DEFAULTS.drainMs,
    graceMs: rows.grace_ms ?? DEFAULTS.graceMs,
    store: store(rows, report),
    workers: rows.workers ?? DEFAULTS.workers,
    durability: rows.durability ?? DEFAULTS.durability,
    log: rows.log ?? DEFAULTS.log,
    metrics: readListenAddress(rows.metrics, ["metrics"], report),
    trustedProxies: trustedProxies(rows.trusted_proxies ?? DEFAULTS.trustedProxies, report),
    walletRpc: walletRpc(rows.wallet?.rpc ?? {}, report),
    smtp:
      smtp === undefined
        ? null
        : {
            host: smtp.host,
            port: smtp.port ?? DEFAULTS.smtpPort,
            user: smtp.user ?? null,
            password: smtp.password ?? null,
            from: smtp.from,
          },
  };
}

/** Pages, links and endpoints are paths behind it. */
function baseUrl(text: string | undefined, report: ReportProblem): string | null {
  const address = readAddress(text, ["base_url"], report);
  if (address === null) return null;
  if (address.includes("?")) report(["base_url"], describe(text), "the address without a query");
  if (address.endsWith("/v1"))
    report(["base_url"], describe(text), "the address without `/v1`, which is put behind it");
  return address;
}

function limits(
  row: LimitsConfig = {},
  otherwise: NewKeyLimits,
  path: Path,
  report: ReportProblem,
): NewKeyLimits {
  return {
    rpmLimit: row.rpm_limit === undefined ? otherwise.rpmLimit : row.rpm_limit,
    tpmLimit: row.tpm_limit === undefined ? otherwise.tpmLimit : row.tpm_limit,
    dailyLimit: amount(row.daily_limit_usd, otherwise.dailyLimit, [...path, "daily_limit_usd"], report),
    monthlyLimit: amount(
      row.monthly_limit_usd,
      otherwise.monthlyLimit,
      [...path, "monthly_limit_usd"],
      report,
    ),
  };
}

function amount(
  usd: number | null | undefined,
  otherwise: NanoUsd | null,
  path: Path,
  report: ReportProblem,
): NanoUsd | null {
  if (usd === undefined) return otherwise;
  if (usd === null) return null;
  const nano = nanoFromUsd(usd);
  if (nano === null)
    report(path, String(usd), "an amount in USD, at most 8000000, with at most nine decimals");
  return nano;
}

function trustedProxies(rows: readonly string[], report: ReportProblem): Networks {
  const networks = new Networks();
  for (const [index, row] of rows.entries()) {
    if (!networks.add(row))
      report(["trusted_proxies", index], describe(row), "an address, or a block of them such as 10.0.0.0/8");
  }
  return networks;
}

function walletRpc(
  rows: Readonly<Record<string, string>>,
  report: ReportProblem,
): ReadonlyMap<number, string> {
  const nodes = new Map<number, string>();
  for (const [chain, text] of Object.entries(rows)) {
    const path: Path = ["wallet", "rpc", chain];
    const address = readAddress(text, path, report);
    if (!/^[1-9]\d{0,9}$/.test(chain)) report(path, chain, "a chain id, such as 1 for Ethereum mainnet");
    else if (address !== null) nodes.set(Number(chain), address);
  }
  return nodes;
}

function store({ store: text, journal, durability }: ConfigFile, report: ReportProblem): StoreConfig {
  if (text === undefined || text === "sqlite") {
    if (journal === "postgres") report(["journal"], describe(journal), "disk, or store: postgres://…");
    return { kind: "sqlite" };
  }
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) {
    report(["store"], "another string", "sqlite, or a postgres:// address");
  }
  if (journal === "postgres" && durability === "relaxed")
    report(
      ["durability"],
      describe(durability),
      "strict: with journal: postgres, only what is committed is acknowledged",
    );
  return { kind: "postgres", url: text, journal: journal ?? DEFAULTS.journal };
}
