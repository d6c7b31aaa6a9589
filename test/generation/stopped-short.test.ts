import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import type { Behaviour } from "../fakes/host.ts";
import { chatText, type SseEvent } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { read, requestBody } from "./test-gateway.ts";

/** A filter or a ceiling that ends an answer before its first word: an answer all the same. */
const { serving } = openedPerTest();

/** Another host would answer. */
const gatewayOn = (surface: SurfaceName, behaviour: Behaviour) =>
  serving([[behaviour, { speaks: [surface] }], [json(chatText().whole)]]);

const chunk = (choice: object): SseEvent => ({
  data: JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [choice],
  }),
});
const named = (data: { type: string } & Record<string, unknown>): SseEvent => ({
  event: data.type,
  data: JSON.stringify(data),
});
const chat = (reason: string): SseEvent[] => [
  chunk({ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }),
  chunk({ index: 0, delta: {}, finish_reason: reason }),
  { data: "[DONE]" },
];
const messages = (reason: string): SseEvent[] => [
  named({ type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", content: [] } }),
  named({ type: "message_delta", delta: { stop_reason: reason, stop_sequence: null } }),
  named({ type: "message_stop" }),
];
const responses = (reason: string): SseEvent[] => {
  const response = { id: "resp_1", object: "response", output: [], status: "in_progress" };
  return [
    named({ type: "response.created", response }),
    named({
      type: "response.incomplete",
      response: { ...response, status: "incomplete", incomplete_details: { reason } },
    }),
  ];
};

const STREAMS: [string, SurfaceName, SseEvent[], Record<SurfaceName, string>][] = [
  [
    "chat: content_filter",
    "chat.completions",
    chat("content_filter"),
    { "chat.completions": "content_filter", messages: "refusal", responses: "content_filter" },
  ],
  [
    "chat: length",
    "chat.completions",
    chat("length"),
    { "chat.completions": "length", messages: "max_tokens", responses: "max_output_tokens" },
  ],
  [
    "messages: refusal",
    "messages",
    messages("refusal"),
    { "chat.completions": "content_filter", messages: "refusal", responses: "content_filter" },
  ],
  [
    "messages: max_tokens",
    "messages",
    messages("max_tokens"),
    { "chat.completions": "length", messages: "max_tokens", responses: "max_output_tokens" },
  ],
  [
    "responses: content_filter",
    "responses",
    responses("content_filter"),
    { "chat.completions": "content_filter", messages: "refusal", responses: "content_filter" },
  ],
  [
    "responses: max_output_tokens",
    "responses",
    responses("max_output_tokens"),
    { "chat.completions": "length", messages: "max_tokens", responses: "max_output_tokens" },
  ],
];

describe.each(STREAMS)("%s without a word and without usage", (_name, surface, events, expected) => {
  for (const client of SURFACE_NAMES)
    for (const stream of [true, false])
      test(`is what a ${client} client gets${stream ? ", streamed" : ""}`, async () => {
        const { gateway, hosts } = await gatewayOn(surface, sse(events));
        // A long one is asked for as a stream, whatever the client wants.
        const more = client === "messages" ? { max_tokens: 400 } : {};
        const answer = await gateway.send(client, requestBody(client, { stream, ...more }));
        expect(answer.status).toBe(200);
        expect(await read(answer)).toContain(`"${expected[client]}"`);
        expect(hosts[1]!.requests.length).toBe(0);
        expect(gateway.receipt(answer)).toMatchObject({ state: "settled", host: "h0", error_code: null });
      });
});

test.each([...SURFACE_NAMES])(
  "Azure's whole answer that has a reason and no message: a %s client gets one that its types allow",
  async (client) => {
    const usage = { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 };
    const choice = { index: 0, finish_reason: "content_filter", logprobs: null };
    const whole = { id: "c", object: "chat.completion", created: 1, model: "m", choices: [choice], usage };
    const { gateway, hosts } = await gatewayOn("chat.completions", json(whole));
    for (const stream of [false, true]) {
      const more = client === "messages" ? { max_tokens: 10 } : {};
      const answer = await gateway.send(client, requestBody(client, { stream, ...more }));
      const text = await read(answer);
      expect(answer.status).toBe(200);
      if (client === "chat.completions" && !stream)
        expect(JSON.parse(text).choices).toMatchObject([
          { finish_reason: "content_filter", message: { role: "assistant", content: null } },
        ]);
      else expect(text).toMatch(/content_filter|refusal/);
      expect(gateway.receipt(answer).tokens).toMatchObject({ input: 9, output: 0, source: "host" });
    }
    expect(hosts[1]!.requests.length).toBe(0);
  },
);

test("a stream that ends of itself without a word is an empty one, and the next host is asked", async () => {
  const { gateway, hosts } = await gatewayOn("chat.completions", sse(chat("stop")));
  const answer = await gateway.send("chat.completions", requestBody("chat.completions", { stream: true }));
  expect(answer.status).toBe(200);
  await read(answer);
  expect(hosts[1]!.requests.length).toBe(1);
});
