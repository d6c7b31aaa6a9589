import {
  calcPrice,
  findProvider,
  type MatchLogic,
  type ModelInfo,
  type ModelPrice,
} from "@pydantic/genai-prices";
import { MODEL_CONFIGS } from "llm-zoo";
import { type Abilities, MODALITIES, type Price } from "../catalog/catalog.ts";
import { isModelId } from "../catalog/model-name.ts";
import type { EpochMs } from "../units/clock.ts";
import { type NanoPerMillion, pricePerMillion } from "../units/usd.ts";
import { PRESETS, type Preset } from "./presets.ts";

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
    if (priced !== null) return priced.price;
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
    return listed(match.model, model.fullName, `${preset.author}/${plainName(model)}`, model, at);
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
    return listed(model, wireName, publishedId(preset, model.id, twin), twin, at);
  });
}

const NO_TEXT_MODEL =
  /embed|whisper|tts|transcribe|realtime|audio|voice|voxtral|image|lyria|ocr|guard|moderation|safety|:/i;

function listed(
  model: ModelInfo,
  wireName: string,
  id: string,
  limits: ZooModel | null,
  at: EpochMs,
): KnownModel[] {
  const priced = priceAt(model.prices, at);
  const context = Math.min(limits?.contextWindow ?? Infinity, model.context_window ?? Infinity);
  if (priced === null || !Number.isSafeInteger(context)) return [];
  const contextLength = Math.min(
    context,
    priced.upToTokens,
    limits === null ? Infinity : authorsStep(limits, at),
  );
  return [
    {
      id,
      name: limits?.label ?? model.name ?? id,
      wireName,
      contextLength,
      // Where nothing says less, an answer can fill the context and no more.
      maxOutputTokens: Math.min(limits?.maxOutputTokens ?? contextLength, contextLength),
      price: priced.price,
      abilities: limits === null ? null : abilitiesOf(limits),
      current: limits !== null && limits.deprecated !== true,
    },
  ];
}

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

/** Where the author's own price rises with the prompt's length: whoever resells the model passes that on. */
function authorsStep(model: ZooModel, at: EpochMs): number {
  const author = PRESETS.find(({ zoo }) => zoo === model.provider);
  const match = author === undefined ? null : calcPrice({}, model.fullName, { providerId: author.prices });
  return (match === null ? null : priceAt(match.model.prices, at))?.upToTokens ?? Infinity;
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

interface Priced {
  readonly price: Price;
  /** Longer prompts cost more: the price does not hold for them. */
  readonly upToTokens: number;
}

/**
 * Prices may change on a day, or with the hour. Of those of today the most expensive holds all day, so that no hour
 * is served below cost. A price that rises with the prompt's length holds up to the first step, where the
 * model's context then ends.
 */
function priceAt(prices: ModelInfo["prices"], at: EpochMs): Priced | null {
  let today: ModelPrice[] = [];
  for (const { constraint, prices: price } of Array.isArray(prices) ? prices : [{ prices }]) {
    if (constraint === undefined) today = [price];
    else if (constraint.type === "start_date") {
      if (Date.parse(constraint.start_date) <= at) today = [price];
    } else today.push(price);
  }
  const known = today.flatMap((price) => flatPrice(price) ?? []);
  if (known.length === 0) return null;
  const hears = known.some(({ price }) => price.audioInput !== undefined);
  const dearest = (line: keyof Price): NanoPerMillion =>
    Math.max(...known.map(({ price }) => price[line] ?? 0)) as NanoPerMillion;
  return {
    price: {
      input: dearest("input"),
      output: dearest("output"),
      cacheRead: dearest("cacheRead"),
      cacheWrite: dearest("cacheWrite"),
      cacheWrite1h: dearest("cacheWrite1h"),
      ...(hears ? { audioInput: dearest("audioInput") } : {}),
    },
    upToTokens: Math.min(...known.map(({ upToTokens }) => upToTokens)),
  };
}

/** Null when a line is missing or the whole costs nothing: that is not a price to sell at. */
function flatPrice(price: ModelPrice): Priced | null {
  const { input_mtok, output_mtok, cache_read_mtok, cache_write_mtok, input_audio_mtok } = price;
  const input = base(input_mtok);
  const output = base(output_mtok);
  if (input === null || output === null || (input === 0 && output === 0)) return null;
  const steps = [input_mtok, output_mtok, cache_read_mtok, cache_write_mtok, input_audio_mtok].flatMap(
    (line) => (typeof line === "object" ? line.tiers.map(({ start }) => start) : []),
  );
  // Some lists name only what the cache adds to the input's price.
  const audioInput = base(input_audio_mtok);
  const cacheWrite = Math.max(base(cache_write_mtok) ?? 0, input) as NanoPerMillion;
  return {
    price: {
      input,
      output,
      cacheRead: base(cache_read_mtok) ?? input,
      cacheWrite,
      cacheWrite1h: Math.max(2 * input, cacheWrite) as NanoPerMillion,
      ...(audioInput === null ? {} : { audioInput }),
    },
    upToTokens: Math.min(...steps),
  };
}

function base(line: ModelPrice[string]): NanoPerMillion | null {
  if (line === undefined) return null;
  return pricePerMillion(typeof line === "object" ? line.base : line);
}
