import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { HOST_ORDERS, MODALITIES, type Model, QUANTIZATIONS } from "../catalog/catalog.ts";
import { count, ms, oneOf, plain, text, yesOrNo } from "./kinds.ts";
import { price } from "./price-settings.ts";
import { QUIRKS } from "./quirks.ts";
import { mapOf, required, setting } from "./setting.ts";

const list = <T extends TSchema>(items: T, expected: string) =>
  plain(Type.Array(items, { minItems: 1, expected }));

/** A row of a model's `routes`. */
export const ROUTE = mapOf(
  {
    host: required(text("the id of a host"), "a host's id"),
    model: required(text("the model's id at the host"), "the model's name at that host"),
    price: setting(price(), null, { doc: "the route's own price", otherwise: "the model's" }),
    cost: setting(price(), undefined, {
      doc: "what the host charges you, with the members of a price ([more](operating.md#what-hosts-charge)); no customer sees it",
      shown: null,
      otherwise: "unknown",
    }),
    free: setting(yesOrNo(), false, {
      doc: "`true`: a free route, without a price, which only the Open Tier uses, while verified",
    }),
    cache_ms: setting(ms(), undefined, {
      doc: "how long the host keeps a cached prompt for this model",
      otherwise: "the host's",
    }),
    quantization: setting(oneOf(QUANTIZATIONS), undefined, {
      doc: `of the model's weights at that host: ${QUANTIZATIONS.map((name) => `\`${name}\``).join(", ")}`,
      shown: "unknown",
    }),
    parameters: setting(
      {
        schema: list(
          text("the name of a request parameter").schema,
          "a list of at least one request parameter",
        ).schema,
        read: (names: readonly string[]): ReadonlySet<string> => new Set(names),
        show: (names: ReadonlySet<string>) => [...names],
      },
      undefined,
      {
        doc: "parameters that the host supports for this model, such as `[temperature, tools]`, for `provider.require_parameters`",
        shown: null,
        otherwise: "all that its language has",
      },
    ),
    // Without its rows: docs/configuration.md has them at the host.
    quirks: setting({ schema: QUIRKS.schema, read: QUIRKS.read, show: QUIRKS.show }, undefined, {
      doc: "quirks in which this model differs from its host, `true` or `false`",
      otherwise: "the host's",
    }),
  },
  "a route: { host, model, price?, free?, … }",
);

/** As many as a request may name. */
const MAX_FALLBACKS = 3;

/** What a model id may hold, and a name without an author. */
const ALIAS = "^[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,127}$";

/** A row of `models`. */
export const MODEL = mapOf(
  {
    id: required(text("<author>/<name>"), "`<author>/<name>`; the author `gateway` is reserved"),
    name: setting(text("the model's name for people"), undefined, {
      doc: "display name",
      otherwise: "the id",
    }),
    aliases: setting(
      list(text("another name for the model", ALIAS).schema, "a list of at least one alias"),
      undefined,
      {
        doc: "other names for it in requests, each of one model only",
        otherwise: "none",
      },
    ),
    fallbacks: setting(
      plain(
        Type.Array(text("the id of a model").schema, {
          minItems: 1,
          maxItems: MAX_FALLBACKS,
          expected: `a list of one to ${MAX_FALLBACKS} ids of models`,
        }),
      ),
      undefined,
      {
        doc: "models that serve, at their prices, when it [declines](routing.md#refusals) a request that names no others",
        otherwise: "none",
      },
    ),
    context_length: required(count(1), "the most tokens that a prompt may have"),
    max_output_tokens: required(
      count(1),
      "the most tokens that an answer may have; not above `context_length`",
    ),
    inputs: setting(list(oneOf(MODALITIES).schema, `a list of: ${MODALITIES.join(", ")}`), undefined, {
      doc: "what prompts may hold besides text: `image`, `file`, `audio`; shown to clients, never enforced",
      otherwise: "`[text]`",
    }),
    tools: setting(yesOrNo(), undefined, { doc: "`true`: the model calls tools", otherwise: "unknown" }),
    reasoning: setting(yesOrNo(), undefined, { doc: "`true`: the model reasons", otherwise: "unknown" }),
    price: setting(price(), null, {
      doc: "`{ input, output, cache_read, cache_write, cache_write_1h, audio_input, audio_output, above }` in USD per million tokens ([prices](#prices)); `cache_read`, `cache_write` and `audio_input` default to `input`, `audio_output` to `output`, and `cache_write_1h` (Anthropic's one-hour cache) to twice `input`",
      otherwise: "none",
    }),
    order: setting(oneOf(HOST_ORDERS), undefined, {
      doc: "`routing.order` for this model",
      otherwise: "`routing.order`",
    }),
    auto_cache: setting(yesOrNo(), undefined, {
      doc: "`auto_cache` for this model, whatever its hosts say",
      otherwise: "the hosts'",
    }),
    // Read by read-catalog, which knows the hosts that routes name.
    routes: required(
      { ...list(ROUTE.schema, "a list of at least one route"), rows: ROUTE.rows },
      "in order of preference; at least one",
    ),
  },
  "a model: { id, context_length, max_output_tokens, price, routes, … }",
);

/** What a row says that its model can do; nothing is known where it says nothing. */
export function abilitiesOf({
  inputs,
  tools,
  reasoning,
}: Pick<Static<typeof MODEL.schema>, "inputs" | "tools" | "reasoning">): Pick<Model, "abilities"> {
  if (inputs === undefined && tools === undefined && reasoning === undefined) return {};
  return {
    abilities: {
      inputs: MODALITIES.filter((one) => one === "text" || inputs?.includes(one) === true),
      tools: tools ?? false,
      reasoning: reasoning ?? false,
    },
  };
}
