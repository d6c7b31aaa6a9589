import { Document, isMap, isSeq, visit } from "yaml";
import type { Host, Model } from "../catalog/catalog.ts";
import { foundHosts } from "../config/hosts-from-environment.ts";
import { priceRow } from "../config/price-settings.ts";
import { PRESETS } from "../config/provider-presets.ts";
import { ownQuirks, quirkRow } from "../config/quirks.ts";
import { systemClock } from "../units/clock.ts";
import { type CommandContext, counted } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

export interface ImportOptions {
  readonly json: boolean;
  /** Ids of presets; absent: those whose variable is set. */
  readonly host?: readonly string[] | undefined;
  /** Parts of model ids; a model is taken that has one of them. */
  readonly match?: readonly string[] | undefined;
  readonly modelsOnly?: boolean | undefined;
}

/**
 * Prints what the catalogue packages know of hosts as rows of a configuration file, for an operator who wants
 * to decide about models and prices by hand. Keys stay in the environment: a row names their variable.
 */
export async function importModels(options: ImportOptions, context: CommandContext): Promise<void> {
  const presets = chosenPresets(options.host, context.env);
  const { knownModels } = await import("../config/model-catalogue.ts");
  const found = foundHosts({
    env: Object.fromEntries(presets.map(({ env }) => [env, "named in the row"])),
    simulatedUrl: "http://simulated.invalid/v1",
    knownModels: (preset) => knownModels(preset, systemClock.now()),
  });
  const { match = [] } = options;
  const selected = found.models.filter(
    ({ id, routes }) =>
      routes.some(({ host }) => presets.some((preset) => preset.id === host.id)) &&
      (match.length === 0 || match.some((part) => id.includes(part))),
  );
  if (selected.length === 0) {
    throw new CommandFailure(
      EXIT.found,
      `no model of ${presets.map(({ id }) => id).join(", ")} has an id that contains ${match.join(" or ")}`,
      "Leave out --match to see all of them.",
    );
  }
  const hosts = found.hosts.filter(({ id }) => presets.some((preset) => preset.id === id)).map(hostRow);
  const rows = options.modelsOnly
    ? { models: selected.map(modelRow) }
    : { hosts, models: selected.map(modelRow) };
  context.out(options.json ? `${JSON.stringify(rows, null, 2)}\n` : yamlOf(rows));
  context.err(
    `${counted(selected.length, "model")} of ${presets.map(({ id }) => id).join(", ")}. Check the prices against the hosts' own lists before you sell at them.\n`,
  );
}

function chosenPresets(hosts: readonly string[] | undefined, env: CommandContext["env"]) {
  const known = PRESETS.map(({ id }) => id).join(", ");
  const unknown = (hosts ?? []).filter((id) => !PRESETS.some((preset) => preset.id === id));
  if (unknown.length > 0) {
    throw new CommandFailure(
      EXIT.usage,
      `${unknown.join(", ")}: no such host is known`,
      `Known are ${known}.`,
    );
  }
  const chosen = PRESETS.filter(({ id, env: name }) =>
    hosts === undefined ? env[name]?.trim() : hosts.includes(id),
  );
  if (chosen.length > 0) return chosen;
  throw new CommandFailure(
    EXIT.usage,
    "no host was named, and no host's key is set in the environment",
    `Name one with --host, of ${known}.`,
  );
}

function hostRow(host: Host) {
  const quirks = quirkRow(host.quirks);
  return {
    id: host.id,
    base_url: host.baseUrl,
    speaks: host.speaks,
    api_key: `\${${PRESETS.find(({ id }) => id === host.id)!.env}}`,
    ...(host.auth === "bearer" ? {} : { auth: host.auth }),
    ...(Object.keys(host.headers).length === 0 ? {} : { headers: host.headers }),
    ...(host.refusals === undefined ? {} : { refusals: host.refusals }),
    ...(host.fallbacks === undefined ? {} : { fallbacks: host.fallbacks }),
    ...(Object.keys(quirks).length === 0 ? {} : { quirks }),
  };
}

/** A route has a price of its own only where it differs from the model's. */
function modelRow({ id, name, contextLength, maxOutputTokens, abilities, price, routes }: Model) {
  const shared = price === null ? null : priceRow(price);
  return {
    id,
    name,
    context_length: contextLength,
    max_output_tokens: maxOutputTokens,
    ...(abilities ?? {}),
    ...(shared === null ? {} : { price: shared }),
    routes: routes.map((route) => {
      const { host, quirks = host.quirks } = route;
      const own = ownQuirks(quirks, host.quirks);
      const differs = route.price !== null && !Bun.deepEquals(priceRow(route.price), shared);
      return {
        host: host.id,
        model: route.model,
        ...(differs ? { price: priceRow(route.price!) } : {}),
        ...(own === null ? {} : { quirks: own }),
      };
    }),
  };
}

/** One line for each price, route and list of languages, as people write them. */
export function yamlOf(rows: object): string {
  const document = new Document(rows, { aliasDuplicateObjects: false });
  visit(document, {
    Pair: (_, { key, value }) => {
      const name = String(key);
      if (isMap(value) && INLINE.has(name)) value.flow = true;
      if (!isSeq(value)) return;
      if (name === "speaks") value.flow = true;
      if (name === "routes" || name === "keys")
        for (const row of value.items) if (isMap(row)) row.flow = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}

const INLINE = new Set(["price", "headers", "quirks"]);
