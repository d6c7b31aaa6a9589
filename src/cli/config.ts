import type { CatalogWithLists } from "../catalog/catalog.ts";
import type { Config } from "../config/config.ts";
import { type FoundConfig, findConfig } from "../config/find-config.ts";
import { costWarnings, priceWarnings } from "../config/price-warnings.ts";
import { type ConfigProblem, formatProblems } from "../config/problem.ts";
import { timeWarnings } from "../config/time-warnings.ts";
import { systemClock } from "../units/clock.ts";
import { inForce } from "./applied-lists.ts";
import { type CommandContext, counted, pairs, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/** Reads a configuration as a start would, without starting anything. */
export async function checkConfig(
  file: string | undefined,
  { json, strict = false }: { readonly json: boolean; readonly strict?: boolean | undefined },
  context: CommandContext,
): Promise<void> {
  const found = await readConfiguration(file, context);
  if (Array.isArray(found)) {
    if (json) show(context, json, { ok: false, problems: found }, []);
    throw new CommandFailure(
      EXIT.found,
      `${counted(found.length, "problem")} in the configuration\n${formatProblems(found)}`,
      "docs/configuration.md explains every field.",
    );
  }
  const { config, listed, unread } = await inForce(found.config, context);
  const { catalog } = config;
  const unpriced = unpricedModels(catalog);
  const times = timeWarnings(config);
  const idle = idleHosts(catalog);
  const doubts = await doubtfulPrices(catalog);
  const paused = [...catalog.hosts.values()].filter((host) => host.paused === true).map(({ id }) => id);
  const unserved = [...catalog.models.values()]
    .filter(({ routes }) => routes.length === 0)
    .map(({ id }) => id);
  const warnings = [
    ...unpriced.map((id) => `${id} has no price, so paid requests for it are refused`),
    ...idle.map((id) => `no model has a route to the host ${id}`),
    ...paused.map((id) => `the host ${id} is paused`),
    ...unserved.map((id) => `all hosts of ${id} are paused`),
    ...doubts,
    ...times,
  ];
  show(
    context,
    json,
    {
      ok: warnings.length === 0 || !strict,
      file: config.file,
      hosts: [...catalog.hosts.keys()],
      models: catalog.models.size,
      listed_models: listed,
      auto: [...catalog.auto.keys()],
      unpriced_models: unpriced,
      unused_hosts: idle,
      doubtful_prices: doubts,
      doubtful_times: times,
      paused_hosts: paused,
      paused_models: unserved,
    },
    [
      ...pairs([
        ["file", config.file ?? "none: built-in defaults"],
        ["hosts", [...catalog.hosts.keys()].join(", ")],
        ["models", listed === 0 ? catalog.models.size : `${catalog.models.size}, ${listed} by model lists`],
        ["auto", [...catalog.auto.keys()].map((variant) => `gateway/auto:${variant}`).join(", ") || "none"],
      ]),
      ...warnings.map((warning) => `warning: ${warning}`),
      ...(unread === null ? [] : [`Models of applied lists were not checked: ${unread}`]),
      "The configuration is valid.",
    ],
  );
  if (strict && warnings.length > 0)
    throw new CommandFailure(EXIT.found, `${counted(warnings.length, "warning")}, and --strict allows none`);
}

/** `file` undefined: as the gateway would find it. */
export function readConfiguration(
  file: string | undefined,
  { env, cwd, fetch }: Pick<CommandContext, "env" | "cwd" | "fetch">,
): Promise<FoundConfig | ConfigProblem[]> {
  return findConfig({
    env: file === undefined ? env : { ...env, GATEWAY_CONFIG: file },
    cwd,
    now: systemClock.now(),
    simulatedUrl: SIMULATED_URL,
    fetch,
  });
}

/** The gateway's own, which has to be valid. */
export async function validConfiguration(context: CommandContext): Promise<FoundConfig["config"]> {
  const found = await readConfiguration(undefined, context);
  if (!Array.isArray(found)) return found.config;
  throw new CommandFailure(
    EXIT.found,
    "The configuration has problems",
    "`gateway config check` lists them.",
  );
}

/** The simulated host is built into the gateway; here it only has to be distinguished from the others. */
const SIMULATED_URL = "http://simulated.invalid/v1";
export const isSimulated = ({ baseUrl }: { readonly baseUrl: string }): boolean => baseUrl === SIMULATED_URL;

/** Neither bought at a price nor free. */
export function unpricedModels({ models }: CatalogWithLists): string[] {
  const served = ({ price, free }: { readonly price: unknown; readonly free: boolean }) =>
    free || price !== null;
  return [...models.values()]
    .filter(({ routes }) => routes.length > 0 && !routes.some(served))
    .map(({ id }) => id);
}

/** Held against what is known of models elsewhere; the catalogue is only loaded to be asked. */
export async function doubtfulPrices(catalog: CatalogWithLists): Promise<string[]> {
  const { knownPrice } = await import("../config/model-catalogue.ts");
  const now = systemClock.now();
  return [...priceWarnings(catalog, (model) => knownPrice(model, now)), ...costWarnings(catalog)];
}

function idleHosts({ hosts, models }: Config["catalog"]): string[] {
  const used = new Set([...models.values()].flatMap(({ routes }) => routes.map(({ host }) => host.id)));
  return [...hosts.values()]
    .filter((host) => !used.has(host.id) && !isSimulated(host) && host.paused !== true)
    .map(({ id }) => id);
}
