import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import type { GenerationRequest, HostBody } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import type { Refusal } from "../../../src/units/errors/refusal.ts";

/** Nothing reaches a host that could cost more than what the gateway holds for the request. */
const CEILING: Record<SurfaceName, string> = {
  "chat.completions": "max_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
};

const bodyOf = (surface: SurfaceName, more: object): string =>
  JSON.stringify({
    model: "a/b",
    [CEILING[surface]]: 100,
    ...(surface === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] }),
    ...more,
  });

const read = (surface: SurfaceName, body: string) => SURFACES[surface].readRequest(Buffer.from(body));

function sent(surface: SurfaceName, more: object, host = surface) {
  const request = read(surface, bodyOf(surface, more)) as GenerationRequest;
  const target = {
    model: "m",
    publicModel: "a/b",
    stream: false,
    quirks: {},
    maxOutputTokens: null,
    defaultMaxOutputTokens: 100,
  };
  const { parts, omitted } = pairing(surface, host).hostBody(request, target) as HostBody;
  return { request, omitted, json: JSON.parse(Buffer.concat(parts).toString()) };
}

const OTHER_CEILINGS: Record<SurfaceName, readonly string[]> = {
  "chat.completions": ["max_output_tokens"],
  responses: ["max_tokens", "max_completion_tokens"],
  messages: ["max_completion_tokens", "max_output_tokens"],
};

describe.each([...SURFACE_NAMES])("%s", (surface) => {
  test.each([
    ...OTHER_CEILINGS[surface].map((name): [string, unknown] => [name, 30_000]),
    ["max_new_tokens", 30_000],
    ["n_predict", 30_000],
    ["generation_config", { max_output_tokens: 30_000 }],
    ["extra_body", { max_tokens: 30_000 }],
    ["best_of", 20],
    ["num_return_sequences", 20],
    ["use_beam_search", true],
    ["prediction", { type: "content", content: "a long text" }],
    ...(surface === "chat.completions" ? [] : [["n", 5] as [string, unknown]]),
  ])("%s, which is not held, is left out and named", (name, value) => {
    const { json, omitted, request } = sent(surface, { [name]: value });
    expect(json).not.toHaveProperty(name);
    expect(json[CEILING[surface]]).toBe(100);
    expect(omitted).toEqual([name]);
    expect([request.maxOutputTokens, request.choices]).toEqual([100, 1]);
  });

  test("one that is null is left out without a word; Gemini's own settings pass", () => {
    expect(sent(surface, { best_of: null }).omitted).toEqual([]);
    const google = { extra_body: { google: { thinking_config: {} } } };
    expect(sent(surface, google)).toMatchObject({ omitted: [], json: google });
  });

  test.each(["best_of", "prediction", "service_tier", "extra_body"])(
    "%s may not be given twice or be written with an escape, because hosts may read another one",
    (name) => {
      const body = bodyOf(surface, {});
      for (const twice of [
        body.replace("{", `{"${name}":null,"${name}":20,`),
        body.replace("{", `{"${name.replace("e", "\\u0065")}":20,`),
      ])
        expect((read(surface, twice) as Refusal).details?.param).toBe(name);
    },
  );

  test.each([
    ["service_tier", "priority"],
    ["service_tier", "PRIORITY"],
    ["service_tier", "Fast"],
    ["service_tier", "performance"],
    ["service_tier", "a tier of tomorrow"],
    ["service_tier", ["priority"]],
    ["service_tier", ""],
    ["speed", "FAST"],
    ["speed", 2],
    ["inference_geo", "US"],
    ["inference_geo", "eu"],
    ["prompt_cache_retention", "7d"],
  ])("%s: %j may cost more than the price, and is refused by its field", (name, value) => {
    const refusal = read(surface, bodyOf(surface, { [name]: value })) as Refusal;
    expect([refusal.code, refusal.details?.param]).toEqual(["invalid_request", name]);
  });

  test.each([
    ["service_tier", "auto"],
    ["service_tier", "default"],
    ["service_tier", "flex"],
    ["service_tier", "Standard_Only"],
    ["service_tier", null],
    ["speed", "standard"],
    ["inference_geo", "global"],
    ["prompt_cache_retention", "24h"],
    ["prompt_cache_retention", "in_memory"],
  ])("%s: %j costs the price at most, and passes", (name, value) => {
    expect(sent(surface, { [name]: value }).json).toMatchObject({ [name]: value });
  });
});

