import { type Static, Type } from "@sinclair/typebox";
import { MODALITIES, SURFACE_NAMES } from "../catalog/catalog.ts";
import type { About } from "./about.ts";
import { answerOf, count, namedAnswer, oneOf, orNone, several, texts } from "./answers.ts";

const kept = (how: string) => Type.Optional(Type.Number({ description: `for what is cached for ${how}` }));

const RATES = {
  input: Type.Number(),
  audio_input: Type.Optional(Type.Number({ description: "for audio in a prompt, if it differs" })),
  output: Type.Number(),
  audio_output: Type.Optional(Type.Number({ description: "for audio in an answer, if it differs" })),
  cache_read: Type.Number(),
  cache_write: Type.Number({ description: "for what is cached as long as the host caches it by default" }),
  cache_write_5m: kept("five minutes"),
  cache_write_30m: kept("half an hour"),
  cache_write_1h: kept("an hour"),
  cache_write_12h: kept("twelve hours"),
};

export const PriceAnswer = namedAnswer("Price", {
  ...RATES,
  above: Type.Optional(
    several(answerOf({ prompt: count, ...RATES }), {
      description:
        "the rates of a whole request whose prompt has more than `prompt` tokens, those of the cache among them",
    }),
  ),
});
export type PriceAnswer = Static<typeof PriceAnswer>;

export const ChargedRates = namedAnswer("ChargedRates", {
  ...RATES,
  version: Type.Optional(
    Type.String({ description: "names all prices that were in force: all receipts of one have the same" }),
  ),
  above_prompt: Type.Optional(
    Type.Integer({ minimum: 1, description: "they are the rates of prompts with more tokens than this" }),
  ),
});

const EntryAnswer = namedAnswer("CatalogEntry", {
  id: Type.String({ description: "<author>/<name>" }),
  name: Type.String(),
  context_length: count,
  max_output_tokens: count,
  price: orNone(PriceAnswer),
  input_modalities: several(oneOf(MODALITIES)),
  supported_parameters: texts,
  surfaces: several(oneOf(SURFACE_NAMES)),
  free: Type.Boolean({ description: "whether the Open Tier serves it right now" }),
  available: Type.Boolean({ description: "whether a request for it would be sent to a host right now" }),
});
export type EntryAnswer = Static<typeof EntryAnswer>;

const perToken = Type.String({ pattern: "^\\d+(\\.\\d+)?$", description: "USD per token" });

const ModelAnswer = namedAnswer("Model", {
  id: Type.String(),
  object: Type.Literal("model"),
  created: Type.Integer(),
  owned_by: Type.String(),
  type: Type.Literal("model"),
  display_name: Type.String(),
  created_at: Type.String({ format: "date-time" }),
  context_length: count,
  max_output_tokens: count,
  max_input_tokens: count,
  max_tokens: count,
  capabilities: Type.Null(),
  line: Type.Null(),
  lifecycle: Type.Literal("active"),
  deprecated_at: Type.Null(),
  retires_at: Type.Null(),
  name: Type.String(),
  canonical_slug: Type.String(),
  architecture: answerOf({
    modality: Type.String(),
    input_modalities: texts,
    output_modalities: texts,
  }),
  pricing: answerOf({
    prompt: perToken,
    completion: perToken,
    input_cache_read: perToken,
    input_cache_write: perToken,
    input_cache_write_1h: Type.Optional(perToken),
    input_cache_write_12h: Type.Optional(perToken),
    overrides: Type.Optional(
      several(
        answerOf({
          min_prompt_tokens: count,
          prompt: perToken,
          completion: perToken,
          input_cache_read: perToken,
          input_cache_write: perToken,
          input_cache_write_1h: Type.Optional(perToken),
          input_cache_write_12h: Type.Optional(perToken),
        }),
        { description: "the prices of a whole request whose prompt has at least `min_prompt_tokens` tokens" },
      ),
    ),
  }),
  top_provider: answerOf({
    context_length: count,
    max_completion_tokens: count,
    is_moderated: Type.Literal(false),
  }),
  per_request_limits: Type.Null(),
  supported_parameters: texts,
  supported_voices: Type.Null(),
  default_parameters: Type.Null(),
  links: answerOf({ details: Type.String() }),
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
      200: answerOf({
        object: Type.Literal("list"),
        data: several(EntryAnswer),
        price_list: orNone(
          Type.String({ description: "the price list that they are of; null: the models' own prices" }),
        ),
        price_version: Type.String({ description: "what receipts at these prices have as `price.version`" }),
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
      after_id: Type.String({ description: "the `last_id` of the previous page" }),
      offset: Type.Integer({ minimum: 0, description: "models to leave out at the beginning" }),
      before_id: Type.String({ description: "the `first_id` of the next page, to go backwards" }),
    },
    answers: {
      200: answerOf({
        object: Type.Literal("list"),
        data: several(ModelAnswer),
        has_more: Type.Boolean(),
        first_id: orNone(Type.String()),
        last_id: orNone(Type.String()),
        links: answerOf({ next: orNone(Type.String()) }),
        total_count: count,
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
