import { describe, expect, test } from "bun:test";
import { NO_OVERRIDES, type Overrides, readOverrides } from "../../src/routing/overrides.ts";
import { NO_PREFERENCES } from "../../src/routing/provider-preferences.ts";
import { Refusal } from "../../src/units/errors/refusal.ts";

const read = (raw: object, surface = "chat.completions"): Overrides => {
  const overrides = readOverrides(raw, surface);
  if (overrides instanceof Refusal) throw new Error(overrides.message);
  return overrides;
};
const refusal = (raw: object, surface = "chat.completions"): string => {
  const overrides = readOverrides(raw, surface);
  if (!(overrides instanceof Refusal)) throw new Error("it was understood");
  expect(overrides.code).toBe("invalid_request");
  return overrides.message;
};

const UNDERSTOOD: [string, object, object][] = [
  [
    "hosts are named in any case",
    { order: ["OpenAI"], only: ["A", "b"], ignore: ["C"] },
    { order: ["openai"], only: ["a", "b"], ignore: ["c"] },
  ],
  [
    "flags",
    { allow_fallbacks: false, require_parameters: true, zdr: true },
    { allowFallbacks: false, requireParameters: true, zdr: true },
  ],
  ["data collection", { data_collection: "deny" }, { dataCollection: "deny" }],
  ["quantizations", { quantizations: ["fp8", "unknown"] }, { quantizations: ["fp8", "unknown"] }],
  ["a sort by name", { sort: "throughput" }, { sort: { by: "throughput", acrossModels: false } }],
  [
    "a sort with a partition",
    { sort: { by: "latency", partition: "none" } },
    { sort: { by: "latency", acrossModels: true } },
  ],
  [
    "a number of tokens a second is about the median",
    { preferred_min_throughput: 40 },
    { minThroughput: [{ share: 0.5, bound: 40 }] },
  ],
  [
    "latency is in seconds, percentiles may be named",
    { preferred_max_latency: { p50: 0.5, p99: 3 } },
    {
      maxLatency: [
        { share: 0.5, bound: 500 },
        { share: 0.99, bound: 3_000 },
      ],
    },
  ],
  [
    "a percentile of null is as good as absent",
    { preferred_max_latency: { p50: null, p99: 3 } },
    { maxLatency: [{ share: 0.99, bound: 3_000 }] },
  ],
  [
    "prices per million, as numbers or texts",
    { max_price: { prompt: 1, completion: "2.5" } },
    { maxPrice: { prompt: 1_000_000_000, completion: 2_500_000_000 } },
  ],
  [
    "an empty list is as good as absent, as forms send it",
    { order: [], only: [], ignore: [], quantizations: [], allow_fallbacks: false },
    { allowFallbacks: false },
  ],
  ["null is as good as absent", { order: null, sort: null, max_price: { prompt: null } }, {}],
];

describe("provider, understood", () => {
  for (const [name, provider, preferences] of UNDERSTOOD) {
    test(name, () =>
      expect(read({ provider }).provider as object).toEqual({ ...NO_PREFERENCES, ...preferences }),
    );
  }
});

const REFUSED: [string, object, string][] = [
  ["an unknown member", { provider: { allow_fallback: true } }, "`provider.allow_fallback` is unknown"],
  [
    "a member of every object",
    { provider: JSON.parse('{"__proto__": {}}') },
    "`provider.__proto__` is unknown",
  ],
  [
    "a member that OpenRouter has and this gateway has not",
    { provider: { enforce_distillable_text: true } },
    "`provider.enforce_distillable_text`",
  ],
  ["not an object", { provider: "openai" }, "`provider` must be an object"],
  ["a list", { provider: [] }, "`provider` must be an object"],
  [
    "a name without letters",
    { provider: { only: [""] } },
    "`provider.only` must be an array of up to 64 names",
  ],
  ["a name alone", { provider: { order: "openai" } }, "`provider.order` must be an array"],
  ["not a flag", { provider: { zdr: "yes" } }, "`provider.zdr` must be true or false"],
  [
    "an unknown policy",
    { provider: { data_collection: "maybe" } },
    '`provider.data_collection` must be one of "allow", "deny"',
  ],
  [
    "an unknown quantization",
    { provider: { quantizations: ["fp7"] } },
    '`provider.quantizations` holds "fp7"',
  ],
  [
    "an unknown sort",
    { provider: { sort: "quality" } },
    '`provider.sort` must be one of "price", "throughput", "latency"',
  ],
  ["a sort by nothing", { provider: { sort: {} } }, "`provider.sort.by` must be one of"],
  [
    "a sort with a stranger",
    { provider: { sort: { by: "price", desc: true } } },
    "`provider.sort.desc` is unknown",
  ],
  [
    "a percentile that is not kept",
    { provider: { preferred_max_latency: { p95: 1 } } },
    "`provider.preferred_max_latency.p95` is unknown",
  ],
  [
    "a bound that is none",
    { provider: { preferred_min_throughput: 0 } },
    "`provider.preferred_min_throughput` must be a number above 0",
  ],
  [
    "a price that is none",
    { provider: { max_price: { prompt: "cheap" } } },
    "`provider.max_price.prompt` must be an amount in USD",
  ],
  [
    "an empty price",
    { provider: { max_price: { prompt: "" } } },
    "`provider.max_price.prompt` must be an amount in USD",
  ],
  ["a price of an image", { provider: { max_price: { image: 1 } } }, "`provider.max_price.image` is unknown"],
  ["a route that is not fallback", { route: "sort" }, '`route` must be "fallback"'],
  ["models that are none", { models: "a/b" }, "`models` must be an array of up to 8 names"],
  ["a model that is no text", { models: ["a/b", 1] }, "`models` must be an array"],
  [
    "fallbacks on another surface",
    { fallbacks: [{ model: "a/b" }] },
    "`fallbacks` is read only on /v1/messages",
  ],
];

