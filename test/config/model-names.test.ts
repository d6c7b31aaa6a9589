import { expect, test } from "bun:test";
import { knownModels } from "../../src/config/model-catalogue.ts";
import { PRESETS } from "../../src/config/provider-presets.ts";
import { epochMs } from "../../src/units/clock.ts";

const AT = epochMs(Date.UTC(2026, 10, 28));
const names = new Map<string, string>();
for (const preset of PRESETS) {
  for (const { id, name } of knownModels(preset, AT)) if (!names.has(id)) names.set(id, name);
}

test.each([
  ["openai/gpt-5.6-sol", "GPT-5.6 Sol"],
  ["openai/gpt-4.1", "GPT-4.1"],
  ["openai/o3", "o3"],
  ["anthropic/claude-opus-4-8", "Claude Opus 4.8"],
  ["anthropic/claude-haiku-4-5", "Claude Haiku 4.5"],
  ["anthropic/claude-3-5-sonnet", "Claude Sonnet 3.5"],
  ["google/gemini-2.5-flash", "Gemini 2.5 Flash"],
  ["qwen/qwen-max", "Qwen-Max"],
  ["x-ai/grok-4-fast", "x-ai/grok-4-fast"],
])("%s is called %s, as its vendor does, or by its id", (id, name) => {
  expect(names.get(id)).toBe(name);
});

test("no model is called by a setting of it, and no two of one author's are called the same", () => {
  expect([...names.values()].filter((name) => /thinking\)|\(free|high$/i.test(name))).toEqual([]);
  const shown = [...names].map(([id, name]) => `${id.split("/")[0]} ${name}`);
  expect(shown.filter((one, at) => shown.indexOf(one) !== at)).toEqual(["openai GPT-5.6 Sol"]);
});
