import { describe, expect, test } from "bun:test";
import type { Config } from "../../src/config/config.ts";
import { foundHosts } from "../../src/config/hosts-from-environment.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { knownModels } from "../../src/config/model-catalogue.ts";
import { checkModelList } from "../../src/config/model-list-check.ts";
import { readModelList } from "../../src/config/model-list-formats.ts";
import { priceRow } from "../../src/config/price-settings.ts";
import { type SyncedModel, withSynced } from "../../src/config/synced-models.ts";
import type { EpochMs } from "../../src/units/clock.ts";

/** The environment has a key of Anthropic, whose models the packages know as of this day. */
const env = { ANTHROPIC_API_KEY: "k" };
const found = foundHosts({
  env,
  simulatedUrl: "http://127.0.0.1:1",
  knownModels: (preset) => knownModels(preset, Date.parse("2026-11-21") as EpochMs),
});
const configOf = (text: string) => loadConfig({ file: "gateway.yaml", text, env, found }) as Config;
const offered = configOf("");
const HAIKU = "anthropic/claude-haiku-4-5";
const haiku = offered.catalog.models.get(HAIKU)!;

/** What the list says of Haiku, where nothing is different from what is on offer. */
const present: SyncedModel = {
  id: HAIKU,
  host: "anthropic",
  model: haiku.routes[0]!.model,
  context_length: haiku.contextLength,
  max_output_tokens: haiku.maxOutputTokens,
  price: priceRow(haiku.price!),
};
const fresh: SyncedModel = {
  id: "anthropic/claude-sonnet-5-5",
  host: "anthropic",
  model: "claude-sonnet-5-5",
  context_length: 1_000_000,
  max_output_tokens: 128_000,
  price: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
};
const changeOf = (rows: readonly unknown[], config = offered, id = HAIKU) =>
  checkModelList(config, rows).find(({ model, change }) => model === id && change !== "gone")!;

describe("what a list changes", () => {
  test("a model that is not on offer is new, and one that is the same is unchanged", () => {
    const changes = checkModelList(offered, [present, fresh]).filter(({ change }) => change !== "gone");
    expect(changes.map(({ model, change, doubts }) => [model, change, doubts])).toEqual([
      [HAIKU, "unchanged", []],
      [fresh.id, "new", []],
    ]);
  });

  test("a changed price is shown old and new", () => {
    const row = { ...present, price: { ...present.price, input: 1.25, output: 6 } };
    expect(changeOf([row])).toMatchObject({
      change: "changed",
      differences: ["price.input: 1 → 1.25", "price.output: 5 → 6"],
      doubts: [],
    });
  });

  test("a longer context is shown, and needs nobody's word", () => {
    const row = { ...present, context_length: haiku.contextLength * 2 };
    expect(changeOf([row])).toMatchObject({
      differences: [`context_length: ${haiku.contextLength} → ${haiku.contextLength * 2}`],
      doubts: [],
    });
  });

  test("what a list does not say stays as it is", () => {
    const { id, host, model } = present;
    expect(changeOf([{ id, host, model }]).change).toBe("unchanged");
  });

  test("models that the list lacks are gone from it, and stay on offer", () => {
    const changes = checkModelList(offered, [fresh]);
    expect(changes.find(({ model }) => model === HAIKU)).toMatchObject({ change: "gone", row: null });
  });

  test("a model that the file lists is the file's", () => {
    const file = `add_models:
  - id: ${HAIKU}
    context_length: 1000
    max_output_tokens: 100
    price: { input: 7, output: 7 }
    routes: [{ host: anthropic, model: ${present.model} }]
`;
    const config = configOf(file);
    expect(changeOf([present], config)).toMatchObject({ change: "kept", row: null });
    expect(withSynced(config, [present]).catalog.models.get(HAIKU)).toBe(config.catalog.models.get(HAIKU)!);
  });
});

