import type { ConfigAnswer } from "../api/admin.ts";
import type { Model, Route } from "../catalog/catalog.ts";
import type { Config, Links } from "./config.ts";
import { HOST } from "./host-settings.ts";
import { MODEL, ROUTE } from "./model-settings.ts";
import { SETTINGS } from "./settings.ts";

/**
 * The configuration in force as its operator may read it: the members of the file, every default applied, and no
 * secret. The kind of a setting decides how it is shown.
 */
export function configView(config: Config, links: Links): ConfigAnswer {
  const { catalog, catalogIsPublic, modelsOfFile: _listed, file, ...settings } = config;
  const view = SETTINGS.show({
    ...settings,
    ...links,
    catalog: catalogIsPublic ? "public" : "keyed",
    hosts: [...catalog.hosts.values()].map(HOST.show),
    models: [...catalog.models.values()].map(modelRow),
    auto: Object.fromEntries(catalog.auto),
  } as never);
  return { file, ...(view as ConfigAnswer) };
}

const modelRow = ({ abilities, routes, ...model }: Model) =>
  MODEL.show({ ...model, ...abilities, routes: routes.map(routeRow) } as never);

/** A model's `auto_cache` is its routes'; their quirks have the host's among them. */
const routeRow = ({ host, autoCache, quirks: _quirks, ...route }: Route) => ({
  ...(ROUTE.show({ ...route, host: host.id }) as object),
  ...(autoCache === undefined ? {} : { auto_cache: autoCache }),
});
