import { isModelId, isVariant } from "../../catalog/model-name.ts";
import { type Preset, routeQuirks } from "../../config/provider-presets.ts";
import { ownQuirks, quirkRow } from "../../config/quirks.ts";
import type { KnownModels, UsdPrice } from "./known-models.ts";
import { NO_SHARE, pooled, type Share, type Use } from "./pools.ts";
import type { Provider } from "./providers.ts";
import type { HostRow, ModelRow } from "./rows.ts";
import type { Secrets } from "./secrets.ts";

/** One model at one host, as another gateway lists it. */
interface Deployment {
  /** What clients call the model. */
  readonly name: string;
  readonly provider: Provider;
  /** Its address with the path of its API; null: the provider's own. */
  readonly address: string | null;
  /** As the source has it: a secret, or a reference to one; null: the provider's usual variable. */
  readonly key: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** The model's name at the host. */
  readonly model: string;
  /** The name under which prices and limits are known, where it is another one. */
  readonly knownAs?: string | null;
  readonly contextLength?: number | null;
  readonly maxOutputTokens?: number | null;
  readonly price?: UsdPrice | null;
  /** Absent: nothing is said. */
  readonly share?: Share;
  /** Its place in the source, for the report. */
  readonly from: string;
}

/** Where neither the source nor a catalogue knows more. */
const ASSUMED = { contextLength: 131_072, maxOutputTokens: 16_384 } as const;
const MAX_FALLBACKS = 3;
const ALIAS = /^[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,127}$/;

/** A configuration in the making, and everything of its source that it does not carry. */
export class Draft {
  /** Settings other than hosts, models and automatic routes. */
  readonly settings: Record<string, unknown> = {};
  /** `place: why`, of what is not carried at all. */
  readonly leftOut: string[] = [];
  /** Notes on settings that are carried over in another form. */
  readonly notes: string[] = [];
  private hosts: HostRow[] = [];
  private readonly uses: Use[] = [];
  private readonly models: ModelRow[] = [];
  private readonly auto: Record<string, string[]> = {};
  /** By the name that clients use. */
  private readonly byName = new Map<string, ModelRow>();

  constructor(
    readonly known: KnownModels,
    readonly secrets: Secrets,
  ) {}

  leaveOut(from: string, why: string): void {
    this.leftOut.push(`${from}: ${why}`);
  }

  note(from: string, what: string): void {
    this.notes.push(`${from}: ${what}`);
  }

  /** Adds a route, and its model and host where they are new. */
  add(deployment: Deployment): void {
    const { name, provider, from, share = NO_SHARE } = deployment;
    const price = this.priceOf(deployment);
    if (price === null) {
      this.leaveOut(from, `no price of ${deployment.model} is known, and what has no price cannot be sold`);
      return;
    }
    const model = this.byName.get(name) ?? this.newModel(deployment, price);
    if (model === null) return;
    const host = this.hostOf(deployment);
    const wireName = withPrefix(provider.preset, deployment.model);
    if (model.routes.some((route) => route.host === host.id && route.model === wireName)) {
      this.note(from, `it is the same route as another of ${model.id}, and listed once`);
      return;
    }
    const limits = this.limitsOf(deployment);
    model.context_length = Math.min(model.context_length, limits.contextLength);
    model.max_output_tokens = Math.min(model.max_output_tokens, limits.maxOutputTokens, model.context_length);
    const isOwn = !Bun.deepEquals(price, model.price);
    const { preset } = provider;
    const ofRoute = preset === null ? null : routeQuirks(preset, wireName);
    const quirks = ofRoute === null ? null : ownQuirks(ofRoute, preset?.quirks ?? {});
    this.uses.push({ host, model, share, stem: provider.id, from });
    model.routes.push({
      host: host.id,
      model: wireName,
      ...(isOwn ? { price } : {}),
      ...(quirks === null ? {} : { quirks }),
    });
  }

  /** Once all deployments are known: see pools. */
  pool(): void {
    const { hosts, ids, leftOut } = pooled(this.hosts, this.uses);
    this.hosts = hosts;
    this.leftOut.push(...leftOut);
    for (const model of this.models) {
      const routes = model.routes.map((route) => ({ ...route, host: ids.get(route.host)! }));
      model.routes = routes.filter(
        (route, at) => routes.findIndex((other) => Bun.deepEquals(other, route)) === at,
      );
    }
  }

  has(name: string): boolean {
    return this.byName.has(name);
  }

  /** The id of the model that clients call by this name; null where it is not carried. */
  idOf(name: string): string | null {
    return this.byName.get(name)?.id ?? null;
  }

  addAlias(alias: string, name: string, from: string): void {
    const model = this.byName.get(name);
    if (model === undefined) this.leaveOut(from, `${name} is not carried`);
    else if (!ALIAS.test(alias)) this.leaveOut(from, `a name here has letters, digits and ._:@+/- only`);
    else if (this.byName.has(alias)) this.leaveOut(from, `${alias} is the name of a model`);
    else {
      model.aliases = [...(model.aliases ?? []), alias];
      this.byName.set(alias, model);
    }
  }

  /** Models that serve in place of one that declines. */
  setFallbacks(name: string, others: readonly string[], from: string): void {
    const model = this.byName.get(name);
    const ids = this.carried(others, from).filter((id) => id !== model?.id);
    if (model === undefined) this.leaveOut(from, `${name} is not carried`);
    else if (ids.length > 0) {
      model.fallbacks = ids.slice(0, MAX_FALLBACKS);
      if (ids.length > MAX_FALLBACKS)
        this.leaveOut(
          from,
          `a model has at most ${MAX_FALLBACKS} fallbacks: without ${ids.slice(MAX_FALLBACKS).join(", ")}`,
        );
    }
  }

