import { expect, test } from "bun:test";
import { Draft } from "../../../src/cli/moving/draft.ts";
import { KnownModels } from "../../../src/cli/moving/known-models.ts";
import { readLiteLLM } from "../../../src/cli/moving/litellm.ts";
import { Secrets } from "../../../src/cli/moving/secrets.ts";
import { epochMs } from "../../../src/units/clock.ts";

/** What becomes of a configuration of LiteLLM's, before anything is written. */
function draftOf(models: string, more = "") {
  const draft = new Draft(new KnownModels(epochMs(Date.UTC(2026, 10, 1))), new Secrets());
  readLiteLLM(`model_list:\n${models}\n${more}`, "config.yaml", draft);
  return { draft, rows: JSON.parse(JSON.stringify(draft.rows())) };
}

const model = (name: string, params: string) =>
  `  - { model_name: ${name}, litellm_params: { api_key: os.environ/KEY, ${params} } }`;
const GPT = model("gpt-4o", "model: openai/gpt-4o");
const MINI = model("gpt-4o-mini", "model: openai/gpt-4o-mini");

test("aliases are carried where they are names here, and of a model that is carried; others are reported", () => {
  const aliases = '{ best: gpt-4o, "the best!": gpt-4o, lost: gpt-3, gpt-4o-mini: gpt-4o }';
  const { draft, rows } = draftOf(`${GPT}\n${MINI}`, `router_settings: { model_group_alias: ${aliases} }`);
  expect(rows.models[0].aliases).toContain("best");
  expect(JSON.stringify(rows)).not.toContain("the best!");
  expect(draft.leftOut.map((line) => line.replace("router_settings.model_group_alias.", ""))).toEqual([
    "the best!: a name here has letters, digits and ._:@+/- only",
    "lost: gpt-3 is not carried",
    "gpt-4o-mini: gpt-4o-mini is the name of a model",
  ]);
});

test("fallbacks become an automatic route that clients name; those of a model that is not carried are reported", () => {
  const fallbacks = "fallbacks: [{ gpt-4o: [gpt-4o-mini] }, { gpt-3: [gpt-4o] }]";
  const { draft, rows } = draftOf(`${GPT}\n${MINI}`, `router_settings: { ${fallbacks} }`);
  expect(Object.values(rows.auto)).toEqual([["openai/gpt-4o", "openai/gpt-4o-mini"]]);
  expect(draft.leftOut).toEqual(["router_settings.fallbacks.gpt-3: gpt-3 is not carried"]);
  expect(draft.notes.join("\n")).toContain("no other model takes over by itself");
});

test("a rate or a number of requests of nothing is none, next to a weight", () => {
  const second = "api_key: os.environ/SECOND";
  const { rows } = draftOf(
    `${model("gpt-4o", "model: openai/gpt-4o, weight: 2, rpm: 0, tpm: 0, max_parallel_requests: 0")}
  - { model_name: gpt-4o, litellm_params: { model: openai/gpt-4o, ${second}, weight: 3 } }`,
  );
  expect(rows.hosts.map(({ keys }: { keys: unknown }) => keys)).toEqual([
    [
      expect.objectContaining({ env: "SECOND", weight: 3 }),
      expect.objectContaining({ env: "KEY", weight: 2 }),
    ],
  ]);
  expect(JSON.stringify(rows.hosts)).not.toMatch(/rpm|tpm|max_concurrent/);
});

test("a weight of nothing is none: such a key does not share with those that have one", () => {
  const second =
    "{ model_name: gpt-4o, litellm_params: { model: openai/gpt-4o, api_key: os.environ/B, weight: 3 } }";
  const { rows } = draftOf(`${model("gpt-4o", "model: openai/gpt-4o, weight: 0")}\n  - ${second}`);
  expect(rows.hosts.map(({ id, keys }: { id: string; keys?: object[] }) => [id, keys])).toEqual([
    ["openai", undefined],
    ["openai-2", undefined],
  ]);
});

test("Azure's deployments are sent max_completion_tokens, as its newer models want it", () => {
  const azure = "model: azure/mine, api_base: https://eu.openai.azure.com";
  const { rows } = draftOf(
    `  - { model_name: gpt-4o, litellm_params: { ${azure} }, model_info: { base_model: azure/gpt-4o } }`,
  );
  expect(rows.hosts[0]).toMatchObject({ id: "azure", quirks: { max_completion_tokens: true } });
});
