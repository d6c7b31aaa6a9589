import { describe, expect, test } from "bun:test";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { bodyOf, decode, encode, given, METADATA, readRequest } from "../harness.ts";

/** A chat client that does not want to see the thoughts of a host that speaks another language. */
type Json = Record<string, unknown>;
type Host = "messages" | "responses";
const asks = (more: Json, stream: boolean) =>
  readRequest("chat.completions", {
    model: "test/model",
    messages: [{ role: "user", content: "Hi" }],
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...more,
  });

const hiding: [how: string, more: Json][] = [
  ["include_reasoning: false", { include_reasoning: false }],
  ["reasoning.exclude", { reasoning: { effort: "high", exclude: true } }],
  ["Groq's word for it", { reasoning_format: "hidden" }],
  ["both that disagree", { include_reasoning: false, reasoning: { exclude: false } }],
];
const showing: [how: string, more: Json][] = [
  ["no wish", {}],
  ["include_reasoning: true", { include_reasoning: true }],
  ["reasoning.exclude: false", { reasoning: { effort: "high", exclude: false } }],
  ["Groq's other word", { reasoning_format: "parsed" }],
  ["nulls", { include_reasoning: null, reasoning: { exclude: null } }],
];

const OUTPUT = 40;
const answers: Record<Host, Json> = {
  messages: {
    type: "message",
    id: "msg_1",
    role: "assistant",
    content: [
      { type: "thinking", thinking: "A secret thought", signature: "sealed" },
      { type: "redacted_thinking", data: "sealed" },
      { type: "text", text: "Hello" },
    ],
    stop_reason: "end_turn",
    usage: { input_tokens: 9, output_tokens: OUTPUT, output_tokens_details: { thinking_tokens: 30 } },
  },
  responses: {
    object: "response",
    id: "resp_1",
    status: "completed",
    output: [
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "A secret thought" }],
        encrypted_content: "sealed",
      },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello" }] },
    ],
    usage: {
      input_tokens: 9,
      output_tokens: OUTPUT,
      total_tokens: 9 + OUTPUT,
      output_tokens_details: { reasoning_tokens: 30 },
    },
  },
};

const thoughts = Array.from({ length: 40 }, (_, at) => ({
  type: "content_block_delta",
  index: 0,
  delta: { type: "thinking_delta", thinking: `secret ${at} ` },
}));
const events: Record<Host, Json[]> = {
  messages: [
    { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 9, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
    ...thoughts,
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "sealed" } },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Hello" } },
    { type: "content_block_stop", index: 1 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: OUTPUT, output_tokens_details: { thinking_tokens: 30 } },
    },
    { type: "message_stop" },
  ],
  responses: [
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_item.added", output_index: 0, item: { type: "reasoning", id: "rs_1" } },
    {
      type: "response.reasoning_summary_text.delta",
      item_id: "rs_1",
      output_index: 0,
      summary_index: 0,
      delta: "A secret thought",
    },
    {
      type: "response.output_item.done",
      output_index: 0,
      item: { type: "reasoning", id: "rs_1", encrypted_content: "sealed", summary: [] },
    },
    { type: "response.output_item.added", output_index: 1, item: { type: "message", id: "msg_1" } },
    {
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 1,
      content_index: 0,
      delta: "Hello",
    },
    { type: "response.output_item.done", output_index: 1, item: { type: "message", id: "msg_1" } },
    { type: "response.completed", response: answers.responses },
  ],
};
const streamed = (host: Host) =>
  events[host].map((event) => encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`));

function whole(host: Host, more: Json): string {
  const body = encode(JSON.stringify(answers[host]));
  const reply = pairing("chat.completions", host).readReply(body, asks(more, false), METADATA);
  if (reply.kind !== "reply") throw new Error(reply.error.message);
  expect(reply.usage).toMatchObject({ output: OUTPUT, reasoning: 30 });
  return bodyOf(reply);
}

function collected(host: Host, more: Json): string {
  const judge = pairing("chat.completions", host).openWhole(asks(more, false), METADATA);
  for (const chunk of streamed(host)) judge.push(chunk);
  judge.end();
  const reply = judge.reply();
  if (reply.kind !== "reply") throw new Error(reply.error.message);
  expect(reply.usage).toMatchObject({ output: OUTPUT, reasoning: 30 });
  return bodyOf(reply);
}

function stream(host: Host, more: Json): string {
  const judge = pairing("chat.completions", host).openStream(asks(more, true), METADATA);
  const text = given(judge, streamed(host));
  expect(judge.usage).toMatchObject({ output: OUTPUT, reasoning: 30 });
  return text;
}

for (const host of ["messages", "responses"] as const) {
  for (const [how, answer] of Object.entries({ whole, collected, streamed: stream })) {
    describe(`thoughts of a ${how} answer of ${host}`, () => {
      test.each(hiding)("are not given to a client with %s, and are in its usage all the same", (_, more) => {
        const text = answer(host, more);
        expect(text).toContain("Hello");
        expect(text).not.toMatch(/secret|sealed|reasoning_content|reasoning_details/);
        expect(text).toContain('"reasoning_tokens":30');
      });

      test.each(showing)("are given to a client with %s", (_, more) => {
        expect(answer(host, more)).toMatch(/secret.*Hello|Hello.*secret/s);
      });
    });
  }
}

describe("hidden thoughts", () => {
  test("are counted for a host that reports no usage", () => {
    const answerOf = (more: Json) => {
      const judge = pairing("chat.completions", "messages").openStream(asks(more, true), METADATA);
      for (const chunk of streamed("messages").slice(0, -2)) judge.push(chunk);
      return judge.countedTokens;
    };
    expect(answerOf({ include_reasoning: false })).toBe(answerOf({}));
    expect(answerOf({ include_reasoning: false })).toBeGreaterThan(40);
  });

  test("are a first token, and long ones a sign of life now and then", () => {
    const judge = pairing("chat.completions", "messages").openStream(
      asks({ include_reasoning: false }, true),
      METADATA,
    );
    const chunks = streamed("messages");
    const text = chunks.slice(0, 2 + thoughts.length).map((chunk) => decode(judge.push(chunk)));
    expect(judge.tokenSeen).toBe(true);
    expect(text.filter((one) => one === ": ping\n\n")).toHaveLength(2);
  });

  test.each([
    ["include_reasoning", { include_reasoning: "no" }],
    ["reasoning.exclude", { reasoning: { exclude: "yes" } }],
  ])("are wished for by %s with true or false only", (field, more) => {
    const body = pairing("chat.completions", "messages").hostBody(asks(more, false), {
      model: "host-model",
      publicModel: "test/model",
      stream: false,
      quirks: {},
      maxOutputTokens: null,
      defaultMaxOutputTokens: 100,
    });
    expect(refused(body) && body.details.param).toBe(field);
  });

  test("are the host's to keep where it speaks chat too: the wish reaches it as it came", () => {
    const body = pairing("chat.completions", "chat.completions").hostBody(
      asks({ include_reasoning: false, reasoning: { exclude: true } }, false),
      {
        model: "host-model",
        publicModel: "test/model",
        stream: false,
        quirks: {},
        maxOutputTokens: null,
        defaultMaxOutputTokens: 100,
      },
    );
    if (refused(body)) throw new Error(body.message);
    expect(JSON.parse(decode(Buffer.concat(body.parts)))).toMatchObject({
      include_reasoning: false,
      reasoning: { exclude: true },
    });
  });
});
