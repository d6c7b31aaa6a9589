import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { catalogOf, MODALITIES, type Model, type Route } from "../catalog/catalog.ts";
import type { Config } from "./config.ts";
import { abilitiesOf } from "./model-settings.ts";
import { price, readPrice } from "./price-settings.ts";
import { PRESETS, routeQuirks } from "./provider-presets.ts";

/** The most models that model lists may add or change. */
export const MAX_SYNCED_MODELS = 5_000;

const tokens = () =>
  Type.Integer({ minimum: 1, maximum: 1_000_000_000, expected: "a number of tokens, from 1" });
const words = (maxLength: number) => Type.String({ minLength: 1, maxLength, expected: "a text" });

/** A model at a host, as a model list has it. What a list does not say stays as it is. */
const LISTED_MODEL = Type.Object(
  {
    id: words(128),
    host: words(64),
    /** Its name at the host. */
    model: words(256),
    name: Type.Optional(words(200)),
    context_length: Type.Optional(tokens()),
    max_output_tokens: Type.Optional(tokens()),
    price: Type.Optional(price().schema),
    inputs: Type.Optional(
      Type.Array(Type.Union(MODALITIES.map((one) => Type.Literal(one))), { maxItems: 8 }),
    ),
    tools: Type.Optional(Type.Boolean()),
    reasoning: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
export type ListedModel = Static<typeof LISTED_MODEL>;

/** What was applied of model lists: all that a model needs to be sold at that host. */
export type SyncedModel = ListedModel &
  Required<Pick<ListedModel, "context_length" | "max_output_tokens" | "price">>;

/** Why a row cannot be read; null for a good one. */
export function malformed(row: unknown): string | null {
  const [error] = Value.Errors(LISTED_MODEL, row);
  if (error !== undefined) {
    const { expected = error.message } = error.schema;
    return `${error.path.slice(1).replaceAll("/", ".") || "the row"} is not ${expected}`;
  }
  const { price: written } = row as ListedModel;
  let problem: string | null = null;
  if (written !== undefined)
    readPrice(written, ["price"], (path, found, expected) => {
      problem ??= `${path.join(".")} is ${found}, and should be ${expected}`;
    });
  return problem;
}

/** What was applied, as the store has it: rows that a newer gateway wrote may have what this one cannot read. */
export const readSynced = (models: string): SyncedModel[] =>
  (JSON.parse(models) as SyncedModel[]).filter((row) => malformed(row) === null);

/**
 * What is on offer once model lists were applied. Models that the file lists stay as it has them: it is the operator's
 * own word. Hosts that are not served here any more, or take shorter prompts than the model is offered with, are left out.
 */
export function withSynced(config: Config, synced: readonly SyncedModel[]): Config {
  if (synced.length === 0) return config;
  const { catalog, modelsOfFile } = config;
  const models = new Map(catalog.models);
  const aliases = new Set([...models.values()].flatMap(({ aliases: names = [] }) => names));
  for (const row of synced) {
    const host = catalog.hosts.get(row.host);
    if (host === undefined || host.paused === true || modelsOfFile.has(row.id) || aliases.has(row.id))
      continue;
    const offered = models.get(row.id);
    const at = offered?.routes.findIndex((route) => isRouteOf(row, route)) ?? -1;
    const route = routeTo(row, host, offered?.routes[at]);
    if (offered === undefined) models.set(row.id, newModel(row, route));
    else if (at > 0) models.set(row.id, { ...offered, routes: offered.routes.with(at, route) });
    else if (at === 0) models.set(row.id, changedModel(offered, row, route));
    else if (row.context_length >= offered.contextLength)
      models.set(row.id, { ...offered, routes: [...offered.routes, route] });
  }
  return { ...config, catalog: catalogOf({ ...catalog, models }, config.priceLists.values()) };
}

export const isRouteOf = ({ host, model }: ListedModel, route: Route): boolean =>
  route.host.id === host && route.model === model && !route.free;

/** As `gateway.yaml` would have it; `malformed` has found nothing wrong. */
export const priceOf = (row: SyncedModel) => readPrice(row.price, [], () => {});

function routeTo(row: SyncedModel, host: Route["host"], present: Route | undefined): Route {
  const price = priceOf(row);
  if (present !== undefined) return { ...present, price };
  const preset = PRESETS.find(({ id, baseUrl }) => id === host.id && baseUrl === host.baseUrl);
  const own = preset === undefined ? null : routeQuirks(preset, row.model);
  return { host, model: row.model, price, free: false, ...(own === null ? {} : { quirks: own }) };
}

function newModel(row: SyncedModel, route: Route): Model {
  const { id, name = id, context_length: contextLength, max_output_tokens: maxOutputTokens } = row;
  return {
    id,
    name,
    contextLength,
    maxOutputTokens: Math.min(maxOutputTokens, contextLength),
    ...abilitiesOf(row),
    price: route.price,
    routes: [route],
  };
}

/** The first host's row is the model's. */
function changedModel(offered: Model, row: SyncedModel, route: Route): Model {
  const { contextLength, maxOutputTokens, price } = newModel(row, route);
  return { ...offered, contextLength, maxOutputTokens, price, routes: offered.routes.with(0, route) };
}