/** Each is held back, or refused, with a reason that names the number. */
const POISONS: readonly [what: string, row: unknown, change: string, reason: string | RegExp][] = [
  ["input at zero", priced({ input: 0 }), "changed", "price.input is 0"],
  ["all at zero", priced({ input: 0, output: 0 }), "refused", /price is 0/],
  ["a negative price", priced({ output: -1 }), "refused", /price.output is not USD per million tokens/],
  [
    "ten times the price",
    priced({ input: 10 }),
    "changed",
    /price.input differs by a factor of 10 or more: 1 → 10/,
  ],
  ["a tenth of the price", priced({ output: 0.5 }), "changed", /price.output differs by a factor of 10/],
  ["a huge price", priced({ input: 9e15 }), "refused", /price.input/],
  ["NaN, which JSON has as null", priced({ input: null }), "refused", /price.input/],
  ["a price as text", priced({ input: "1" }), "refused", /price.input/],
  ["no output price", priced({ output: undefined }), "refused", /price.output/],
  ["context lost", { ...present, context_length: 0 }, "refused", /context_length/],
  [
    "context shrunk",
    { ...present, context_length: 100_000 },
    "changed",
    /context_length shrinks: 200000 → 100000/,
  ],
  ["context as text", { ...present, context_length: "200000" }, "refused", /context_length/],
  ["answers shrunk", { ...present, max_output_tokens: 1_000 }, "changed", /max_output_tokens shrinks/],
  ["an unknown member", { ...present, routes: [] }, "refused", /routes/],
  ["another host", { ...present, host: "nowhere" }, "refused", /there is no host nowhere/],
  ["the gateway's own name", { ...present, id: "gateway/auto" }, "refused", /author other than/],
  ["no object", 7, "refused", /the row is not/],
];

function priced(lines: Record<string, unknown>): unknown {
  return { ...present, price: { ...present.price, ...lines } };
}

describe("what looks wrong waits for the operator's word", () => {
  test.each(POISONS)("%s", (_, row, change, reason) => {
    const [found] = checkModelList(offered, [row]);
    expect(found!.change).toBe(change as never);
    expect(found!.doubts.join("\n")).toMatch(reason);
  });

  test("a row that is there twice is refused, whichever would come last", () => {
    const doubled = [present, priced({ input: 2 })];
    for (const { change, doubts } of checkModelList(offered, doubled).slice(0, 2))
      expect([change, doubts]).toEqual(["refused", ["the list has it more than once"]]);
  });

  test("the higher price of long prompts is not lost", () => {
    const above = [{ prompt: 200_000, input: 6, output: 22.5, cache_read: 0.6, cache_write: 7.5 }];
    const stepped = withSynced(offered, [{ ...fresh, price: { ...fresh.price, above } }]);
    expect(changeOf([fresh], stepped, fresh.id).doubts).toContain("the higher price of long prompts is lost");
    expect(changeOf([{ ...fresh, price: { ...fresh.price, above } }], stepped, fresh.id).change).toBe(
      "unchanged",
    );
  });

  test("a new model whose price nothing is known of may not cost more than any", () => {
    const row = { ...fresh, price: { input: 3_000, output: 15_000 } };
    expect(changeOf([row], offered, fresh.id).doubts[0]).toMatch(/price.input is above 1000 USD/);
  });
});

describe("what is applied", () => {
  test("a new model is sold at its host, with the quirks that the host has for it", () => {
    const { catalog } = withSynced(offered, [fresh]);
    expect(catalog.models.get(fresh.id)).toMatchObject({
      contextLength: 1_000_000,
      price: { input: 3e9, output: 15e9 },
    });
    expect(catalog.models.size).toBe(offered.catalog.models.size + 1);
    expect(catalog.priceVersion).not.toBe(offered.catalog.priceVersion);
  });

  test("a changed price is the route's and the model's", () => {
    const row = { ...present, price: { ...present.price, input: 1.25 } };
    const { price, routes } = withSynced(offered, [row]).catalog.models.get(HAIKU)!;
    expect([Number(price!.input), Number(routes[0]!.price!.input)]).toEqual([1.25e9, 1.25e9]);
  });

  test("customers with a price list of their own pay its factor for a new model, too", () => {
    const config = configOf('price_lists: { partners: [{ model: "anthropic/*", factor: 0.5 }] }');
    const { priceLists } = withSynced(config, [fresh]).catalog;
    expect(Number(priceLists.get("partners")!.models.get(fresh.id)!.price!.input)).toBe(1.5e9);
  });

  test("a host that is not served here any more takes nothing with it", () => {
    expect(withSynced(offered, [{ ...fresh, host: "gone" }]).catalog.models.size).toBe(
      offered.catalog.models.size,
    );
  });
});

const read = (value: unknown, host: string | null = "openrouter") => {
  const list = readModelList(typeof value === "string" ? value : JSON.stringify(value), {
    host,
    idOf: () => null,
  });
  if (typeof list === "string") throw new Error(list);
  return list;
};
const openRouter = (pricing: object, more: object = {}) => ({
  data: [
    {
      id: "a/b",
      name: "B",
      context_length: 400_000,
      architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
      pricing,
      top_provider: { context_length: 300_000, max_completion_tokens: 64_000 },
      supported_parameters: ["tools", "temperature"],
      ...more,
    },
  ],
});

