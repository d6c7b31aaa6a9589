import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import type { GenerationRequest, HostBody } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { type Refusal, refused } from "../../../src/units/errors/refusal.ts";

/** Tools that hosts run themselves, and charge for next to the tokens. */
function hostBodyOf(client: SurfaceName, more: object, ownTools = false, host = client) {
  const conversation =
    client === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }], max_tokens: 9 };
  const body = JSON.stringify({ model: "a/b", ...conversation, ...more });
  const request = SURFACES[client].readRequest(Buffer.from(body));
  if (refused(request)) throw new Error(request.message);
  const quirks = ownTools ? { ownTools } : {};
  const target = { stream: false, model: "b", publicModel: "a/b", quirks, maxOutputTokens: null };
  return pairing(client, host).hostBody(request as GenerationRequest, {
    ...target,
    defaultMaxOutputTokens: 99,
  });
}

const sent = (body: HostBody | Refusal) => JSON.parse(Buffer.concat((body as HostBody).parts).toString());

const FUNCTION = { type: "function", name: "f", parameters: {} };

describe.each<[SurfaceName, object, string]>([
  ["messages", { tools: [{ type: "web_search_20250305", name: "web_search" }] }, "tools[0].type"],
  [
    "messages",
    { tools: [{ name: "f", input_schema: {} }, { type: "code_execution_20250825" }] },
    "tools[1].type",
  ],
  ["messages", { tools: [{ type: "advisor_20260301", name: "advisor", model: "costly" }] }, "tools[0].type"],
  ["responses", { tools: [{ type: "file_search", vector_store_ids: [] }] }, "tools[0].type"],
  ["responses", { tools: [{ type: "web_search" }, { type: "code_interpreter" }] }, "tools[1].type"],
  ["responses", { tools: [{ type: "image_generation" }] }, "tools[0].type"],
  ["responses", { tools: [{ type: "shell", environment: { type: "container_auto" } }] }, "tools[0].type"],
  ["chat.completions", { tools: [{ type: "browser_search" }] }, "tools[0].type"],
  ["chat.completions", { tools: [{ type: "web_search" }] }, "tools[0].type"],
  ["chat.completions", { web_search_options: {} }, "web_search_options"],
  ["chat.completions", { search_parameters: { mode: "on" } }, "search_parameters"],
  ["chat.completions", { plugins: [{ id: "web" }] }, "plugins"],
])("on %s, %j", (surface, more, param) => {
  test("is refused by its field", () => {
    const refusal = hostBodyOf(surface, more) as Refusal;
    expect([refusal.code, refusal.details.param]).toEqual(["invalid_request", param]);
  });

  test("passes where the operator says that fees need not be counted", () => {
    expect(sent(hostBodyOf(surface, more, true))).toMatchObject(more);
  });
});

test("the search that Codex offers in every request is left out, and reported", () => {
  const search = { type: "web_search", external_web_access: false };
  const body = hostBodyOf("responses", { tools: [FUNCTION, search] });
  expect((body as HostBody).omitted).toEqual(["tools[].web_search"]);
  expect(sent(body).tools).toEqual([FUNCTION]);
  expect(sent(hostBodyOf("responses", { tools: [search] })).tools).toBeUndefined();
  expect(sent(hostBodyOf("responses", { tools: [FUNCTION, search] }, true)).tools).toEqual([
    FUNCTION,
    search,
  ]);
});

test.each<[SurfaceName, object[]]>([
  [
    "responses",
    [FUNCTION, { type: "custom", name: "c" }, { type: "mcp", server_label: "m" }, { type: "local_shell" }],
  ],
  ["responses", [{ type: "shell", environment: { type: "local" } }, { type: "apply_patch" }]],
  [
    "messages",
    [
      { name: "web_search", input_schema: {} },
      { type: "bash_20250124", name: "bash" },
    ],
  ],
  ["messages", [{ type: "web_fetch_20250910", name: "web_fetch" }]],
  ["chat.completions", [{ type: "function", function: { name: "web_search" } }]],
])("%s: tools of the client's own, and those without a fee, pass: %j", (surface, tools) => {
  expect(sent(hostBodyOf(surface, { tools })).tools).toEqual(tools);
});

test("a host of another language cannot receive it either", () => {
  expect(
    refused(hostBodyOf("messages", { tools: [{ type: "web_search_20250305" }] }, false, "responses")),
  ).toBe(true);
});

test.each<[SurfaceName, object, string]>([
  ["chat.completions", { service_tier: "priority" }, "service_tier"],
  ["responses", { service_tier: "fast" }, "service_tier"],
  ["messages", { speed: "fast" }, "speed"],
  ["messages", { inference_geo: "us" }, "inference_geo"],
])("on %s, %j costs more than the model's price, and is refused by its field", (surface, more, param) => {
  const body = {
    model: "a/b",
    max_tokens: 9,
    input: "Hi",
    messages: [{ role: "user", content: "Hi" }],
    ...more,
  };
  const refusal = SURFACES[surface].readRequest(Buffer.from(JSON.stringify(body))) as Refusal;
  expect([refusal.code, refusal.details.param]).toEqual(["invalid_request", param]);
});

test("a request that may run anywhere asks for nothing", () => {
  expect(sent(hostBodyOf("messages", { inference_geo: "global" }))).toMatchObject({
    inference_geo: "global",
  });
  expect(
    sent(hostBodyOf("messages", { inference_geo: "global" }, false, "chat.completions")),
  ).not.toHaveProperty("inference_geo");
});
