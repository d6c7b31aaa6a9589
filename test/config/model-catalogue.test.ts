import { describe, expect, test } from "bun:test";
import { isModelId } from "../../src/catalog/model-name.ts";
import { ratesAt, writeRate } from "../../src/catalog/price.ts";
import { foundHosts } from "../../src/config/hosts-from-environment.ts";
import { knownModels, knownPrice } from "../../src/config/model-catalogue.ts";
import { priceRow, readPrice } from "../../src/config/price-settings.ts";
import { PRESETS } from "../../src/config/provider-presets.ts";
import type { EpochMs } from "../../src/units/clock.ts";

const at = (day: string): EpochMs => Date.parse(day) as EpochMs;
const NOW = at("2026-11-21");
const preset = (id: string) => PRESETS.find((row) => row.id === id)!;
const model = (host: string, id: string, when = NOW) =>
  knownModels(preset(host), when).find((one) => one.id === id);

/** Hosts whose models no catalogue knows: a new version of one may fix that. */
const UNKNOWN = ["together"];

describe.each(PRESETS.map(({ id }) => id))("%s", (id) => {
  const models = knownModels(preset(id), NOW);

  test(
    UNKNOWN.includes(id) ? "serves what the operator lists" : "serves models that the catalogues know",
    () => {
      expect(models.length === 0).toBe(UNKNOWN.includes(id));
    },
  );

  test("every model can be priced and bounded", () => {
    for (const { id: published, price, contextLength, maxOutputTokens, wireName } of models) {
      expect(isModelId(published)).toBe(true);
      expect(wireName).not.toBe("");
      expect(price.input + price.output).toBeGreaterThan(0);
      expect(price.cacheWrite).toBeGreaterThanOrEqual(price.input);
      const read: unknown[] = [];
      const row = priceRow(price);
      readPrice(row, [], (...problem) => read.push(problem));
      expect([published, read]).toEqual([published, []]);
      expect(readPrice(row, [], () => {})).toEqual(price);
      expect(contextLength).toBeGreaterThan(0);
      expect(maxOutputTokens).toBeGreaterThan(0);
      expect(maxOutputTokens).toBeLessThanOrEqual(contextLength);
    }
  });

  test("ids are published once, and none is a model for something else than text", () => {
    const ids = models.map(({ id: published }) => published);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((one) => /embed|whisper|image|tts/.test(one))).toEqual([]);
  });
});

test("a model is named as its author names it, and called as the host does", () => {
  expect(model("openai", "openai/gpt-4o-mini")?.wireName).toBe("gpt-4o-mini-2024-07-18");
  expect(model("openrouter", "anthropic/claude-haiku-4-5")?.wireName).toBe("anthropic/claude-haiku-4.5");
  expect(model("fireworks", "openai/gpt-oss-120b")?.wireName).toBe("accounts/fireworks/models/gpt-oss-120b");
});

test("a price is found with the author in front, without, and with another one", () => {
  const mini = model("openai", "openai/gpt-4o-mini")!.price;
  const names = ["gpt-4o-mini", "openai/gpt-4o-mini", "reseller/gpt-4o-mini", "reseller/none-such"];
  expect(names.map((name) => knownPrice(name, NOW)?.input ?? null)).toEqual([
    mini.input,
    mini.input,
    mini.input,
    null,
  ]);
});

test("prices are those of the provider's page, the cache's among them", () => {
  expect(model("openai", "openai/gpt-4o-mini")?.price).toEqual({
    input: 150_000_000,
    output: 600_000_000,
    cacheRead: 75_000_000,
    cacheWrite: 150_000_000,
    cacheWrites: { "1h": 300_000_000 },
  } as never);
  expect(model("anthropic", "anthropic/claude-haiku-4-5")?.price).toEqual({
    input: 1_000_000_000,
    output: 5_000_000_000,
    cacheRead: 100_000_000,
    cacheWrite: 1_250_000_000,
    cacheWrites: { "1h": 2_000_000_000 },
  } as never);
  expect(model("gemini", "google/gemini-2.5-flash")?.price).toMatchObject({
    input: 300_000_000,
    audioInput: 1_000_000_000,
  } as never);
});

