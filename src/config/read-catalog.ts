import { type CatalogWithLists, catalogOf, type Host, type Model, type Route } from "../catalog/catalog.ts";
import { FREE_VARIANT, isModelId, isVariant } from "../catalog/model-name.ts";
import type { Price } from "../catalog/price.ts";
import { highestMember, matcherOf, type PriceList } from "../catalog/price-list.ts";
import { NANO_PER_USD } from "../units/usd.ts";
import { HOST } from "./host-settings.ts";
import type { FoundHosts } from "./hosts-from-environment.ts";
import { abilitiesOf, MODEL, ROUTE } from "./model-settings.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import type { ConfigFile } from "./settings.ts";
import { SIMULATED_ADDRESS, SIMULATED_MODEL_ID, simulatedHost, simulatedModel } from "./simulated-model.ts";

/**
 * A file that lists hosts or models gets exactly those; `add_models` adds to those of the environment. Where it lists none, the hosts found in the
 * environment serve, and the simulated one; where it lists models alone, their routes may name the found
 * hosts. `sim` can always be named.
 */
export function readCatalog(
  rows: ConfigFile,
  lists: ReadonlyMap<string, PriceList>,
  found: FoundHosts,
  report: ReportProblem,
): CatalogWithLists {
  return new CatalogReader(rows, lists, found, report).read();
}

type CatalogRows = Required<ConfigFile>;

/** Reads hosts, then models, then automatic routes: each may name what came before it. */
class CatalogReader {
  private readonly hosts = new Map<string, Host>();
  private readonly models = new Map<string, Model>();
  /** With the model that has it. */
  private readonly aliases = new Map<string, string>();

  constructor(
    private readonly rows: ConfigFile,
    private readonly lists: ReadonlyMap<string, PriceList>,
    private readonly found: FoundHosts,
    private readonly report: ReportProblem,
  ) {}

  read(): CatalogWithLists {
    const { rows, found, hosts, models } = this;
    if (rows.hosts === undefined) for (const host of found.hosts) hosts.set(host.id, host);
    else this.readHosts(rows.hosts);
    if (rows.models === undefined) for (const model of found.models) models.set(model.id, model);
    this.readModels();
    if (rows.hosts !== undefined && rows.models === undefined) {
      this.report(["hosts"], "`hosts` without `models`", "a list of models with routes to these hosts");
    }
    for (const [index, row] of this.listed.rows.entries())
      this.checkFallbacks(row, [this.listed.name, index]);
    const auto = this.readAuto();
    const paused = [...hosts.values()].some((host) => host.paused === true);
    const catalog = catalogOf(
      { hosts, models: paused ? withoutPaused(models) : models, auto },
      this.lists.values(),
    );
    for (const list of this.lists.values()) this.checkPriceList(list, catalog);
    return catalog;
  }

  private readHosts(rows: CatalogRows["hosts"]): void {
    for (const [index, row] of rows.entries()) {
      const path: Path = ["hosts", index];
      if (this.hosts.has(row.id)) {
        this.report([...path, "id"], describe(row.id), "an id that no other host has");
      }
      const host = HOST.read(row, path, this.report)!;
      const { simulatedUrl } = this.found;
      this.hosts.set(row.id, host.baseUrl === SIMULATED_ADDRESS ? { ...host, baseUrl: simulatedUrl } : host);
    }
  }

  private readModels(): void {
    const { name, rows } = this.listed;
    if (name === "models" && this.rows.add_models !== undefined)
      this.report(
        ["add_models"],
        "`add_models` next to `models`",
        "one list: `models` has all that are served",
      );
    const ids = new Set<string>();
    for (const [index, row] of rows.entries()) {
      const path: Path = [name, index];
      if (ids.has(row.id)) this.report([...path, "id"], describe(row.id), "an id that no other model has");
      ids.add(row.id);
      this.models.set(row.id, this.readModel(row, path));
    }
  }

  /** The file's rows of models: all that are served, or those that are added to what the environment offers. */
  private get listed(): { readonly name: "models" | "add_models"; readonly rows: CatalogRows["models"] } {
    const { models, add_models: added = [] } = this.rows;
    return models === undefined ? { name: "add_models", rows: added } : { name: "models", rows: models };
  }

  private readModel(row: CatalogRows["models"][number], path: Path): Model {
    const { report } = this;
    if (!isModelId(row.id)) {
      report([...path, "id"], describe(row.id), "<author>/<name>, with an author other than `gateway`");
    }
    if (row.max_output_tokens > row.context_length) {
      report(
        [...path, "max_output_tokens"],
        describe(row.max_output_tokens),
        `at most context_length, ${row.context_length}`,
      );
    }
    const {
      inputs: _inputs,
      tools: _tools,
      reasoning: _reasoning,
      autoCache,
      ...model
    } = MODEL.read(row, path, report)!;
    this.checkAliases(row, path);
    return {
      ...model,
      name: model.name ?? model.id,
      ...abilitiesOf(row),
      routes: model.routes.flatMap((route, at) => {
        const read = this.readRoute(route, model.price, [...path, "routes", at]);
        return read === null ? [] : autoCache === undefined ? read : { ...read, autoCache };
      }),
    };
  }

