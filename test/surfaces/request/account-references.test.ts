import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import type { Quirks } from "../../../src/catalog/quirks.ts";
import type { HostBody } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { type Refusal, refused } from "../../../src/units/errors/refusal.ts";

const conversation = (client: SurfaceName) =>
  client === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }], max_tokens: 9 };

/** The body as JSON text, so that it may be spelt in any way. */
function send(client: SurfaceName, host: SurfaceName, body: string, quirks: Quirks = {}): HostBody | Refusal {
  const request = SURFACES[client].readRequest(Buffer.from(body));
  if (refused(request)) return request;
  const target = { stream: false, model: "b", publicModel: "a/b", quirks, maxOutputTokens: null };
  return pairing(client, host).hostBody(request, { ...target, defaultMaxOutputTokens: 99 });
}

const refusalOf = (client: SurfaceName, more: object, quirks: Quirks = {}, host = client) =>
  send(client, host, JSON.stringify({ model: "a/b", ...conversation(client), ...more }), quirks);

const sent = (answer: HostBody | Refusal) => {
  if (refused(answer)) throw new Error(answer.message);
  return JSON.parse(Buffer.concat(answer.parts).toString());
};

const user = (...content: object[]) => ({ messages: [{ role: "user", content }] });
const result = (...content: object[]) => user({ type: "tool_result", tool_use_id: "t", content });
const items = (...input: object[]) => ({ input });
const inputs = (...content: object[]) => items({ role: "user", content });
const tool = (one: object) => ({ tools: [one] });
const PAID = { ownTools: true };

const REFERENCES: [client: SurfaceName, more: object, param: string, quirks?: Quirks][] = [
  ["chat.completions", user({ type: "file", file: { file_id: "f" } }), "messages[0].content[0].file.file_id"],
  ["chat.completions", user({ type: "file", file_id: "f" }), "messages[0].content[0].file_id"],
  [
    "chat.completions",
    user({ type: "text", text: "a" }, { type: "image_url", image_url: { url: "file:///etc/passwd" } }),
    "messages[0].content[1].image_url.url",
  ],
  [
    "chat.completions",
    user({ type: "image_url", image_url: "gs://bucket/a.png" }),
    "messages[0].content[0].image_url",
  ],
  [
    "chat.completions",
    user({ type: "video_url", video_url: { url: "ms://f" } }),
    "messages[0].content[0].video_url.url",
  ],
  ["chat.completions", { messages: [{ role: "assistant", audio: { id: "a" } }] }, "messages[0].audio.id"],
  ["chat.completions", { preset: "p" }, "preset"],
  ["chat.completions", { prompt_id: "p" }, "prompt_id"],
  ["chat.completions", { data_sources: [{ type: "azure_search" }] }, "data_sources"],
  [
    "chat.completions",
    { extra_body: { google: { cached_content: "cachedContents/1" } } },
    "extra_body.google.cached_content",
  ],
  ["responses", { prompt: { id: "pmpt_1" } }, "prompt"],
  ["responses", { prompt: { id: "pmpt_1" }, input: undefined }, "prompt"],
  ["responses", { previous_response_id: "resp_1" }, "previous_response_id"],
  ["responses", { conversation: "conv_1" }, "conversation"],
  ["responses", items({ type: "item_reference", id: "msg_1" }), "input[0]"],
  ["responses", items({ role: "user", content: "a" }, { id: "msg_1" }), "input[1].id"],
  ["responses", items({ type: "message", id: "msg_1", status: "completed" }), "input[0].id"],
  ["responses", items({ type: "image_generation_call", id: "ig_1" }), "input[0].id"],
  ["responses", inputs({ type: "input_file", file_id: "f" }), "input[0].content[0].file_id"],
  ["responses", inputs({ type: "input_image", file_id: "f" }), "input[0].content[0].file_id"],
  ["responses", inputs({ type: "input_file", file_url: "s3://a/b" }), "input[0].content[0].file_url"],
  [
    "responses",
    items({ type: "function_call_output", call_id: "c", output: [{ type: "input_file", file_id: "f" }] }),
    "input[0].output[0].file_id",
  ],
  [
    "responses",
    items({
      type: "computer_call_output",
      call_id: "c",
      output: { type: "computer_screenshot", file_id: "f" },
    }),
    "input[0].output.file_id",
  ],
  ["responses", tool({ type: "code_interpreter", container: "cntr_1" }), "tools[0].container", PAID],
  [
    "responses",
    tool({ type: "code_interpreter", container: { type: "auto", file_ids: ["f"] } }),
    "tools[0].container.file_ids",
    PAID,
  ],
  ["responses", tool({ type: "file_search", vector_store_ids: ["v"] }), "tools[0].vector_store_ids", PAID],
  [
    "responses",
    tool({ type: "image_generation", input_image_mask: { file_id: "f" } }),
    "tools[0].input_image_mask.file_id",
    PAID,
  ],
  [
    "responses",
    tool({ type: "shell", environment: { type: "container_reference", container_id: "c" } }),
    "tools[0].environment.container_id",
    PAID,
  ],
  ["messages", { container: "c" }, "container"],
  ["messages", { container: { skills: [{ type: "anthropic", skill_id: "pdf" }] } }, "container"],
  ["messages", { user_profile_id: "p" }, "user_profile_id"],
  ["messages", { workspace_id: "w" }, "workspace_id"],
  ["messages", { thread: { id: "t" } }, "thread"],
  ["messages", user({ type: "container_upload", file_id: "f" }), "messages[0].content[0].file_id"],
  [
    "messages",
    user({ type: "document", source: { type: "file", file_id: "f" } }),
    "messages[0].content[0].source.file_id",
  ],
  [
    "messages",
    result({ type: "image", source: { type: "file", file_id: "f" } }),
    "messages[0].content[0].content[0].source.file_id",
  ],
  [
    "messages",
    user({ type: "image", source: { type: "url", url: "file:///etc/passwd" } }),
    "messages[0].content[0].source.url",
  ],
];

