import {
  calcPrice,
  findProvider,
  type MatchLogic,
  type ModelInfo,
  type ModelPrice,
} from "@pydantic/genai-prices";
import { MODEL_CONFIGS } from "llm-zoo";
import { type Abilities, MODALITIES } from "../catalog/catalog.ts";
import { isModelId } from "../catalog/model-name.ts";
import { highestPrice, mapRates, type Price, type Rates, ratesAt } from "../catalog/price.ts";
import type { EpochMs } from "../units/clock.ts";
import { type NanoPerMillion, pricePerMillion } from "../units/usd.ts";
import { PRESETS, type Preset } from "./provider-presets.ts";

/**
 * What two npm packages know of a host's models (docs/decisions/0002-model-catalogue.md): genai-prices knows
 * prices and context lengths, llm-zoo output ceilings and which text models there are. A model is only listed
 * when its price and its context length are known: what cannot be priced cannot be sold, and what cannot be
 * bounded cannot be held.
 */
export interface KnownModel {
  /** `<author>/<name>`, the same whichever hosts are there. */
  readonly id: string;
  readonly name: string;
  /** At the host. */
  readonly wireName: string;
  readonly contextLength: number;
  readonly maxOutputTokens: number;
  readonly price: Price;
  /** Null where only its price is known. */
  readonly abilities: Abilities | null;
  /** Its author does not call it outdated. */
  readonly current: boolean;
}

export function knownModels(preset: Preset, at: EpochMs): KnownModel[] {
  const models = preset.zoo === undefined ? pricedModels(preset, at) : authorsModels(preset, preset.zoo, at);
  const byId = new Map<string, KnownModel>();
  // The same model may be listed under several efforts or dates: the first is the plain one.
  for (const model of models) if (isModelId(model.id) && !byId.has(model.id)) byId.set(model.id, model);
  return [...byId.values()];
}

/**
 * What a model costs at its author's or wherever else it is known by this name, with or without the author in
 * front.
 */
export function knownPrice(model: string, at: EpochMs): Price | null {
  for (const name of [model, model.slice(model.lastIndexOf("/") + 1)]) {
    const match = calcPrice({}, name);
    const priced = match === null ? null : priceAt(match.model.prices, at);
    if (priced !== null) return priced;
  }
  return null;
}

type ZooModel = (typeof MODEL_CONFIGS)[string];

/** A host that serves its author's models: llm-zoo lists them. */
function authorsModels(preset: Preset, zoo: string, at: EpochMs): KnownModel[] {
  return Object.values(MODEL_CONFIGS).flatMap((model) => {
    if (model.provider !== zoo || model.retired === true || model.openRouterOnly) return [];
    const match = calcPrice({}, model.fullName, { providerId: preset.prices });
    if (match === null) return [];
    return listed(preset, match.model, model.fullName, `${preset.author}/${plainName(model)}`, model, at);
  });
}

/** A host of many authors' models: genai-prices lists them, some of them no text models. */
function pricedModels(preset: Preset, at: EpochMs): KnownModel[] {
  const zoo = Object.values(MODEL_CONFIGS);
  return (findProvider({ providerId: preset.prices })?.models ?? []).flatMap((model) => {
    const wireName = `${preset.modelPrefix ?? ""}${model.id}`;
    if (model.deprecated === true || NO_TEXT_MODEL.test(model.id) || !names(model.match, wireName)) return [];
    if (preset.namesAuthors === true && !model.id.includes("/")) return [];
    const twin = zooTwin(model.id, zoo);
    return listed(preset, model, wireName, publishedId(preset, model.id, twin), twin, at);
  });
}

const NO_TEXT_MODEL =
  /embed|whisper|tts|transcribe|realtime|audio|voice|voxtral|image|lyria|ocr|guard|moderation|safety|:/i;

function listed(
  preset: Preset,
  model: ModelInfo,
  wireName: string,
  id: string,
  limits: ZooModel | null,
  at: EpochMs,
): KnownModel[] {
  const priced = priceAt(model.prices, at);
  const contextLength = Math.min(limits?.contextWindow ?? Infinity, model.context_window ?? Infinity);
  if (priced === null || !Number.isSafeInteger(contextLength)) return [];
  const stepped = limits === null ? priced : withStepsOf(authorsPrice(limits, at), priced);
  const price = withRetentions(preset, reachable(stepped, contextLength));
  return [
    {
      id,
      name: displayName(id, wireName, model, limits),
      wireName,
      contextLength,
      // Where nothing says less, an answer can fill the context and no more.
      maxOutputTokens: Math.min(limits?.maxOutputTokens ?? contextLength, contextLength),
      price,
      abilities: limits === null ? null : abilitiesOf(limits),
      current: limits !== null && limits.deprecated !== true,
    },
  ];
}

