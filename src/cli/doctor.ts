import type { Catalog, Host } from "../catalog/catalog.ts";
import { isDiskless } from "../config/config.ts";
import { formatProblems } from "../config/problem.ts";
import { doubtfulPrices, isSimulated, readConfiguration, unpricedModels } from "./config.ts";
import { dataFolder, knownAdminToken, localUrl } from "./connection.ts";
import { type CommandContext, counted, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { type Finding, linesOf, ok } from "./finding.ts";
import { checkHost } from "./host-check.ts";
import { checkAdminToken, checkDisk, checkFolder, checkPort, checkProxies } from "./machine-checks.ts";
import { checkPayments } from "./payment-checks.ts";
import { type Progress, withProgress } from "./progress.ts";
import { checkDatabase, checkMail } from "./service-checks.ts";

/**
 * Examines what a gateway needs on this machine and beyond: configuration, folder, disk, port, database and
 * mail server where they are configured, and that each host can be reached and takes its key. It changes
 * nothing, and asks hosts for nothing that costs.
 */
export async function doctor({ json }: { readonly json: boolean }, place: CommandContext): Promise<void> {
  const findings = await withProgress(place, (progress) => examine(place, progress));
  const failed = findings.filter(({ state }) => state === "fail");
  show(place, json, { ok: failed.length === 0, findings }, findings.flatMap(linesOf));
  if (failed.length === 0) return;
  throw new CommandFailure(
    EXIT.found,
    `${failed.length} of ${counted(findings.length, "check")} failed: ${failed.map(({ check }) => check).join(", ")}`,
  );
}

async function examine(place: CommandContext, progress: Progress): Promise<Finding[]> {
  progress(0, null, "reading the configuration");
  const found = await readConfiguration(undefined, place);
  const folder = dataFolder(place);
  const running = await checkPort(localUrl(place.env), place.fetch);
  const disk =
    !Array.isArray(found) && isDiskless(found.config)
      ? []
      : [checkFolder(folder, running.gateway), checkDisk(folder)];
  const url = localUrl(place.env);
  const machine = [
    ...disk,
    running.finding,
    ...checkAdminToken(place.env.GATEWAY_ADMIN_TOKEN),
    ...(running.gateway ? await checkProxies(url, knownAdminToken({}, place), place.fetch) : []),
  ];
  if (Array.isArray(found)) {
    const detail = formatProblems(found);
    return [
      { check: "configuration", state: "fail", detail, next: "See docs/configuration.md." },
      ...machine,
    ];
  }
  const { config } = found;
  const hosts = [...config.catalog.hosts.values()].filter((host) => !isSimulated(host));
  const asked = await askHosts(hosts, config.catalog, place, progress);
  progress(0, null, "checking database, mail server and payments");
  const services = [
    ...(await checkDatabase(config.store)),
    ...(await checkMail(config.smtp)),
    ...(await checkPayments(config.payments)),
  ];
  return [
    ok(
      "configuration",
      `${config.file ?? "no gateway.yaml, so built-in defaults"}: ${counted(config.catalog.models.size, "model")}`,
    ),
    ...machine,
    ...services,
    ...(hosts.length === 0 ? [noHosts] : asked),
    prices(unpricedModels(config.catalog), config.catalog.models.size),
    ...doubts(await doubtfulPrices(config.catalog)),
  ];
}

/** A few at a time; the findings come in the order of the hosts. */
async function askHosts(
  hosts: readonly Host[],
  { models }: Catalog,
  place: CommandContext,
  progress: Progress,
): Promise<Finding[]> {
  const routes = [...models.values()].flatMap((model) => model.routes);
  const modelsAt = (host: Host) =>
    new Set(routes.filter((route) => route.host.id === host.id).map(({ model }) => model));
  const findings: Finding[] = [];
  for (let from = 0; from < hosts.length; from += MAX_ASKED_AT_ONCE) {
    progress(from, hosts.length, "checking hosts");
    const some = hosts.slice(from, from + MAX_ASKED_AT_ONCE);
    const found = await Promise.all(some.map((host) => checkHost(host, modelsAt(host), place.fetch)));
    findings.push(...found.flat());
  }
  return findings;
}

const MAX_ASKED_AT_ONCE = 8;

const noHosts: Finding = {
  check: "hosts",
  state: "warn",
  detail: "none: only the built-in simulated host serves",
  next: "Set a provider's key in the environment, such as OPENAI_API_KEY, or list hosts in gateway.yaml.",
};

const MAX_NAMED = 5;

function prices(unpriced: readonly string[], models: number): Finding {
  if (unpriced.length === 0)
    return ok("prices", `${counted(models, "model")}, each with a price or a free route`);
  const named = unpriced.slice(0, MAX_NAMED).join(", ");
  return {
    check: "prices",
    state: "warn",
    detail: `${unpriced.length} of ${counted(models, "model")} with neither a price nor a free route: ${named}${unpriced.length > MAX_NAMED ? ", …" : ""}`,
    next: "Requests for them are refused until the model or one of its routes has a price; `gateway models import` prints known prices.",
  };
}

const doubts = (found: readonly string[]): Finding[] =>
  found.slice(0, MAX_NAMED).map((detail) => ({
    check: "price",
    state: "warn",
    detail,
    next: "Prices in the configuration are in USD per million tokens.",
  }));