  /** An automatic route, `gateway/auto:<variant>`: returns its name, or null where none of its models is carried. */
  addAuto(variant: string, names: readonly string[], from: string): string | null {
    const ids = [...new Set(this.carried(names, from))];
    const name = variant.replaceAll(/[^A-Za-z0-9._-]+/g, "-");
    if (ids.length === 0 || !isVariant(name)) return null;
    this.auto[name] = ids;
    return `gateway/auto:${name}`;
  }

  get counts(): { readonly hosts: number; readonly models: number } {
    return { hosts: this.hosts.length, models: this.models.length };
  }

  /** As a configuration file has it. */
  rows(): object {
    return {
      ...this.settings,
      hosts: this.hosts,
      models: this.models,
      ...(Object.keys(this.auto).length === 0 ? {} : { auto: this.auto }),
    };
  }

  private carried(names: readonly string[], from: string): string[] {
    return names.flatMap((name) => {
      const id = this.idOf(name);
      if (id === null) this.leaveOut(from, `${name} is not carried`);
      return id === null ? [] : [id];
    });
  }

  private priceOf({ price, model, knownAs, provider, from }: Deployment): UsdPrice | null {
    if (price) return price;
    // What somebody runs by themselves costs nothing until they say what it costs.
    const isFree = provider.isOwn && !knownAs;
    const known = isFree ? null : this.known.price(knownAs ?? model, provider.preset);
    if (known !== null || !provider.isOwn) return known;
    this.note(from, "it has no price, so it is sold at 0; give it a `price`");
    return { input: 0, output: 0 };
  }

  private newModel(deployment: Deployment, price: UsdPrice): ModelRow | null {
    const { name, provider, knownAs, model: wireName, from } = deployment;
    const known = this.known.find(knownAs ?? wireName, provider.preset);
    const author = known?.id.split("/")[0] ?? provider.preset?.author ?? provider.id;
    const id = isModelId(name) ? name : `${author}/${name.replaceAll(/[^A-Za-z0-9._:@+-]+/g, "-")}`;
    if (!isModelId(id)) {
      this.leaveOut(from, `no id can be made of the name ${JSON.stringify(name)}`);
      return null;
    }
    if (this.models.some((other) => other.id === id)) {
      this.leaveOut(from, `another model has the id ${id} already`);
      return null;
    }
    const isAlias = id !== name && ALIAS.test(name);
    if (id !== name && !isAlias) this.note(from, `clients have to call ${JSON.stringify(name)} ${id}`);
    const { contextLength, maxOutputTokens, areAssumed } = this.limitsOf(deployment);
    if (areAssumed)
      this.note(
        from,
        `its limits are assumed: ${contextLength} tokens of context, ${maxOutputTokens} of an answer`,
      );
    const model: ModelRow = {
      id,
      ...(isAlias ? { aliases: [name] } : {}),
      context_length: contextLength,
      max_output_tokens: maxOutputTokens,
      ...(known?.abilities ?? {}),
      price,
      routes: [],
    };
    this.models.push(model);
    this.byName.set(name, model);
    this.byName.set(id, model);
    return model;
  }

  private limitsOf({ contextLength, maxOutputTokens, knownAs, model, provider }: Deployment) {
    const known = this.known.find(knownAs ?? model, provider.preset);
    const context = contextLength ?? known?.contextLength ?? ASSUMED.contextLength;
    const answer = maxOutputTokens ?? known?.maxOutputTokens ?? ASSUMED.maxOutputTokens;
    return {
      contextLength: context,
      maxOutputTokens: Math.min(answer, context),
      areAssumed: known === null && (!contextLength || !maxOutputTokens),
    };
  }

  /** The host with this address and key. */
  private hostOf({ provider, address, key, headers = {} }: Deployment): HostRow {
    const base = address ?? provider.address!;
    const secret = key === null ? provider.env : this.secrets.reference(key, provider.id);
    const reference = secret === null ? null : key === null ? `\${${secret}}` : secret;
    const sent = { ...provider.preset?.headers, ...this.secrets.references(headers, provider.id) };
    const inHeader =
      reference !== null && provider.keyHeader !== null ? { [provider.keyHeader]: reference } : {};
    const all = { ...sent, ...inHeader };
    const quirks = quirkRow(provider.preset?.quirks ?? provider.quirks);
    const row = {
      base_url: base,
      speaks: [...provider.speaks],
      ...(reference === null || provider.keyHeader !== null ? {} : { api_key: reference }),
      ...(provider.auth === "bearer" ? {} : { auth: provider.auth }),
      ...(Object.keys(all).length === 0 ? {} : { headers: all }),
      ...(provider.preset?.refusals === undefined ? {} : { refusals: provider.preset.refusals }),
      ...(provider.preset?.fallbacks === undefined ? {} : { fallbacks: provider.preset.fallbacks }),
      ...(Object.keys(quirks).length === 0 ? {} : { quirks }),
    };
    const same = this.hosts.find(({ id: _, ...other }) => Bun.deepEquals(other, row));
    if (same !== undefined) return same;
    const alike = this.hosts.filter(
      ({ id }) => id === provider.id || id.startsWith(`${provider.id}-`),
    ).length;
    const id = alike === 0 ? provider.id : `${provider.id}-${alike + 1}`;
    const host = { id, ...row };
    this.hosts.push(host);
    return host;
  }
}

const withPrefix = (preset: Preset | null, model: string): string =>
  preset?.modelPrefix === undefined || model.startsWith(preset.modelPrefix) || model.startsWith("accounts/")
    ? model
    : preset.modelPrefix + model;
