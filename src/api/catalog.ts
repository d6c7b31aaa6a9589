import { type Static, Type } from "@sinclair/typebox";
import { MODALITIES, SURFACE_NAMES } from "../catalog/catalog.ts";
import type { About } from "./about.ts";
import * as t from "./schema.ts";

const kept = (how: string) => Type.Optional(t.number(`for what is cached for ${how}`));

const RATES = {
  input: Type.Number(),
  audio_input: Type.Optional(t.number("for audio in a prompt, if it differs")),
  output: Type.Number(),
  audio_output: Type.Optional(t.number("for audio in an answer, if it differs")),
  cache_read: Type.Number(),
  cache_write: t.number("for what is cached as long as the host caches it by default"),
  cache_write_5m: kept("five minutes"),
  cache_write_30m: kept("half an hour"),
  cache_write_1h: kept("an hour"),
  cache_write_12h: kept("twelve hours"),
};

export const PriceAnswer = t.namedAnswer("Price", {
  ...RATES,
  above: Type.Optional(
    t.several(t.object({ prompt: t.count, ...RATES }), {
      description:
        "the rates of a whole request whose prompt has more than `prompt` tokens, those of the cache among them",
    }),
  ),
});
export type PriceAnswer = Static<typeof PriceAnswer>;

export const ChargedRates = t.namedAnswer("ChargedRates", {
  ...RATES,
  version: Type.Optional(t.string("names all prices that were in force: all receipts of one have the same")),
  above_prompt: Type.Optional(
    t.integer("they are the rates of prompts with more tokens than this", { minimum: 1 }),
  ),
});

const EntryAnswer = t.namedAnswer("CatalogEntry", {
  id: t.string("<author>/<name>"),
  name: Type.String(),
  context_length: t.count,
  max_output_tokens: t.count,
  price: t.orNone(PriceAnswer),
  input_modalities: t.several(t.oneOf(MODALITIES)),
  supported_parameters: t.texts,
  surfaces: t.several(t.oneOf(SURFACE_NAMES)),
  free: t.boolean("whether the Open Tier serves it right now"),
  available: t.boolean("whether a request for it would be sent to a host right now"),
});
export type EntryAnswer = Static<typeof EntryAnswer>;

const perToken = Type.String({ pattern: "^\\d+(\\.\\d+)?$", description: "USD per token" });
const tokenPrices = {
  prompt: perToken,
  completion: perToken,
  input_cache_read: perToken,
  input_cache_write: perToken,
  input_cache_write_1h: Type.Optional(perToken),
  input_cache_write_12h: Type.Optional(perToken),
};

const ModelAnswer = t.namedAnswer("Model", {
  id: Type.String(),
  object: Type.Literal("model"),
  created: Type.Integer(),
  owned_by: Type.String(),
  type: Type.Literal("model"),
  display_name: Type.String(),
  created_at: Type.String({ format: "date-time" }),
  context_length: t.count,
  max_output_tokens: t.count,
  max_input_tokens: t.count,
  max_tokens: t.count,
  capabilities: Type.Null(),
  line: Type.Null(),
  lifecycle: Type.Literal("active"),
  deprecated_at: Type.Null(),
  retires_at: Type.Null(),
  name: Type.String(),
  canonical_slug: Type.String(),
  architecture: t.object({
    modality: Type.String(),
    input_modalities: t.texts,
    output_modalities: t.texts,
  }),
  pricing: t.object({
    ...tokenPrices,
    overrides: Type.Optional(
      t.several(
        t.object({
          min_prompt_tokens: t.count,
          ...tokenPrices,
        }),
        { description: "the prices of a whole request whose prompt has at least `min_prompt_tokens` tokens" },
      ),
    ),
  }),
  top_provider: t.object({
    context_length: t.count,
    max_completion_tokens: t.count,
    is_moderated: Type.Literal(false),
  }),
  per_request_limits: Type.Null(),
  supported_parameters: t.texts,
  supported_voices: Type.Null(),
  default_parameters: Type.Null(),
  links: t.object({ details: Type.String() }),
});
export type ModelAnswer = Static<typeof ModelAnswer>;

/** Per page. Anthropic's own limit ("List Models"). */
const MAX_MODELS = 1_000;

const SHOWN = { who: ["key", "owner"], anyOrigin: true, opensWithCatalog: true } as const;
const LIKE_CLIENTS = { ...SHOWN, alsoXApiKey: true } as const;

export const CATALOG = {
  catalog: {
    summary: "Lists the models, with prices in USD per million tokens",
    details:
      "At the prices that the key, or the balance, is charged, and without models for which the key's policy leaves no host.",
    ...SHOWN,
    answers: {
      200: t.object({
        object: Type.Literal("list"),
        data: t.several(EntryAnswer),
        price_list: t.orNone(t.string("the price list that they are of; null: the models' own prices")),
        price_version: t.string("what receipts at these prices have as `price.version`"),
      }),
    },
  },
  models: {
    summary: "Lists the models as OpenAI's, Anthropic's and OpenRouter's clients expect them",
    details:
      "All of them, unless a `limit` is named, at the prices that the key, or the balance, is charged.",
    ...LIKE_CLIENTS,
    query: {
      limit: Type.Integer({ minimum: 1, maximum: MAX_MODELS, description: "models per page" }),
      after_id: t.string("the `last_id` of the previous page"),
      offset: t.integer("models to leave out at the beginning", { minimum: 0 }),
      before_id: t.string("the `first_id` of the next page, to go backwards"),
    },
    answers: {
      200: t.object({
        object: Type.Literal("list"),
        data: t.several(ModelAnswer),
        has_more: Type.Boolean(),
        first_id: t.orNone(Type.String()),
        last_id: t.orNone(Type.String()),
        links: t.object({ next: t.orNone(Type.String()) }),
        total_count: t.count,
      }),
    },
  },
  model: {
    summary: "Shows a model, or an automatic route",
    ...LIKE_CLIENTS,
    answers: { 200: ModelAnswer },
  },
  modelByParts: {
    summary: "Shows a model whose id is sent with its slash unescaped",
    ...LIKE_CLIENTS,
    answers: { 200: ModelAnswer },
  },
} as const satisfies Record<string, About>;