describe.each(REFERENCES)("on %s, %j", (client, more, param, quirks = {}) => {
  test("is refused by its field, whichever language the host speaks", () => {
    const own = refusalOf(client, more, quirks);
    expect(refused(own) && [own.code, own.details.param]).toEqual(["invalid_request", param]);
    for (const host of SURFACE_NAMES) {
      const answer = refusalOf(client, more, quirks, host);
      expect([host, refused(answer) && answer.code]).toEqual([host, "invalid_request"]);
    }
  });
});

const NEVER = new Set(["previous_response_id", "conversation", "input[0]", "thread"]);
test.each(REFERENCES.filter(([, , param]) => !NEVER.has(param) || param === "input[0].id"))(
  "on %s, %j passes where the operator shares the account",
  (client, more, _param, quirks = {}) => {
    const passed = sent(refusalOf(client, more, { ...quirks, accountReferences: true }));
    expect(passed).toMatchObject(JSON.parse(JSON.stringify(more)));
  },
);

const OWN_WORDS: [client: SurfaceName, more: object][] = [
  [
    "chat.completions",
    {
      messages: [
        {
          role: "assistant",
          tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"file_id":"f"}' } }],
        },
        { role: "tool", tool_call_id: "c", content: '{"file_id":"f","container":"c"}' },
      ],
      tools: [
        {
          type: "function",
          function: { name: "f", parameters: { properties: { file_id: { type: "string" } } } },
        },
      ],
      metadata: { file_id: "f" },
    },
  ],
  ["chat.completions", user({ type: "image_url", image_url: { url: "https://a.example/a.png" } })],
  ["chat.completions", user({ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } })],
  ["chat.completions", user({ type: "text", text: "file:///etc/passwd and file_id" })],
  ["responses", items({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" })],
  [
    "responses",
    items({ type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "a" }] }),
  ],
  ["responses", items({ type: "web_search_call", id: "ws_1", status: "completed" })],
  [
    "responses",
    inputs({ type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" }),
  ],
  [
    "messages",
    {
      messages: [
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "t", name: "f", input: { file_id: "f", container: "c" } }],
        },
        ...result({ type: "text", text: "x" }).messages,
      ],
    },
  ],
  [
    "messages",
    {
      container: null,
      ...user({ type: "document", source: { type: "text", media_type: "text/plain", data: "file_id" } }),
    },
  ],
];

test.each(OWN_WORDS)("on %s, %j is the client's own and passes", (client, more) => {
  expect(sent(refusalOf(client, more))).toMatchObject(more);
});