test("what a model takes and can do is known of it, and current models come first", () => {
  expect(model("anthropic", "anthropic/claude-haiku-4-5")?.abilities).toEqual({
    inputs: ["text", "image", "file"],
    tools: true,
    reasoning: true,
  });
  const found = foundHosts({
    env: { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" },
    simulatedUrl: "http://127.0.0.1:1",
    knownModels: (preset) => knownModels(preset, at("2026-03-13")),
  });
  const current = new Set(
    PRESETS.flatMap((preset) => knownModels(preset, at("2026-03-13")))
      .filter((one) => one.current)
      .map(({ id }) => id),
  );
  const order = found.models.slice(0, -1).map(({ id }) => current.has(id));
  expect(order.indexOf(false)).toBeGreaterThan(0);
  expect(order.lastIndexOf(true)).toBeLessThan(order.indexOf(false));
  expect(found.models[0]!.abilities?.inputs).toContain("text");
});

/** USD per million tokens of input, before and after the step; then 12-hour writes, where they are sold. */
const STEPPED: [
  host: string,
  id: string,
  context: number,
  step: number,
  input: number[],
  halfDay: number[] | null,
][] = [
  ["openai", "openai/gpt-5.4", 1_050_000, 272_000, [2.5, 5], null],
  ["openai", "openai/gpt-5.4-pro", 1_050_000, 272_000, [30, 60], null],
  ["openai", "openai/gpt-5.5", 1_000_000, 272_000, [5, 10], null],
  ["openai", "openai/gpt-5.5-pro", 1_000_000, 272_000, [30, 60], null],
  ["openai", "openai/gpt-5.6", 1_050_000, 272_000, [4, 8], [10, 20]],
  ["openai", "openai/gpt-5.6-sol", 1_050_000, 272_000, [4, 8], [10, 20]],
  ["openai", "openai/gpt-5.6-terra", 1_050_000, 272_000, [2, 4], [5, 10]],
  ["openai", "openai/gpt-5.6-luna", 1_050_000, 272_000, [0.2, 0.4], [0.5, 1]],
  ["openai", "openai/gpt-6-astra", 1_050_000, 272_000, [10, 20], [25, 50]],
  ["openai", "openai/gpt-6-sol", 1_050_000, 272_000, [2, 4], [5, 10]],
  ["openai", "openai/gpt-6-luna", 1_050_000, 272_000, [0.1, 0.2], [0.25, 0.5]],
  ["gemini", "google/gemini-2.5-pro", 1_048_576, 200_000, [1.25, 2.5], null],
  ["gemini", "google/gemini-3.1-pro-preview", 1_048_576, 200_000, [2, 4], null],
  // “Requests whose prompt reaches 200k tokens are billed at the higher rate” (xAI, models).
  ["xai", "x-ai/grok-4.3", 1_000_000, 199_999, [1.25, 2.5], null],
  ["xai", "x-ai/grok-4.5", 500_000, 199_999, [2, 4], null],
  ["xai", "x-ai/grok-4.6", 500_000, 199_999, [2, 4], null],
];

test.each(STEPPED)(
  "%s sells %s with its whole context, at a price that steps",
  (host, id, context, step, input, halfDay) => {
    const { contextLength, price } = model(host, id)!;
    const [before, after] = [ratesAt(price, step), ratesAt(price, step + 1)];
    expect([contextLength, price.above?.map(({ prompt }) => prompt)]).toEqual([context, [step]]);
    expect([before.input, after.input]).toEqual(input.map((usd) => usd * 1e9) as never);
    const writes = [before, after].map((rates) => writeRate(rates, "12h"));
    expect(writes).toEqual((halfDay?.map((usd) => usd * 1e9) ?? [null, null]) as never);
  },
);

test("a reseller whose list has no steps passes on those of the author, so no host is left out", () => {
  const { price, contextLength } = model("openrouter", "openai/gpt-5.4")!;
  expect(contextLength).toBe(1_050_000);
  expect([ratesAt(price, 272_000).output, ratesAt(price, 272_001).output]).toEqual([15e9, 22.5e9] as never);
  const { models } = foundHosts({
    env: { OPENAI_API_KEY: "k", OPENROUTER_API_KEY: "k" },
    simulatedUrl: "http://127.0.0.1:1",
    knownModels: (preset) => knownModels(preset, NOW),
  });
  const hosts = models.find(({ id }) => id === "openai/gpt-5.4")?.routes.map(({ host }) => host.id);
  expect(hosts).toEqual(["openai", "openrouter"]);
});

test("a step that no prompt reaches is left out", () => {
  expect(model("anthropic", "anthropic/claude-sonnet-4-5")).toMatchObject({ contextLength: 200_000 });
  expect(model("anthropic", "anthropic/claude-sonnet-4-5")!.price.above).toBeUndefined();
});

test("a price that changes on a day holds from that day", () => {
  const before = model("anthropic", "anthropic/claude-sonnet-4-6", at("2026-03-12"))!;
  const after = model("anthropic", "anthropic/claude-sonnet-4-6", at("2026-03-13"))!;
  expect([before, after].map(({ price }) => ratesAt(price, 300_000).input)).toEqual([6e9, 3e9] as never);
});
