import type { Config, Settings } from "./config.ts";
import type { FoundHosts } from "./hosts-from-environment.ts";
import type { ReportProblem } from "./problem.ts";
import { describe } from "./problem.ts";
import { readCatalog } from "./read-catalog.ts";
import { type ConfigFile, SETTINGS } from "./settings.ts";

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
  const settings = readSettings(rows, report);
  return {
    ...settings,
    file,
    catalog: readCatalog(rows, settings.priceLists, found, report),
    modelsOfFile: new Set([...(rows.models ?? []), ...(rows.add_models ?? [])].map(({ id }) => id)),
    catalogIsPublic: rows.catalog === "public",
  };
}

/** What holds where the file says nothing. */
export const DEFAULTS: Settings = readSettings({}, () => {});

function readSettings(rows: ConfigFile, report: ReportProblem): Settings {
  const {
    hosts: _hosts,
    models: _models,
    addModels: _addModels,
    auto: _auto,
    catalog: _catalog,
    ...settings
  } = SETTINGS.read(rows, [], report)!;
  const { store, journal, durability } = settings;
  if (journal === "postgres" && store.kind === "sqlite")
    report(["journal"], describe(journal), "disk, or store: postgres://…");
  if (journal === "postgres" && store.kind === "postgres" && durability === "relaxed")
    report(
      ["durability"],
      describe(durability),
      "strict: with journal: postgres, only what is committed is acknowledged",
    );
  return settings;
}
