import { expect, test } from "bun:test";
import type { Model } from "../../src/catalog/catalog.ts";
import { ShortNames } from "../../src/catalog/short-names.ts";

const IDS = [
  "anthropic/claude-opus-4.8",
  "anthropic/claude-sonnet-5",
  "anthropic/claude-haiku-4-5",
  "mistralai/mistral-large-2411",
  "openai/gpt-4o",
  "azure/gpt-4o",
  "openai/gpt-4o-mini-2024-07-18",
  "openai/o3-2025-04-16",
  "openai/o3-2025-12-16",
  "meta-llama/Llama-3.3-70B",
  "sim/echo",
];

const modelOf = (id: string, aliases: readonly string[] = []): Model => ({
  id,
  name: id,
  aliases,
  contextLength: 1_000,
  maxOutputTokens: 100,
  price: null,
  routes: [],
});

const names = new ShortNames(
  IDS.map((id) => modelOf(id, id === "sim/echo" ? ["parrot", "gpt-4o"] : [])),
  ["fast"],
);

test.each<[name: string, ids: readonly string[]]>([
  ["claude-sonnet-5", ["anthropic/claude-sonnet-5"]],
  ["claude-sonnet-5[1m]", ["anthropic/claude-sonnet-5"]],
  ["claude-sonnet-5-20260101", ["anthropic/claude-sonnet-5"]],
  ["claude-sonnet-5@20260101", ["anthropic/claude-sonnet-5"]],
  ["anthropic/claude-sonnet-5-20260101", ["anthropic/claude-sonnet-5"]],
  ["claude-haiku-4-5-20251001[1m]", ["anthropic/claude-haiku-4-5"]],
  ["claude-opus-4-8", ["anthropic/claude-opus-4.8"]],
  ["llama-3.3-70b", ["meta-llama/Llama-3.3-70B"]],
  // Four digits may be a version as well as a date.
  ["mistral-large", []],
  ["gpt-4o-mini", ["openai/gpt-4o-mini-2024-07-18"]],
  ["gpt-4o-mini-2024-07-18", ["openai/gpt-4o-mini-2024-07-18"]],
  // Another version of it is another model.
  ["gpt-4o-mini-2025-01-01", []],
  ["o3", ["openai/o3-2025-04-16", "openai/o3-2025-12-16"]],
  ["o3-2025-12-16", ["openai/o3-2025-12-16"]],
  // An alias goes before two models that are called the same.
  ["gpt-4o", ["sim/echo"]],
  ["Parrot", ["sim/echo"]],
  ["auto:fast", ["gateway/auto:fast"]],
  ["auto:free", ["gateway/auto:free"]],
  ["auto:slow", []],
  ["openai/claude-sonnet-5", []],
  ["claude-sonnet", []],
  ["claude-sonnet-5-turbo", []],
  ["", []],
  ["x".repeat(100_000), []],
])("%p means %p", (name, ids) => {
  expect(names.idsOf(name)).toEqual(ids);
});

test("a name that several models have means all of them", () => {
  const both = new ShortNames(
    ["openai/gpt-4o", "azure/gpt-4o"].map((id) => modelOf(id)),
    [],
  );
  expect(both.idsOf("gpt-4o")).toEqual(["openai/gpt-4o", "azure/gpt-4o"]);
});