test("a member that refers is not hidden by a second one of its name, or by escapes", () => {
  const body = (members: string) =>
    `{"model":"a/b","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],${members}}`;
  for (const members of ['"container":"c","container":null', '"cont\\u0061iner":"c"']) {
    const answer = send("messages", "messages", body(members));
    expect(refused(answer) && answer.details.param).toBe("container");
  }
});

const UNSAFE = [
  "api_base",
  "base_url",
  "api_key",
  "api_version",
  "azure_ad_token",
  "aws_sts_endpoint",
  "vertex_credentials",
  "sagemaker_base_url",
  "s3_endpoint_url",
  "deployment_url",
  "langfuse_host",
  "langfuse_public_key",
  "posthog_api_url",
  "user_config",
  "custom_llm_provider",
  "headers",
  "extra_headers",
  "mock_response",
  "litellm_metadata",
  "chat_template",
  "logits_processors",
  "custom_logit_processor",
  "kv_transfer_params",
  "bootstrap_host",
  "bootstrap_port",
  "lora_path",
  "mm_processor_kwargs",
  "priority",
  "id_slot",
  "keep_alive",
];

describe.each(SURFACE_NAMES)("on %s", (client) => {
  test.each(UNSAFE)("%s is left out and named, for hosts of every language", (name) => {
    for (const host of SURFACE_NAMES) {
      const answer = refusalOf(client, { [name]: "http://evil.example" }, {}, host);
      expect(sent(answer)[name]).toBeUndefined();
      expect((answer as HostBody).omitted).toEqual([name]);
    }
  });

  test("what stands next to it arrives as it was", () => {
    const rest = { temperature: 1, made_up: [1, { a: "b" }], min_p: 0.1 };
    const answer = refusalOf(client, { api_key: "k", ...rest, base_url: "u" });
    expect(sent(answer)).toMatchObject(rest);
    expect((answer as HostBody).omitted).toEqual(["api_key", "base_url"]);
  });

  test("it is not hidden by escapes or by a second one of its name", () => {
    const body = JSON.stringify({ model: "a/b", ...conversation(client) }).slice(0, -1);
    for (const members of [
      '"api\\u005fbase":"u"',
      '"api_base":"u","a":1,"api_base":"v"',
      '"api_base":"u","api\\u005fbase":"v"',
    ]) {
      const answer = send(client, client, `${body},${members}}`);
      expect(Buffer.concat((answer as HostBody).parts).toString()).not.toContain("base");
      expect((answer as HostBody).omitted).toEqual(["api_base"]);
    }
  });

  test("a host that gets only known fields gets no others", () => {
    const answer = refusalOf(
      client,
      { temperature: 1, made_up: 1, "x\\u0061": 2, nothing: null },
      { knownFieldsOnly: true },
    );
    expect(Object.keys(sent(answer)).sort()).not.toContain("made_up");
    expect((answer as HostBody).omitted).toEqual(["made_up", "x\\u0061"]);
    expect(sent(answer)).toMatchObject({ temperature: 1 });
    expect(sent(answer)).not.toHaveProperty("nothing");
  });
});

test.each<[settings: unknown, passes: boolean]>([
  [{ enable_thinking: false }, true],
  [{ thinking: true, reasoning_effort: "low" }, true],
  [{}, true],
  [{ enable_thinking: false, chat_template: "{{ x }}" }, false],
  [{ tokenize: true }, false],
  [{ continue_final_message: true }, false],
  [{ documents: [{ text: "x" }] }, false],
  [{ deep: { chat_template: "x" } }, false],
  ["{{ x }}", false],
])("chat_template_kwargs %j", (settings, passes) => {
  for (const name of ["chat_template_kwargs", "chat_template_args"]) {
    const answer = refusalOf("chat.completions", { [name]: settings });
    expect(sent(answer)[name]).toEqual(passes ? settings : undefined);
    expect((answer as HostBody).omitted).toEqual(passes ? [] : [name]);
  }
});

test("labels that LiteLLM takes for addresses are left out, others stay", () => {
  const labels = (metadata: object) => refusalOf("chat.completions", { metadata });
  expect((labels({ langfuse_host: "http://evil.example" }) as HostBody).omitted).toEqual(["metadata"]);
  expect(sent(labels({ page_url: "https://a.example" })).metadata).toEqual({ page_url: "https://a.example" });
});
