import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { HOST_ORDERS, MODALITIES, type Price, QUANTIZATIONS } from "../catalog/catalog.ts";
import { priceEntry } from "../catalog/entry.ts";
import { nanoFromUsd, pricePerMillion } from "../units/usd.ts";
import { count, ms, oneOf, plain, text, yesOrNo } from "./kinds.ts";
import type { Path, ReportProblem } from "./problem.ts";
import { QUIRKS } from "./quirks.ts";
import { mapOf, required, setting } from "./setting.ts";

const list = <T extends TSchema>(items: T, expected: string) =>
  plain(Type.Array(items, { minItems: 1, expected }));

const usdPerMillion = () =>
  Type.Number({ minimum: 0, expected: "USD per million tokens, from 0, with at most nine decimals" });

const PriceSchema = Type.Object(
  {
    input: usdPerMillion(),
    output: usdPerMillion(),
    cache_read: Type.Optional(usdPerMillion()),
    cache_write: Type.Optional(usdPerMillion()),
    cache_write_1h: Type.Optional(usdPerMillion()),
    audio_input: Type.Optional(usdPerMillion()),
    audio_output: Type.Optional(usdPerMillion()),
  },
  {
    additionalProperties: false,
    expected:
      "a price: { input, output, cache_read, cache_write, cache_write_1h, audio_input, audio_output }",
  },
);

const price = () => ({ schema: PriceSchema, read: readPrice, show: priceEntry });

/** A row of a model's `routes`. */
export const ROUTE = mapOf(
  {
    host: required(text("the id of a host"), "a host's id"),
    model: required(text("the model's id at the host"), "the model's name at that host"),
    price: setting(price(), null, { doc: "the route's own price", otherwise: "the model's" }),
    free: setting(yesOrNo(), false, {
      doc: "a free route, which has no price; used by the Open Tier only, and only while verified",
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
        doc: "the request parameters that the host supports for this model, such as `[temperature, tools]`; used by `provider.require_parameters`",
        shown: null,
        otherwise: "all that its language has",
      },
    ),
    // Without its rows: docs/configuration.md has them at the host.
    quirks: setting({ schema: QUIRKS.schema, read: QUIRKS.read, show: QUIRKS.show }, undefined, {
      doc: "quirks in which this model differs from its host: any of the host's, `true` or `false`",
      otherwise: "the host's",
    }),
  },
  "a route: { host, model, price?, free?, … }",
);

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
        doc: "other names that requests may use, each of one model only; they come before short names (below)",
        otherwise: "none",
      },
    ),
    context_length: required(count(1), "the most tokens that a prompt may have"),
    max_output_tokens: required(
      count(1),
      "the most tokens that an answer may have; not above `context_length`",
    ),
    inputs: setting(list(oneOf(MODALITIES).schema, `a list of: ${MODALITIES.join(", ")}`), undefined, {
      doc: "what prompts may hold in addition to text: `image`, `file`, `audio`; clients see it in the lists of models, and no request is refused for it",
      otherwise: "`[text]`",
    }),
    tools: setting(yesOrNo(), undefined, { doc: "`true`: the model calls tools", otherwise: "unknown" }),
    reasoning: setting(yesOrNo(), undefined, { doc: "`true`: the model thinks", otherwise: "unknown" }),
    price: setting(price(), null, {
      doc: "`{ input, output, cache_read, cache_write, cache_write_1h, audio_input, audio_output }` in USD per million tokens; `cache_read`, `cache_write` and `audio_input` default to `input`, `audio_output` to `output`, and `cache_write_1h` (Anthropic's one-hour cache) to twice `input`",
      otherwise: "none",
    }),
    order: setting(oneOf(HOST_ORDERS), undefined, {
      doc: "the order in which the model's hosts are tried, as `routing.order`",
      otherwise: "`routing.order`",
    }),
    auto_cache: setting(yesOrNo(), undefined, {
      doc: "`auto_cache` of this model's routes, whatever their hosts have",
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

function readPrice(row: Static<typeof PriceSchema>, path: Path, report: ReportProblem): Price {
  const line = (key: keyof Static<typeof PriceSchema>, otherwise: number): Price["input"] => {
    const usd = row[key] ?? otherwise;
    const perMillion = nanoFromUsd(usd) === null ? null : pricePerMillion(usd);
    if (perMillion === null && row[key] !== undefined) {
      report(
        [...path, key],
        String(usd),
        "USD per million tokens, at most 1000000, with at most nine decimals",
      );
    }
    return perMillion ?? (0 as Price["input"]);
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