/**
 * The vendor's name for the model. Lists call some models by another one's name (“Opus 5 (Thinking)”), so the first
 * name that has the same letters and digits as the id is taken, from the host's list, its author's or OpenRouter's.
 * Without one it is the host's name, and the id where that has none.
 */
function displayName(id: string, wireName: string, { name }: ModelInfo, zoo: ZooModel | null): string {
  const [author, bare] = id.split("/") as [string, string];
  const isSame = (one: string | undefined): one is string =>
    one !== undefined && lettersOf(one) === lettersOf(bare);
  const own = [name, zoo?.label].filter(isSame);
  // Some lists write ids where others have names.
  const written = own.find((one) => /[A-Z]/.test(one));
  if (written !== undefined) return written;
  const lists = PRESETS.filter((one) => one.author === author || one.prices === OPENROUTER);
  const others = lists
    .flatMap(({ prices }) =>
      [wireName, bare].map((model) => calcPrice({}, model, { providerId: prices })?.model.name),
    )
    .filter(isSame);
  return others.find((one) => /[A-Z]/.test(one)) ?? own[0] ?? name ?? id;
}

const OPENROUTER = "openrouter";

/** In any order: `claude-3-5-haiku` is “Claude Haiku 3.5”. */
const lettersOf = (name: string): string => [...wordsOf(name).replaceAll(/[^a-z0-9]/g, "")].sort().join("");

const abilitiesOf = ({ capabilities }: ZooModel): Abilities => ({
  inputs: MODALITIES.filter(
    (one) =>
      one === "text" ||
      (one === "image" && capabilities.supportsVision) ||
      (one === "file" && capabilities.supportsNativePdf) ||
      (one === "audio" && capabilities.supportsNativeAudio),
  ),
  tools: capabilities.supportsFunctionCalling,
  reasoning: capabilities.supportsReasoning,
});

function authorsPrice(model: ZooModel, at: EpochMs): Price | null {
  const author = PRESETS.find(({ zoo }) => zoo === model.provider);
  const match = author === undefined ? null : calcPrice({}, model.fullName, { providerId: author.prices });
  return match === null ? null : priceAt(match.model.prices, at);
}

/**
 * Where the author's own price rises with the prompt, resellers of the model pass that on: a list that has no
 * steps for it lacks them, and gets them in the same proportion.
 */
function withStepsOf(author: Price | null, own: Price): Price {
  if (author?.above === undefined || own.above !== undefined) return own;
  const above = author.above.map((step) => ({
    ...raised(ratesAt(own, 0), ratesAt(author, 0), step),
    prompt: step.prompt,
  }));
  return { ...own, above };
}

const raised = (own: Rates, from: Rates, to: Rates): Rates =>
  mapRates(own, (rate, line) => {
    const of = line === "audioInput" || line === "audioOutput" ? "input" : line;
    const [low, high] = [from[of], to[of]];
    return (low === 0 ? Math.max(rate, high) : Math.ceil((rate * high) / low)) as NanoPerMillion;
  });

/** Without steps that no prompt reaches. */
function reachable({ above = [], ...base }: Price, contextLength: number): Price {
  const reached = above.filter(({ prompt }) => prompt < contextLength);
  return reached.length === 0 ? base : { ...base, above: reached };
}

/** Where writes to a cache have a price of their own, the host's longer retentions are multiples of the input's. */
function withRetentions({ retentions }: Preset, price: Price): Price {
  if (retentions === undefined || price.cacheWrite <= price.input) return price;
  const priced = <R extends Rates>(rates: R): R => ({
    ...rates,
    cacheWrites: {
      [retentions.own]: rates.cacheWrite,
      ...Object.fromEntries(
        Object.entries(retentions.longer).map(([name, factor]) => [name, Math.round(factor * rates.input)]),
      ),
    },
  });
  const { above } = price;
  return { ...priced(ratesAt(price, 0)), above: above?.map(priced) };
}

/**
 * Whether the host knows the model under exactly this name; other rules describe families or dated copies.
 */
function names(match: MatchLogic, id: string): boolean {
  if ("equals" in match) return match.equals === id;
  if ("or" in match) return match.or.some((one) => names(one, id));
  return "starts_with" in match && match.starts_with === id;
}

