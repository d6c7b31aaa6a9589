import { describe, expect, test } from "bun:test";
import { isModelId } from "../../src/catalog/model-name.ts";
import { foundHosts } from "../../src/config/found-hosts.ts";
import { knownModels } from "../../src/config/model-catalogue.ts";
import { PRESETS } from "../../src/config/presets.ts";
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
      for (const line of Object.values(price)) expect(Number.isSafeInteger(line) && line >= 0).toBe(true);
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

test("prices are those of the provider's page, the cache's among them", () => {
  expect(model("openai", "openai/gpt-4o-mini")?.price).toEqual({
    input: 150_000_000,
    output: 600_000_000,
    cacheRead: 75_000_000,
    cacheWrite: 150_000_000,
    cacheWrite1h: 300_000_000,
  } as never);
  expect(model("anthropic", "anthropic/claude-haiku-4-5")?.price).toEqual({
    input: 1_000_000_000,
    output: 5_000_000_000,
    cacheRead: 100_000_000,
    cacheWrite: 1_250_000_000,
    cacheWrite1h: 2_000_000_000,
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

test("where long prompts cost more, the context ends at the price's step", () => {
  expect(model("gemini", "google/gemini-2.5-pro")?.contextLength).toBe(200_000);
  expect(model("openrouter", "google/gemini-2.5-pro")?.contextLength).toBe(200_000);
});

test("a price that changes on a day holds from that day", () => {
  const before = model("anthropic", "anthropic/claude-sonnet-4-6", at("2026-03-12"))!;
  const after = model("anthropic", "anthropic/claude-sonnet-4-6", at("2026-03-13"))!;
  expect([before.contextLength, after.contextLength]).toEqual([200_000, 1_000_000]);
});
