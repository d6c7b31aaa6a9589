import { expect, test } from "bun:test";
import type { Config } from "../../src/config/config.ts";
import { foundHosts } from "../../src/config/hosts-from-environment.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { knownModels } from "../../src/config/model-catalogue.ts";
import { formatProblems } from "../../src/config/problem.ts";
import type { EpochMs } from "../../src/units/clock.ts";

/** The environment has a key of Anthropic, whose models the packages know as of this day. */
const env = { ANTHROPIC_API_KEY: "k" };
const found = foundHosts({
  env,
  simulatedUrl: "http://127.0.0.1:1",
  knownModels: (preset) => knownModels(preset, Date.parse("2026-11-21") as EpochMs),
});
const read = (text: string): Config | string => {
  const config = loadConfig({ file: "gateway.yaml", text, env, found });
  return Array.isArray(config) ? formatProblems(config) : config;
};
const row = (id: string, input: number, more = "") => `
  - id: ${id}
    context_length: 1000000
    max_output_tokens: 128000
    price: { input: ${input}, output: 15 }
    routes: [{ host: anthropic, model: m }]
${more}`;
const pricesIn = (config: Config) =>
  new Map([...config.catalog.models].map(([id, { price }]) => [id, (price?.input ?? 0) / 1e9]));

const OFFERED = pricesIn(read("") as Config);

test("a new model is added to all that the environment offers", () => {
  const prices = pricesIn(read(`add_models:${row("anthropic/claude-sonnet-5-5", 3)}`) as Config);
  expect(prices).toEqual(new Map([...OFFERED, ["anthropic/claude-sonnet-5-5", 3]]));
});

test("one with the id of a model that is offered takes its place", () => {
  const prices = pricesIn(read(`add_models:${row("anthropic/claude-haiku-4-5", 7)}`) as Config);
  expect([...prices.keys()]).toEqual([...OFFERED.keys()]);
  expect([OFFERED.get("anthropic/claude-haiku-4-5"), prices.get("anthropic/claude-haiku-4-5")]).toEqual([
    1, 7,
  ]);
});

test("equal prices have the same version, and another one has another", () => {
  const versionOf = (text: string) => (read(text) as Config).catalog.priceVersion;
  const added = versionOf(`add_models:${row("a/b", 3)}`);
  expect(versionOf(`add_models:${row("a/b", 3)}`)).toBe(added);
  expect(new Set([versionOf(""), added, versionOf(`add_models:${row("a/b", 3.1)}`)]).size).toBe(3);
});

test.each([
  [
    "next to models",
    `models:${row("a/b", 1)}add_models:${row("a/c", 1)}`,
    "add_models: found `add_models` next to `models`, expected one list: `models` has all that are served",
  ],
  [
    "twice the same id",
    `add_models:${row("a/b", 1)}${row("a/b", 2)}`,
    'add_models[1].id: found "a/b", expected an id that no other model has',
  ],
  [
    "a host that is not there",
    `add_models:${row("a/b", 1).replace("host: anthropic", "host: openai")}`,
    'add_models[0].routes[0].host: found "openai", expected the id of a host',
  ],
  [
    "an alias that is a model's id",
    `add_models:${row("a/b", 1, "    aliases: [anthropic/claude-haiku-4-5]")}`,
    'add_models[0].aliases[0]: found "anthropic/claude-haiku-4-5", expected a name that is not the id of a model',
  ],
  [
    "hosts without models",
    "hosts: [{ id: a, base_url: http://a.test/v1, speaks: [messages] }]",
    "`hosts` without `models`",
  ],
])("%s is refused", (_, text, message) => {
  expect(read(text)).toContain(message);
});
