import {
  type Catalog,
  catalogOf,
  type Host,
  MODALITIES,
  type Model,
  type Price,
  type Route,
} from "../catalog/catalog.ts";
import { FREE_VARIANT, isModelId, isVariant } from "../catalog/model-name.ts";
import { nanoFromUsd, pricePerMillion } from "../units/usd.ts";
import { readAddress } from "./address.ts";
import type { FoundHosts } from "./found-hosts.ts";
import type { Path, ReportProblem } from "./problem.ts";
import { readQuirks } from "./quirks.ts";
import type { ConfigFile, HostConfig, ModelConfig, PriceConfig, RouteConfig } from "./schema.ts";
import { SIMULATED_ADDRESS, SIMULATED_MODEL_ID, simulatedHost, simulatedModel } from "./simulated-model.ts";
import { describe } from "./validate.ts";

/**
 * A file that lists hosts or models gets exactly those. Where it lists none, the hosts found in the
 * environment serve, and the simulated one; where it lists models alone, their routes may name the found
 * hosts. `sim` can always be named.
 */
export function readCatalog(rows: ConfigFile, found: FoundHosts, report: ReportProblem): Catalog {
  return new CatalogReader(rows, found, report).read();
}

/** Reads hosts, then models, then automatic routes: each may name what came before it. */
class CatalogReader {
  private readonly hosts = new Map<string, Host>();
  private readonly models = new Map<string, Model>();
  /** With the model that has it. */
  private readonly aliases = new Map<string, string>();

  constructor(
    private readonly rows: ConfigFile,
    private readonly found: FoundHosts,
    private readonly report: ReportProblem,
  ) {}

  read(): Catalog {
    const { rows, found, hosts, models } = this;
    if (rows.hosts === undefined) for (const host of found.hosts) hosts.set(host.id, host);
    else this.readHosts(rows.hosts);
    if (rows.models === undefined) for (const model of found.models) models.set(model.id, model);
    else this.readModels(rows.models);
    if (rows.hosts !== undefined && rows.models === undefined) {
      this.report(["hosts"], "`hosts` without `models`", "a list of models with routes to these hosts");
    }
    const auto = this.readAuto();
    const paused = [...hosts.values()].some((host) => host.paused === true);
    return catalogOf({ hosts, models: paused ? withoutPaused(models) : models, auto });
  }

  private readHosts(rows: readonly HostConfig[]): void {
    for (const [index, row] of rows.entries()) {
      const path: Path = ["hosts", index];
      if (this.hosts.has(row.id)) {
        this.report([...path, "id"], describe(row.id), "an id that no other host has");
      }
      this.hosts.set(row.id, readHost(row, this.found, path, this.report));
    }
  }

  private readModels(rows: readonly ModelConfig[]): void {
    for (const [index, row] of rows.entries()) {
      const path: Path = ["models", index];
      if (this.models.has(row.id)) {
        this.report([...path, "id"], describe(row.id), "an id that no other model has");
      }
      this.models.set(row.id, this.readModel(row, path));
    }
  }

  private readModel(row: ModelConfig, path: Path): Model {
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
    const price = row.price === undefined ? null : readPrice(row.price, [...path, "price"], report);
    return {
      id: row.id,
      name: row.name ?? row.id,
      ...(row.aliases === undefined ? {} : { aliases: this.readAliases(row, path) }),
      contextLength: row.context_length,
      maxOutputTokens: row.max_output_tokens,
      ...abilitiesOf(row),
      price,
      ...(row.order === undefined ? {} : { order: row.order }),
      routes: row.routes.flatMap(
        (route, at) => this.readRoute(route, row, price, [...path, "routes", at]) ?? [],
      ),
    };
  }

  private readAliases({ id, aliases = [] }: ModelConfig, path: Path): readonly string[] {
    for (const [at, alias] of aliases.entries()) {
      const own: Path = [...path, "aliases", at];
      const other = this.aliases.get(alias);
      if (other !== undefined) this.report(own, describe(alias), `an alias that ${other} does not have`);
      if (this.rows.models?.some((model) => model.id === alias) === true)
        this.report(own, describe(alias), "a name that is not the id of a model");
      this.aliases.set(alias, id);
    }
    return aliases;
  }

