import type { ModelAnswer } from "../../api/catalog.ts";
import { type RouteAvailability, soldAt } from "../../catalog/availability.ts";
import type { Modality, Model } from "../../catalog/catalog.ts";
import { highestPrice, type Price, type Rates, RETENTIONS, ratesAt, writeRate } from "../../catalog/price.ts";
import { NANO_PER_USD, type NanoPerMillion } from "../../units/usd.ts";
import { catalogEntry } from "../catalog-entries.ts";

/** What `GET /v1/models` tells of a name that a request may have. */
export interface NamedModel {
  readonly id: string;
  readonly name: string;
  readonly contextLength: number;
  readonly maxOutputTokens: number;
  /** Prices of all hosts that may serve it; none where nothing is charged. */
  readonly prices: readonly Price[];
  /** What prompts may hold. */
  readonly inputs: readonly Modality[];
  /** The members of a request that are known to be obeyed. */
  readonly parameters: readonly string[];
}

export function namedModel(model: Model, routeState: RouteAvailability): NamedModel {
  const { id, name, contextLength, maxOutputTokens } = model;
  const { input_modalities: inputs, supported_parameters: parameters } = catalogEntry(model, routeState);
  const price = soldAt(model);
  // A model without a price is served on the Open Tier alone.
  return {
    id,
    name,
    contextLength,
    maxOutputTokens,
    prices: price === null ? [] : [price],
    inputs,
    parameters,
  };
}

/** With several that may serve: what holds for each of them. */
export function together(id: string, all: readonly NamedModel[], costsNothing: boolean): NamedModel {
  const [first, ...others] = all;
  return {
    id,
    name: id,
    contextLength: Math.min(...all.map(({ contextLength }) => contextLength)),
    maxOutputTokens: Math.min(...all.map(({ maxOutputTokens }) => maxOutputTokens)),
    prices: costsNothing ? [] : all.flatMap(({ prices }) => prices),
    inputs: first!.inputs.filter((one) => others.every(({ inputs }) => inputs.includes(one))),
    parameters: first!.parameters.filter((one) => others.every(({ parameters }) => parameters.includes(one))),
  };
}

/**
 * Members of OpenAI's, Anthropic's and OpenRouter's model, side by side. When a model was made is not known:
 * the first two allow the epoch for that. Anthropic's clients allow null for what it can do in its words; nor
 * is it known of any host whether it moderates.
 */
export function modelView(model: NamedModel, baseUrl: string): ModelAnswer {
  const { id, name, contextLength, maxOutputTokens, prices, inputs, parameters } = model;
  return {
    id,
    object: "model",
    created: 0,
    owned_by: id.split("/", 1)[0]!,
    type: "model",
    display_name: name,
    created_at: "1970-01-01T00:00:00Z",
    context_length: contextLength,
    max_output_tokens: maxOutputTokens,
    max_input_tokens: contextLength,
    max_tokens: maxOutputTokens,
    capabilities: null,
    line: null,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    name,
    canonical_slug: id,
    architecture: {
      modality: `${inputs.join("+")}->text`,
      input_modalities: inputs,
      output_modalities: TEXT,
    },
    pricing: pricingOf(prices),
    top_provider: {
      context_length: contextLength,
      max_completion_tokens: maxOutputTokens,
      is_moderated: false,
    },
    per_request_limits: null,
    supported_parameters: parameters,
    supported_voices: null,
    default_parameters: null,
    links: { details: `${baseUrl}/v1/models/${id}` },
  };
}

const TEXT = ["text"];

/** USD per token, as decimals; of several prices the highest. */
function pricingOf(prices: readonly Price[]) {
  if (prices.length === 0) return NOTHING;
  const price = highestPrice(prices);
  const { above } = price;
  return {
    ...tokenPrices(ratesAt(price, 0)),
    ...(above && {
      overrides: above.map((step) => ({ min_prompt_tokens: step.prompt + 1, ...tokenPrices(step) })),
    }),
  };
}

const NOTHING = {
  prompt: "0",
  completion: "0",
  input_cache_read: "0",
  input_cache_write: "0",
  input_cache_write_1h: "0",
};

function tokenPrices(rates: Rates) {
  const writes = LONGER.flatMap((one) => {
    const rate = writeRate(rates, one);
    return rate === null ? [] : [[`input_cache_write_${one}`, perToken(rate)] as const];
  });
  return {
    prompt: perToken(rates.input),
    completion: perToken(rates.output),
    input_cache_read: perToken(rates.cacheRead),
    input_cache_write: perToken(rates.cacheWrite),
    ...Object.fromEntries(writes),
  };
}

/** Longer than any host's default. */
const LONGER = RETENTIONS.filter((one) => one === "1h" || one === "12h");

/** A price has nine decimals at most, and a million divides it by six more. */
const perToken = (perMillion: NanoPerMillion): string =>
  (perMillion / NANO_PER_USD / 1e6).toFixed(15).replace(/\.?0+$/, "");