/** A part of the prompt that its host is asked to cache. */
const marked = (mark: object) => ({ role: "user", content: [{ type: "text", text: "Hi", ...mark }] });
const call = { type: "tool_use", id: "t", name: "write", input: { cache_control: { ttl: "7d" } } };

describe("a cache that is kept longer costs more", () => {
  test.each<[SurfaceName, object, string]>([
    ["responses", { prompt_cache_options: { ttl: "13h" } }, "prompt_cache_options.ttl"],
    ["chat.completions", { prompt_cache_options: { ttl: "24h" } }, "prompt_cache_options.ttl"],
    [
      "responses",
      { input: [marked({ prompt_cache_breakpoint: { ttl: "1d" } })] },
      "input[0].content[0].prompt_cache_breakpoint.ttl",
    ],
    [
      "messages",
      { messages: [marked({ cache_control: { type: "ephemeral", ttl: "24h" } })] },
      "messages[0].content[0].cache_control.ttl",
    ],
    ["messages", { cache_control: { type: "ephemeral", ttl: 3_600 } }, "cache_control.ttl"],
    ["chat.completions", { tools: [{ cache_control: { ttl: "" } }] }, "tools[0].cache_control.ttl"],
  ])("%s: %j has no price, and is refused by its field", (surface, more, param) => {
    const refusal = read(surface, bodyOf(surface, more)) as Refusal;
    expect([refusal.code, refusal.details?.param]).toEqual(["invalid_request", param]);
    const hidden = bodyOf(surface, more).replaceAll('"ttl"', '"t\\u0074l"');
    expect((read(surface, hidden) as Refusal).details?.param).toBe(param);
  });

  test.each<[SurfaceName, object]>([
    ["responses", { prompt_cache_options: { mode: "explicit", ttl: "30m" } }],
    ["responses", { prompt_cache_options: { ttl: null } }],
    ["messages", { system: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral", ttl: "5m" } }] }],
    // Data that a tool is called with, or a schema of it, is no mark.
    ["messages", { messages: [{ role: "assistant", content: [call] }] }],
    ["messages", { tools: [{ name: "t", input_schema: { cache_control: { ttl: "7d" } } }] }],
    ["chat.completions", { messages: [{ role: "user", content: '{"cache_control":{"ttl":"7d"}}' }] }],
  ])("%s: %j passes", (surface, more) => {
    expect(sent(surface, more).json).toMatchObject(more);
  });
});

test("what a request names is read with the first field that names it", () => {
  const input = [
    marked({ prompt_cache_breakpoint: { ttl: "12h" } }),
    marked({ prompt_cache_breakpoint: {} }),
  ];
  const { request } = sent("responses", { input, prompt_cache_options: { ttl: "30m" } });
  expect(request.promptRetentions).toEqual({
    "30m": "prompt_cache_options.ttl",
    "12h": "input[0].content[0].prompt_cache_breakpoint.ttl",
  });
  expect(sent("responses", {}).request.promptRetentions).toEqual({});
});

test("chat: both of its own ceilings pass, and the larger one is held", () => {
  const { json, request } = sent("chat.completions", { max_completion_tokens: 30_000 });
  expect(json).toMatchObject({ max_tokens: 100, max_completion_tokens: 30_000 });
  expect(request.maxOutputTokens).toBe(30_000);
});
