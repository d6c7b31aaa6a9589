import { expect, test } from "bun:test";
import type { Quirks } from "../../../src/catalog/quirks.ts";
import type { GenerationRequest, HostBody } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";

/** OpenRouter's clients at hosts of Chat Completions that are not OpenRouter. */
const OPENAI: Quirks = { maxCompletionTokens: true };
const CACHED = { type: "ephemeral" };
const MESSAGES = [{ role: "user", content: "Hi" }];

function sent(more: object, quirks: Quirks) {
  const body = Buffer.from(JSON.stringify({ model: "test/model", messages: MESSAGES, ...more }));
  const request = SURFACES["chat.completions"].readRequest(body) as GenerationRequest;
  const target = {
    model: "host-model",
    publicModel: "test/model",
    stream: false,
    quirks,
    maxOutputTokens: null,
    defaultMaxOutputTokens: 100,
  };
  const { parts, omitted } = pairing("chat.completions", "chat.completions").hostBody(
    request,
    target,
  ) as HostBody;
  const { model: _, messages: __, ...json } = JSON.parse(Buffer.concat(parts).toString());
  return { json, omitted };
}

test.each([
  ["automatic caching, at OpenAI", { cache_control: CACHED }, OPENAI, {}, ["cache_control"]],
  [
    "automatic caching, at a host that refuses what it does not know",
    { cache_control: CACHED },
    { coreFieldsOnly: true },
    {},
    ["cache_control"],
  ],
  [
    "automatic caching, at a host that may know it",
    { cache_control: CACHED },
    {},
    { cache_control: CACHED },
    [],
  ],
  ["usage, anywhere", { usage: { include: true } }, {}, {}, ["usage"]],
  ["an effort, at OpenAI", { reasoning: { effort: "low" } }, OPENAI, { reasoning_effort: "low" }, []],
  ["no reasoning, at OpenAI", { reasoning: { enabled: false } }, OPENAI, { reasoning_effort: "none" }, []],
  ["a budget, at OpenAI", { reasoning: { max_tokens: 2_000 } }, OPENAI, {}, ["reasoning"]],
  [
    "an effort, for a model of OpenAI's that takes none",
    { reasoning: { effort: "low" } },
    { ...OPENAI, noReasoningEffort: true },
    {},
    ["reasoning"],
  ],
  ["include_reasoning, at OpenAI", { include_reasoning: true }, OPENAI, {}, ["include_reasoning"]],
  [
    "an effort that is named twice, at OpenAI",
    { reasoning: { effort: "low" }, reasoning_effort: "high" },
    OPENAI,
    { reasoning_effort: "high" },
    ["reasoning"],
  ],
  [
    "an effort, at a host that may know it",
    { reasoning: { effort: "low" }, include_reasoning: false },
    {},
    { reasoning: { effort: "low" }, include_reasoning: false },
    [],
  ],
])("%s", (_what, more, quirks, json, omitted) => {
  expect(sent(more, quirks)).toEqual({ json, omitted });
});