describe("refused, never ignored", () => {
  for (const [name, raw, message] of REFUSED) test(name, () => expect(refusal(raw)).toContain(message));

  test("a member's name is not repeated at any length", () => {
    expect(refusal({ provider: { ["x".repeat(100_000)]: 1 } }).length).toBeLessThan(500);
  });
});

describe("fallbacks, on messages", () => {
  const fallback = (...names: string[]) => names.map((model) => ({ model }));

  test("up to three models are tried after the first", () => {
    expect(read({ fallbacks: fallback("a/b", "c/d", "e/f") }, "messages").moreModels).toEqual([
      "a/b",
      "c/d",
      "e/f",
    ]);
  });
  test("the default ones are the model's own, not the request's", () => {
    expect(read({ fallbacks: "default" }, "messages").moreModels).toEqual([]);
  });
  test("four are refused", () => {
    expect(refusal({ fallbacks: fallback("a/b", "c/d", "e/f", "g/h") }, "messages")).toContain(
      "up to 3 names",
    );
  });
  test("together with models they are refused", () => {
    expect(refusal({ fallbacks: fallback("a/b"), models: ["c/d"] }, "messages")).toContain(
      "combined with `models`",
    );
  });
  test("each may change the request for its model", () => {
    const changed = { max_tokens: 5, thinking: null, output_config: { effort: "low" }, speed: "standard" };
    const named = [{ model: "a/b", ...changed }, { model: "c/d", max_tokens: null }, { model: "e/f" }];
    expect(read({ fallbacks: named }, "messages")).toMatchObject({
      moreModels: ["a/b", "c/d", "e/f"],
      changes: [changed, {}, {}],
    });
    expect(read({ fallbacks: fallback("a/b") }, "messages").changes).toEqual([]);
  });
  test.each<[unknown, string]>([
    [["a/b"], "`fallbacks[0]` must be a {model} object"],
    [{}, 'must be "default" or an array'],
    [
      [{ model: "a/b", temperature: 1 }],
      "`fallbacks[0].temperature` is unknown; known are: model, max_tokens,",
    ],
    [[{ model: "a/b" }, { model: "c/d", max_tokens: 0 }], "`fallbacks[1].max_tokens` must be a whole number"],
    [[{ model: "a/b", thinking: "on" }], "`fallbacks[0].thinking` must be an object or null"],
    [[{ model: "a/b", speed: "fast" }], "cost more than the price here"],
  ])("%j is refused", (fallbacks, why) => {
    expect(refusal({ fallbacks }, "messages")).toContain(why);
  });
});

test("models, and route fallback, are OpenRouter's spelling of the same on every surface", () => {
  expect(read({ models: ["a/b"], route: "fallback" }, "responses").moreModels).toEqual(["a/b"]);
  expect(read({ route: "fallback" })).toEqual(NO_OVERRIDES);
  expect(read({ models: [], route: "fallback" })).toEqual(NO_OVERRIDES);
  expect(read({ fallbacks: [] }, "messages")).toEqual(NO_OVERRIDES);
  expect(read({ models: null, provider: null, route: null, fallbacks: null })).toBe(NO_OVERRIDES);
});