  private checkAliases({ id, aliases = [] }: CatalogRows["models"][number], path: Path): void {
    for (const [at, alias] of aliases.entries()) {
      const own: Path = [...path, "aliases", at];
      const other = this.aliases.get(alias);
      if (other !== undefined) this.report(own, describe(alias), `an alias that ${other} does not have`);
      if (this.models.has(alias) || this.listed.rows.some((model) => model.id === alias))
        this.report(own, describe(alias), "a name that is not the id of a model");
      this.aliases.set(alias, id);
    }
  }

  /** Once all models are known. */
  private checkFallbacks({ id, fallbacks = [] }: CatalogRows["models"][number], path: Path): void {
    for (const [at, other] of fallbacks.entries()) {
      const own: Path = [...path, "fallbacks", at];
      if (!this.models.has(other)) this.report(own, describe(other), "the id of a listed model");
      else if (other === id || fallbacks.indexOf(other) < at)
        this.report(own, describe(other), "another model, each only once");
    }
  }

  private readRoute(
    row: CatalogRows["models"][number]["routes"][number],
    modelPrice: Price | null,
    path: Path,
  ): Route | null {
    const { hosts, report } = this;
    const { host: id, price, quirks, ...route } = ROUTE.read(row, path, report)!;
    if (route.free && price !== null)
      report([...path, "price"], "a price on a free route", "either `free: true` or a price");
    if (route.free && route.cost !== undefined)
      report([...path, "cost"], "a cost on a free route", "either `free: true` or a cost");
    const host = hosts.get(id) ?? this.namedSimulatedHost(id);
    if (host === null) {
      const known = [...hosts.keys()].join(", ") || "none is listed or found in the environment";
      report([...path, "host"], describe(id), `the id of a host: ${known}`);
      return null;
    }
    return {
      ...route,
      host,
      price: route.free ? null : (price ?? modelPrice),
      ...(quirks === undefined ? {} : { quirks: { ...host.quirks, ...quirks } }),
    };
  }

  /** A name that is mistyped would sell its model at another price. */
  private checkPriceList({ name, rules }: PriceList, { priceLists }: CatalogWithLists): void {
    const { models, report } = this;
    const path: Path = ["price_lists", name];
    for (const [at, { model }] of rules.entries())
      if (!model.includes("*") && !models.has(model))
        report(
          [...path, at, "model"],
          describe(model),
          "the id of a listed model, or a pattern such as openai/*",
        );
    const ids = [...models.keys()];
    if (!rules.some(({ model }) => ids.some(matcherOf(model))))
      report(
        path,
        "a list that names no model",
        "a rule with the id of a listed model, or a pattern such as openai/*",
      );
    const tooHigh = [...priceLists.get(name)!.models.values()].find(
      (model) => highestMember(model) > MAX_PRICE,
    );
    if (tooHigh !== undefined)
      report(path, `a price of ${tooHigh.id} above 1000000`, "USD per million tokens, at most 1000000");
  }

  private readAuto(): ReadonlyMap<string, readonly string[]> {
    const { rows, found, models, report } = this;
    const auto = new Map<string, readonly string[]>(rows.models === undefined ? found.auto : []);
    for (const [variant, ids] of Object.entries(rows.auto ?? {})) {
      if (!isVariant(variant))
        report(["auto", variant], describe(variant), "letters, digits, dots, dashes or underscores");
      for (const [index, id] of ids.entries()) {
        const model = models.get(id) ?? this.namedSimulatedModel(id);
        const path: Path = ["auto", variant, index];
        if (model === null) report(path, describe(id), "the id of a listed model");
        else if (ids.indexOf(id) < index) report(path, describe(id), "each model only once");
        else if (variant === FREE_VARIANT && !model.routes.some(({ free }) => free)) {
          report(path, describe(id), "a model with a route that is `free: true`");
        }
      }
      auto.set(variant, ids);
    }
    return auto;
  }

  /** A route to `sim` adds the simulated host to a file that does not list it. */
  private namedSimulatedHost(id: string): Host | null {
    const host = simulatedHost(this.found.simulatedUrl);
    if (id !== host.id) return null;
    this.hosts.set(host.id, host);
    return host;
  }

  /** `sim/echo` in an automatic route adds itself, and its host, to a file that does not list it. */
  private namedSimulatedModel(id: string): Model | null {
    if (id !== SIMULATED_MODEL_ID) return null;
    const host = simulatedHost(this.found.simulatedUrl);
    // The file may have given the id to a host of its own.
    if (!this.hosts.has(host.id)) this.hosts.set(host.id, host);
    const model = simulatedModel(host, false);
    this.models.set(id, model);
    return model;
  }
}

const MAX_PRICE = 1_000_000 * NANO_PER_USD;

/**
 * Whatever reads the catalog then knows of no way to a paused host; requests that it has are answered to
 * their end.
 */
function withoutPaused(models: ReadonlyMap<string, Model>): ReadonlyMap<string, Model> {
  const open = ({ host }: Route): boolean => host.paused !== true;
  return new Map([...models].map(([id, model]) => [id, { ...model, routes: model.routes.filter(open) }]));
}