describe("the forms of lists", () => {
  test("OpenRouter's prices are dollars per token, as text", () => {
    const { rows } = read(
      openRouter({ prompt: "0.000003", completion: "0.000015", input_cache_read: "0.0000003" }),
    );
    expect(rows).toEqual([
      {
        id: "a/b",
        host: "openrouter",
        model: "a/b",
        name: "B",
        context_length: 300_000,
        max_output_tokens: 64_000,
        price: { input: 3, output: 15, cache_read: 0.3 },
        inputs: ["text", "image"],
        tools: true,
        reasoning: false,
      },
    ]);
  });

  test("a step there begins with so many tokens, and here with more than so many", () => {
    const overrides = [{ min_prompt_tokens: 200_001, prompt: "0.000006", completion: "0.0000225" }];
    const { rows } = read(openRouter({ prompt: "0.000003", completion: "0.000015", overrides }));
    expect(rows[0]).toMatchObject({
      price: { input: 3, output: 15, above: [{ prompt: 200_000, input: 6, output: 22.5 }] },
    });
  });

  test("of hours, the most expensive holds all day", () => {
    const overrides = [{ utc_start: "16:30", utc_end: "00:30", prompt: "0.000001", completion: "0.00002" }];
    const { rows } = read(openRouter({ prompt: "0.000002", completion: "0.000015", overrides }));
    expect(rows[0]).toMatchObject({ price: { input: 2, output: 20 } });
  });

  test.each([
    ["a price that depends on what is chosen", { prompt: "-1", completion: "-1" }, 'pricing.prompt is "-1"'],
    ["no number", { prompt: "NaN", completion: "1" }, 'pricing.prompt is "NaN"'],
    [
      "a price for each request",
      { prompt: "0", completion: "0", request: "0.01" },
      "it costs 0.01 USD a request",
    ],
    [
      "a condition that is not known",
      { prompt: "1", overrides: [{ region: "eu", prompt: "2" }] },
      "depends on `region`",
    ],
    ["overrides that are none", { prompt: "1", overrides: 7 }, "`pricing.overrides` is not a list"],
  ])("OpenRouter's rows are refused by name: %s", (_, pricing, why) => {
    const { rows, refused } = read(openRouter(pricing));
    expect([rows, refused]).toEqual([[], [{ model: "a/b", why: expect.stringContaining(why) }]]);
  });

  test("variants and models that paint are no rows", () => {
    const price = { prompt: "0", completion: "0" };
    expect(read(openRouter(price, { id: "a/b:free" })).rows).toEqual([]);
    expect(read(openRouter(price, { architecture: { output_modalities: ["image", "text"] } })).rows).toEqual(
      [],
    );
  });

  test("Anthropic's own list tells limits and no prices", () => {
    const data = [
      { type: "model", id: "claude-x", display_name: "X", max_input_tokens: 200_000, max_tokens: 64_000 },
    ];
    expect(read({ data, has_more: false }, "anthropic").rows).toEqual([
      {
        id: "anthropic/claude-x",
        host: "anthropic",
        model: "claude-x",
        name: "X",
        context_length: 200_000,
        max_output_tokens: 64_000,
      },
    ]);
  });

  test("rows of gateway.yaml are read for each of their hosts, each at its own price", () => {
    const file = `models:
  - id: a/b
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 2 }
    routes: [{ host: one, model: b }, { host: two, model: b2, price: { input: 3, output: 4 } }]
`;
    expect(read(file, null).rows).toMatchObject([
      { id: "a/b", host: "one", model: "b", price: { input: 1, output: 2 } },
      { id: "a/b", host: "two", model: "b2", price: { input: 3, output: 4 } },
    ]);
  });

  test.each([
    ["truncated JSON", '{"data": [{"id": "a/b", "pri', /cannot be read/],
    ["no list", '{"prices": 7}', /neither `models`/],
    ["a provider's list of no host", '{"data": []}', /--host/],
    ["text", "hello", /neither JSON nor YAML/],
    ["YAML that grows", `a: &a [x, x]\nb: &b [*a, *a]\n${grown()}`, /cannot be read/],
  ])("%s is no list", (_, text, why) => {
    expect(readModelList(text, { host: null, idOf: () => null })).toMatch(why);
  });
});

function grown(): string {
  const names = "bcdefghijklm".split("");
  return names
    .slice(1)
    .map((name, at) => `${name}: &${name} [${Array(9).fill(`*${names[at]}`).join(", ")}]`)
    .join("\n");
}