/** `llama-v3p1` and `claude-3.5` and `claude-3-5` are the same words. */
const wordsOf = (name: string): string => name.toLowerCase().replaceAll(/(?<=\d)p(?=\d)|[._]/g, "-");

/**
 * The same model in llm-zoo: by OpenRouter's id, or by its name, which must carry a version to mean one
 * model.
 */
function zooTwin(id: string, zoo: readonly ZooModel[]): ZooModel | null {
  const exact = zoo.find(({ openrouterFullName }) => openrouterFullName === id);
  if (exact !== undefined) return exact;
  const [author, name] = id.includes("/") ? id.split("/") : [null, id];
  if (name === undefined || !/\d/.test(name)) return null;
  const same = zoo.filter((model) => wordsOf(plainName(model)) === wordsOf(name));
  return same.find((model) => author === null || authorOf(model) === author) ?? null;
}

/**
 * The author's own name for the model, so that an id does not depend on which hosts are there; but only where
 * both names say the same: `deepseek-chat` has meant several models over time.
 */
function publishedId(preset: Preset, id: string, twin: ZooModel | null): string {
  const bare = id.slice(id.indexOf("/") + 1);
  const author = twin === null ? null : authorOf(twin);
  if (twin !== null && author !== null && wordsOf(plainName(twin)) === wordsOf(bare)) {
    return `${author}/${plainName(twin)}`;
  }
  const lower = id.toLowerCase();
  return lower.includes("/") ? lower : `${preset.author ?? preset.id}/${lower}`;
}

const authorOf = ({ openrouterFullName, provider }: ZooModel): string | null =>
  openrouterFullName?.split("/")[0] ?? PRESETS.find(({ zoo }) => zoo === provider)?.author ?? null;

const plainName = ({ shortName, fullName }: ZooModel): string => (shortName ?? fullName).toLowerCase();

/**
 * Prices may change on a day, or with the hour. The most expensive price of today holds all day, so that no hour
 * is served below cost.
 */
function priceAt(prices: ModelInfo["prices"], at: EpochMs): Price | null {
  let today: ModelPrice[] = [];
  for (const { constraint, prices: price } of Array.isArray(prices) ? prices : [{ prices }]) {
    if (constraint === undefined) today = [price];
    else if (constraint.type === "start_date") {
      if (Date.parse(constraint.start_date) <= at) today = [price];
    } else today.push(price);
  }
  const known = today.flatMap((price) => steppedPrice(price) ?? []);
  return known.length === 0 ? null : highestPrice(known);
}

/** Null when a line is missing or the whole costs nothing: that is not a price to sell at. */
function steppedPrice(price: ModelPrice): Price | null {
  const base = ratesOf(price, 0);
  if (base === null || (base.input === 0 && base.output === 0)) return null;
  const starts = new Set(
    Object.values(price).flatMap((line) =>
      typeof line === "object" ? line.tiers.map(({ start }) => start) : [],
    ),
  );
  if (starts.size === 0) return base;
  const above = [...starts]
    .sort((a, b) => a - b)
    .flatMap((start) => {
      const rates = ratesOf(price, start + 1);
      return rates === null ? [] : [{ ...rates, prompt: start === MISREAD_STEP ? OPENAI_STEP : start }];
    });
  return { ...base, above };
}

/** “Prompts with more than 272K input tokens” (OpenAI, models); the package has it for exactly as many, too. */
const OPENAI_STEP = 272_000;
const MISREAD_STEP = OPENAI_STEP - 1;

/** The rates of a prompt with so many tokens. */
function ratesOf(price: ModelPrice, prompt: number): Rates | null {
  const line = (name: string): NanoPerMillion | null => lineAt(price[name], prompt);
  const input = line("input_mtok");
  const output = line("output_mtok");
  if (input === null || output === null) return null;
  // Some lists name only what the cache adds to the input's price.
  const audioInput = line("input_audio_mtok");
  const cacheWrite = Math.max(line("cache_write_mtok") ?? 0, input) as NanoPerMillion;
  const anHour = Math.max(line("cache_write_1h_mtok") ?? 2 * input, cacheWrite) as NanoPerMillion;
  return {
    input,
    output,
    cacheRead: line("cache_read_mtok") ?? input,
    cacheWrite,
    cacheWrites: { "1h": anHour },
    ...(audioInput === null ? {} : { audioInput }),
  };
}

function lineAt(line: ModelPrice[string], prompt: number): NanoPerMillion | null {
  if (line === undefined) return null;
  if (typeof line === "number") return pricePerMillion(line);
  return pricePerMillion(line.tiers.findLast(({ start }) => prompt > start)?.price ?? line.base);
}
