import type { Catalog, Host } from "../catalog/catalog.ts";
import { isDiskless } from "../config/config.ts";
import { formatProblems } from "../config/problem.ts";
import { timeWarnings } from "../config/time-warnings.ts";
import { doubtfulPrices, isSimulated, readConfiguration, unpricedModels } from "./config.ts";
import { dataFolder, knownAdminToken, localUrl } from "./connection.ts";
import { type CommandContext, counted } from "./console.ts";
import { type Finding, failing, ok, showFindings, warning } from "./finding.ts";
import { checkKeys } from "./host-check.ts";
import { localGateway } from "./local-gateway.ts";
import {
  checkAdminToken,
  checkDisk,
  checkFolder,
  checkMetrics,
  checkNodes,
  checkPort,
  checkProxies,
} from "./machine-checks.ts";
import { checkPayments, checkPaymentsUnderWay } from "./payment-checks.ts";
import { inBatches, type Progress, withProgress } from "./progress.ts";
import { checkDatabase, checkMail } from "./service-checks.ts";
import { knownTransactions } from "./shared-address.ts";

/**
 * Examines what a gateway needs on this machine and beyond: configuration, folder, disk, port, database and
 * mail server where they are configured, and that each host can be reached and takes its key. It changes
 * nothing, and asks hosts for nothing that costs.
 */
export async function doctor(options: { readonly json: boolean }, context: CommandContext): Promise<void> {
  const findings = await withProgress(context, (progress) => examine(context, progress));
  showFindings(findings, "check", options, context);
}

async function examine(context: CommandContext, progress: Progress): Promise<Finding[]> {
  progress(0, null, "reading the configuration");
  const found = await readConfiguration(undefined, context);
  const folder = dataFolder(context);
  const url = localUrl(context.env);
  const running = await checkPort(url, context.fetch);
  const disk =
    !Array.isArray(found) && isDiskless(found.config)
      ? []
      : [checkFolder(folder, running.gateway), checkDisk(folder)];
  const gateway = running.gateway ? localGateway(url, knownAdminToken({}, context), context.fetch) : null;
  const machine = [
    ...disk,
    running.finding,
    ...checkAdminToken(context.env.GATEWAY_ADMIN_TOKEN),
    ...(gateway === null ? [] : await checkProxies(gateway)),
    ...(gateway === null ? [] : await checkNodes(gateway)),
  ];
  if (Array.isArray(found)) {
    return [failing("configuration", formatProblems(found), "See docs/configuration.md."), ...machine];
  }
  const { config } = found;
  const hosts = [...config.catalog.hosts.values()].filter((host) => !isSimulated(host));
  const hostFindings = await checkHosts(hosts, config.catalog, context, progress);
  progress(0, null, "checking database, mail server and payments");
  const services = [
    ...(await checkDatabase(config.store, context.env.GATEWAY_ADMIN_TOKEN)),
    ...(await checkMail(config.smtp)),
    ...(await checkPayments(config.payments, async () =>
      gateway === null ? null : knownTransactions(gateway),
    )),
    ...(gateway !== null && config.payments !== null && config.payments.x402.length > 0
      ? await checkPaymentsUnderWay(gateway)
      : []),
  ];
  return [
    ok(
      "configuration",
      `${config.file ?? "no gateway.yaml, so built-in defaults"}: ${counted(config.catalog.models.size, "model")}`,
    ),
    ...machine,
    ...checkMetrics(config.metrics, running.gateway),
    ...services,
    ...(hosts.length === 0 ? [noHosts] : hostFindings),
    prices(unpricedModels(config.catalog), config.catalog.models.size),
    ...doubts(
      "price",
      await doubtfulPrices(config.catalog),
      "Prices in the configuration are in USD per million tokens.",
    ),
    ...doubts(
      "time",
      timeWarnings(config),
      "Times that end in _ms are in milliseconds: 30 seconds are 30000.",
    ),
  ];
}

function checkHosts(
  hosts: readonly Host[],
  { models }: Catalog,
  context: CommandContext,
  progress: Progress,
): Promise<Finding[]> {
  const routes = [...models.values()].flatMap((model) => model.routes);
  const modelsAt = (host: Host) =>
    new Set(routes.filter((route) => route.host.id === host.id).map(({ model }) => model));
  return inBatches(hosts, MAX_HOSTS_AT_ONCE, "checking hosts", progress, (host) =>
    checkKeys(host, modelsAt(host), context.fetch),
  );
}

const MAX_HOSTS_AT_ONCE = 8;

const noHosts = warning(
  "hosts",
  "none: only the built-in simulated host serves",
  "Set a provider's key in the environment, such as OPENAI_API_KEY, or list hosts in gateway.yaml.",
);

const MAX_NAMED = 5;

function prices(unpriced: readonly string[], models: number): Finding {
  if (unpriced.length === 0)
    return ok("prices", `${counted(models, "model")}, each with a price or a free route`);
  const named = unpriced.slice(0, MAX_NAMED).join(", ");
  return warning(
    "prices",
    `${unpriced.length} of ${counted(models, "model")} with neither a price nor a free route: ${named}${unpriced.length > MAX_NAMED ? ", …" : ""}`,
    "Requests for them are refused until the model or one of its routes has a price; `gateway models import` prints known prices.",
  );
}

const doubts = (check: string, found: readonly string[], next: string): Finding[] =>
  found.slice(0, MAX_NAMED).map((detail) => warning(check, detail, next));
