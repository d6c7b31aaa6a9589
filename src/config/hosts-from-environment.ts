import type { Host, Model, Route } from "../catalog/catalog.ts";
import { FREE_VARIANT } from "../catalog/model-name.ts";
import type { KnownModel } from "./model-catalogue.ts";
import { hostOf, type Preset, presentPresets, routeQuirks } from "./provider-presets.ts";
import { simulatedHost, simulatedModel } from "./simulated-model.ts";

/**
 * What the gateway serves when the file lists neither hosts nor models: the environment's hosts and the
 * simulated one.
 */
export interface FoundHosts {
  readonly simulatedUrl: string;
  readonly hosts: readonly Host[];
  readonly models: readonly Model[];
  /** `gateway/auto:<variant>` made from what is there. */
  readonly auto: ReadonlyMap<string, readonly string[]>;
  /** Which variable added which host, for the messages at start. */
  readonly sources: readonly FoundSource[];
}

interface FoundSource {
  readonly host: string;
  readonly env: string;
  /** It was asked for its models. */
  readonly isQueried: boolean;
}

/** A host that was asked for its models, because only it knows them. */
export interface QueriedHost {
  readonly host: Host;
  readonly env: string;
  readonly models: readonly Model[];
}

export interface FoundOffer {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly simulatedUrl: string;
  /** What is known of a host's models; empty where the file lists the models itself. */
  readonly knownModels: (preset: Preset) => readonly KnownModel[];
  readonly queriedHosts?: readonly QueriedHost[];
}

export function foundHosts({ env, simulatedUrl, knownModels, queriedHosts = [] }: FoundOffer): FoundHosts {
  const served = presentPresets(env).map((preset) => ({
    preset,
    host: hostOf(preset, env),
    models: knownModels(preset),
  }));
  const merged = mergeModels(served);
  const sim = simulatedHost(simulatedUrl);
  const echo = simulatedModel(sim, merged.size === 0);
  return {
    simulatedUrl,
    hosts: [...served.map(({ host }) => host), ...queriedHosts.map(({ host }) => host), sim],
    models: [...currentFirst(merged, served), ...queriedHosts.flatMap(({ models }) => models), echo],
    auto: autoVariants(
      served,
      queriedHosts.flatMap(({ models }) => models),
      echo,
    ),
    sources: [
      ...served.map(({ host, preset }) => ({ host: host.id, env: preset.env, isQueried: false })),
      ...queriedHosts.map(({ host, env: name }) => ({ host: host.id, env: name, isQueried: true })),
    ],
  };
}

/** People pick from the beginning of a list. */
function currentFirst(merged: ReadonlyMap<string, Model>, served: readonly ServedHost[]): Model[] {
  const current = new Set(
    served.flatMap(({ models }) => models.filter((one) => one.current)).map(({ id }) => id),
  );
  const all = [...merged.values()];
  return [...all.filter(({ id }) => current.has(id)), ...all.filter(({ id }) => !current.has(id))];
}

interface ServedHost {
  readonly preset: Preset;
  readonly host: Host;
  readonly models: readonly KnownModel[];
}

/**
 * One model, a route for each host that serves it, in the order of the presets. A host that takes shorter
 * prompts than the first one is left out: it would refuse what the catalog promises.
 */
function mergeModels(served: readonly ServedHost[]): Map<string, Model> {
  const models = new Map<string, Model>();
  for (const { preset, host, models: known } of served) {
    for (const { id, name, wireName, contextLength, maxOutputTokens, price, abilities } of known) {
      const own = routeQuirks(preset, wireName);
      const route: Route = {
        host,
        model: wireName,
        price,
        free: false,
        ...(own === null ? {} : { quirks: own }),
      };
      const first = models.get(id);
      if (first === undefined) {
        const able = abilities === null ? {} : { abilities };
        models.set(id, { id, name, contextLength, maxOutputTokens, ...able, price, routes: [route] });
      } else if (contextLength >= first.contextLength) {
        models.set(id, { ...first, routes: [...first.routes, route] });
      }
    }
  }
  return models;
}

const AUTO_CANDIDATES_MAX = 8;

/**
 * `fast`: of each author's current models the cheapest, which is its small and quick one; cheapest first.
 * `best`: of each author's the most expensive; most expensive first. `free`: what the
 * hosts that were asked have, which is free; the simulated host only where there is nothing else.
 */
function autoVariants(
  served: readonly ServedHost[],
  free: readonly Model[],
  echo: Model,
): Map<string, readonly string[]> {
  const known = served.flatMap(({ models }) => models);
  const current = known.filter((model) => model.current);
  const byCost = [...(current.length > 0 ? current : known)].sort((a, b) => cost(a) - cost(b));
  const auto = new Map<string, readonly string[]>();
  if (byCost.length > 0) {
    auto.set("fast", onePerAuthor(byCost));
    auto.set("best", onePerAuthor(byCost.toReversed()));
  }
  auto.set(
    FREE_VARIANT,
    free.length > 0 ? free.slice(0, AUTO_CANDIDATES_MAX).map(({ id }) => id) : [echo.id],
  );
  return auto;
}

/** Prompts are usually longer than answers; three to one is a common blend. */
const cost = ({ price }: KnownModel): number => 3 * price.input + price.output;

function onePerAuthor(models: readonly KnownModel[]): string[] {
  const ids = new Map<string, string>();
  for (const { id } of models) {
    const author = id.slice(0, id.indexOf("/"));
    if (!ids.has(author)) ids.set(author, id);
    if (ids.size === AUTO_CANDIDATES_MAX) break;
  }
  return [...ids.values()];
}