  private readRoute(
    row: RouteConfig,
    { auto_cache: autoCache }: ModelConfig,
    modelPrice: Price | null,
    path: Path,
  ): Route | null {
    const { hosts, report } = this;
    const own = row.price === undefined ? null : readPrice(row.price, [...path, "price"], report);
    const free = row.free ?? false;
    if (free && own !== null)
      report([...path, "price"], "a price on a free route", "either `free: true` or a price");
    const host = hosts.get(row.host) ?? this.namedSimulatedHost(row.host);
    if (host === null) {
      const known = [...hosts.keys()].join(", ") || "none is listed or found in the environment";
      report([...path, "host"], describe(row.host), `the id of a host: ${known}`);
      return null;
    }
    return {
      host,
      model: row.model,
      price: free ? null : (own ?? modelPrice),
      free,
      ...(row.cache_ms === undefined ? {} : { cacheMs: row.cache_ms }),
      ...(autoCache === undefined ? {} : { autoCache }),
      ...(row.quantization === undefined ? {} : { quantization: row.quantization }),
      ...(row.parameters === undefined ? {} : { parameters: new Set(row.parameters) }),
      ...(row.quirks === undefined ? {} : { quirks: { ...host.quirks, ...readQuirks(row.quirks) } }),
    };
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

/** Nothing is known of a row that says nothing. */
const abilitiesOf = ({ inputs, tools, reasoning }: ModelConfig): Pick<Model, "abilities"> =>
  inputs === undefined && tools === undefined && reasoning === undefined
    ? {}
    : {
        abilities: {
          inputs: MODALITIES.filter((one) => one === "text" || inputs?.includes(one) === true),
          tools: tools ?? false,
          reasoning: reasoning ?? false,
        },
      };

/**
 * Whatever reads the catalog then knows of no way to a paused host; requests that it has are answered to
 * their end.
 */
function withoutPaused(models: ReadonlyMap<string, Model>): ReadonlyMap<string, Model> {
  const open = ({ host }: Route): boolean => host.paused !== true;
  return new Map([...models].map(([id, model]) => [id, { ...model, routes: model.routes.filter(open) }]));
}

function readHost(row: HostConfig, { simulatedUrl }: FoundHosts, path: Path, report: ReportProblem): Host {
  if (new Set(row.speaks).size < row.speaks.length) {
    report([...path, "speaks"], row.speaks.join(", "), "each of them only once");
  }
  return {
    id: row.id,
    baseUrl:
      row.base_url === SIMULATED_ADDRESS
        ? simulatedUrl
        : (hostAddress(row.base_url, [...path, "base_url"], report) ?? ""),
    speaks: row.speaks,
    apiKey: secretOf(row, path, report),
    auth: row.auth ?? "bearer",
    headers: readHeaders(row.headers ?? {}, [...path, "headers"], report),
    onDisconnect: row.on_disconnect ?? "cancel",
    ...(row.bills_cancelled === undefined ? {} : { billsCancelled: row.bills_cancelled }),
    ...(row.paused === true ? { paused: true } : {}),
    ...(row.max_concurrent === undefined ? {} : { maxConcurrent: row.max_concurrent }),
    ...(row.cache_ms === undefined ? {} : { cacheMs: row.cache_ms }),
    ...(row.auto_cache === undefined ? {} : { autoCache: row.auto_cache }),
    ...(row.data_collection === undefined && row.zdr === undefined
      ? {}
      : {
          privacy: { collectsNothing: row.data_collection === "deny", retainsNothing: row.zdr ?? false },
        }),
    quirks: readQuirks(row.quirks),
  };
}

/** Providers show the whole address of an endpoint in their examples. */
function hostAddress(text: string, path: Path, report: ReportProblem): string | null {
  const address = readAddress(text, path, report);
  const endpoint = address === null ? undefined : ENDPOINT.exec(new URL(address).pathname)?.[0];
  if (endpoint === undefined) return address;
  report(path, describe(text), `the address without \`${endpoint}\`, which the gateway appends`);
  return null;
}

const ENDPOINT = /\/(chat\/completions|completions|responses|messages)$/;

/** A line break in a header would let its author write further ones. */
export const HEADER_TEXT = /^[\t\x20-\x7e]*$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** How shells, and other gateways' files, write `${NAME}`. */
const OTHER_REFERENCE = /^(?:\$|os\.environ\/|env\.|env:)([A-Z][A-Z0-9_]{2,63})$/;
/** How a message is framed and where it goes is the transport's to say. */
const TRANSPORT_HEADERS = new Set([
  "host",
  "content-length",
  "connection",
  "transfer-encoding",
  "expect",
  "te",
  "upgrade",
]);

function secretOf({ api_key }: HostConfig, path: Path, report: ReportProblem): string | null {
  if (api_key === undefined) return null;
  const meant = OTHER_REFERENCE.exec(api_key)?.[1];
  if (meant !== undefined) {
    report([...path, "api_key"], "the name of an environment variable", `a reference to it: \${${meant}}`);
    return null;
  }
  if (!HEADER_TEXT.test(api_key)) {
    report(
      [...path, "api_key"],
      "a string with characters that a header cannot hold",
      "a secret in printable ASCII",
    );
  } else if (/^["'\s]|["'\s]$/.test(api_key)) {
    report(
      [...path, "api_key"],
      "a string with quotes or spaces around it",
      "the secret alone: docker's --env-file keeps quotes",
    );
  } else return api_key;
  return null;
}

function readHeaders(
  rows: Readonly<Record<string, string>>,
  path: Path,
  report: ReportProblem,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(rows)) {
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) report([...path, name], describe(name), "the name of an HTTP header");
    else if (TRANSPORT_HEADERS.has(lower))
      report([...path, name], describe(name), `none of ${[...TRANSPORT_HEADERS].join(", ")}`);
    else if (!HEADER_TEXT.test(value))
      report([...path, name], "a string with control characters", "printable ASCII");
    else if (Object.hasOwn(headers, lower))
      report([...path, name], describe(name), "each header only once, in whatever case");
    else headers[lower] = value;
  }
  return headers;
}

function readPrice(row: PriceConfig, path: Path, report: ReportProblem): Price {
  const line = (key: keyof PriceConfig, otherwise: number): Price["input"] => {
    const usd = row[key] ?? otherwise;
    const price = nanoFromUsd(usd) === null ? null : pricePerMillion(usd);
    if (price === null && row[key] !== undefined) {
      report(
        [...path, key],
        String(usd),
        "USD per million tokens, at most 1000000, with at most nine decimals",
      );
    }
    return price ?? (0 as Price["input"]);
  };
  return {
    input: line("input", 0),
    output: line("output", 0),
    // A host that says nothing about its cache bills such tokens as any others.
    cacheRead: line("cache_read", row.input),
    cacheWrite: line("cache_write", row.input),
    // What Anthropic documents, the one that has such a cache ("Prompt caching", pricing).
    cacheWrite1h: line("cache_write_1h", Math.max(2 * row.input, row.cache_write ?? 0)),
    ...(row.audio_input === undefined ? {} : { audioInput: line("audio_input", 0) }),
    ...(row.audio_output === undefined ? {} : { audioOutput: line("audio_output", 0) }),
  };
}
