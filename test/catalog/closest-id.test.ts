import { describe, expect, test } from "bun:test";
import type { Host, Model } from "../../src/catalog/catalog.ts";
import { closestId, nameableIds, suggestion } from "../../src/catalog/closest-id.ts";

const IDS = [
  "openai/gpt-4o",
  "openai/gpt-4o-mini",
  "openai/gpt-5.5",
  "anthropic/claude-haiku-4-5",
  "anthropic/claude-opus-5",
  "meta-llama/llama-3.3-70b-instruct",
  "groq/llama-3.3-70b-instruct",
  "sim/echo",
];

describe("the closest published id", () => {
  test.each([
    ["the author was left out", "gpt-4o", "openai/gpt-4o"],
    ["another author", "azure/gpt-4o-mini", "openai/gpt-4o-mini"],
    ["the named author is preferred", "groq/llama-3.3-70b-instruct", "groq/llama-3.3-70b-instruct"],
    ["dots for dashes", "claude-haiku-4.5", "anthropic/claude-haiku-4-5"],
    ["capitals", "OpenAI/GPT-4o", "openai/gpt-4o"],
    ["a dated name", "gpt-4o-2024-08-06", "openai/gpt-4o"],
    ["a dated name of the longer model", "gpt-4o-mini-2024-07-18", "openai/gpt-4o-mini"],
    ["a dated name of another provider", "claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5"],
    ["a slip of the pen", "openai/gtp-4o", "openai/gpt-4o"],
    ["a letter too few", "antropic/claude-opus", "anthropic/claude-opus-5"],
    ["a version that is not there", "anthropic/claude-opus-7", "anthropic/claude-opus-5"],
    ["only the family is right", "claude-instant-v1", "anthropic/claude-haiku-4-5"],
    ["nothing is right", "zzz", "openai/gpt-4o"],
    ["empty", "", "openai/gpt-4o"],
    ["the simulated one", "echo", "sim/echo"],
  ])("%s: %s → %s", (_what, name, id) => {
    expect(closestId(name, IDS)).toBe(id);
  });

  test.each([
    ["a slip in the variant", "gateway/auto:fsat", "gateway/auto:fast"],
    ["the variant alone", "auto:free", "gateway/auto:free"],
    ["no variant", "gateway/auto", "gateway/auto:fast"],
    ["another separator", "gateway/auto-free", "gateway/auto:free"],
    ["a variant that is not there", "gateway/auto:cheapest-of-all", "gateway/auto:fast"],
    ["a model is still a model", "gpt-4o", "openai/gpt-4o"],
  ])("%s: %s → %s", (_what, name, id) => {
    const models = new Map(IDS.map((one) => [one, {} as Model]));
    const auto = new Map([
      ["fast", ["openai/gpt-4o"]],
      ["free", ["sim/echo"]],
    ]);
    expect(closestId(name, nameableIds({ models, auto }))).toBe(id);
  });

  test("an empty catalog has none", () => {
    expect(closestId("gpt-4o", [])).toBeNull();
  });

  test("a megabyte for a name costs no more than a long name does", () => {
    const ids = Array.from({ length: 2_000 }, (_, index) => `author${index}/${"a".repeat(60)}${index}`);
    expect(closestId("a".repeat(1_000_000), ids)).toStartWith("author");
  });
});

describe("the sentence for a model that is not there", () => {
  const served = (ids: readonly string[], ...hosts: string[]) => ({
    models: new Map(ids.map((one) => [one, {} as Model])),
    auto: new Map(),
    hosts: new Map(hosts.map((one) => [one, {} as Host])),
  });
  const BASE = "http://localhost:8080";
  test.each<[what: string, ids: readonly string[], hosts: string[], says: string]>([
    [
      "names the id and the catalog's address",
      IDS,
      ["sim", "openai"],
      "Did you mean `openai/gpt-4o`? The catalog is at http://localhost:8080/v1/catalog.",
    ],
    ["has no id to name", [], ["openai"], "The catalog is at http://localhost:8080/v1/catalog."],
    [
      "says that nothing is set up yet",
      ["sim/echo"],
      ["sim"],
      "Did you mean `sim/echo`? The catalog is at http://localhost:8080/v1/catalog. No provider is set up here yet: its operator puts a provider's key, such as OPENAI_API_KEY or ANTHROPIC_API_KEY, into the environment and restarts the gateway.",
    ],
  ])("%s", (_, ids, hosts, says) => {
    expect(suggestion("gpt-4o", served(ids, ...hosts), BASE)).toBe(says);
  });
});
