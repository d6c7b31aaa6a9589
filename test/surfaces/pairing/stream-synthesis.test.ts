import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { ACCENTED, OFFICIAL } from "../../fakes/hosts/all.ts";
import { contentOfStream, tellable } from "../answer-content.ts";
import { brokenRules, type Loose, wrongEvents } from "../event-order.ts";
import { bodyOf, COST_USD, decode, encode, given, METADATA, openRequest } from "../harness.ts";

/**
 * Whole answers, sent as streams: of every host, to clients of all three languages. What a client receives is
 * what it would have received from a host that streams.
 */
function synthesized(host: SurfaceName, whole: object): Uint8Array {
  const events = SURFACES[host].synthesizeStream(encode(JSON.stringify(whole)));
  if (!(events instanceof Uint8Array)) throw new Error(events.message);
  return events;
}

function streamFor(client: SurfaceName, host: SurfaceName, whole: object, usage = true): string {
  const judge = pairing(client, host).openStream(openRequest(client, usage), METADATA);
  return given(judge, [synthesized(host, whole)]);
}

for (const [name, transcript] of [...OFFICIAL, ...ACCENTED]) {
  const { host, whole, story } = transcript;
  const official = OFFICIAL.some(([, one]) => one === transcript);

  describe(name, () => {
    for (const client of SURFACE_NAMES) {
      if (client === "messages" && story.calls?.some(({ custom }) => custom)) continue;
      const by = client === host ? "host" : "gateway";
      const heldToRules = official || client !== host;

      test.each([true, false])(`${client} client, usage asked for: %p`, (withUsage) => {
        const judge = pairing(client, host).openStream(openRequest(client, withUsage), METADATA);
        const text = given(judge, [synthesized(host, whole)]);
        expect(judge.tokenSeen).toBe(true);
        expect(judge.usage).toMatchObject(story.usage!);
        if (!heldToRules) return;
        expect(brokenRules(client, text, { usage: withUsage })).toEqual([]);
        expect(wrongEvents(client, text, by)).toEqual([]);
        const ending = client === host && story.ending ? { end: story.ending } : {};
        const silent = client === "chat.completions" && !withUsage ? { usage: null } : {};
        expect(contentOfStream(client, text)).toEqual({ ...tellable(client, story), ...ending, ...silent });
      });
    }

    if (official)
      test("put together again, it is the answer that it was", () => {
        const judge = pairing(host, host).openWhole(openRequest(host, true), METADATA);
        judge.push(synthesized(host, whole));
        const reply = judge.reply();
        if (reply.kind === "fault") throw new Error(reply.error.message);
        expect(spare(JSON.parse(bodyOf(reply)))).toEqual(spare(billed(whole)));
      });
  });
}

/** As the client receives it. */
const billed = (whole: Loose): Loose => ({
  ...whole,
  model: METADATA.publicModel,
  usage: { ...whole.usage, cost: COST_USD },
});

/** Empty lists of annotations, and members that are null, are in whole answers only. */
function spare(answer: Loose): Loose {
  if (answer.system_fingerprint === null) delete answer.system_fingerprint;
  for (const { message } of answer.choices ?? [])
    if (message.annotations?.length === 0) delete message.annotations;
  return answer;
}

const chat = (message: object, more: object = {}) => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop", ...more }],
});
const call = (more: object) => ({ id: "call_1", type: "function", function: { name: "f", ...more } });
const chunks = (text: string): Loose[] =>
  text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice("data: ".length)));

describe("a chat answer", () => {
  const chunksOf = (whole: object) => chunks(streamFor("chat.completions", "chat.completions", whole));
  const reasons = (whole: object) =>
    chunksOf(whole)
      .flatMap(({ choices }) => choices.map((choice: Loose) => choice.finish_reason))
      .filter(Boolean);

  test.each<[string, object, string]>([
    ["of text", chat({ content: "Hi" }), "stop"],
    ["of text without a reason", chat({ content: "Hi" }, { finish_reason: undefined }), "stop"],
    [
      "of calls that a host ends with `stop`",
      chat({ tool_calls: [call({ arguments: "{}" })] }),
      "tool_calls",
    ],
    [
      "of calls without a reason",
      chat({ tool_calls: [call({ arguments: "{}" })] }, { finish_reason: null }),
      "tool_calls",
    ],
    ["that was cut", chat({ content: "Hi" }, { finish_reason: "length" }), "length"],
  ])("%s ends with its reason, once", (_name, whole, reason) => {
    expect(reasons(whole)).toEqual([reason]);
  });

  test("gives thoughts, text and each call in chunks of their own", () => {
    const calls = [call({ arguments: "{}" }), { ...call({ arguments: "[1]" }), id: "call_2", index: 0 }];
    const whole = chat({ reasoning_content: "Hm", content: "Hi", refusal: null, tool_calls: calls });
    expect(chunksOf(whole).flatMap(({ choices }) => choices.map(({ delta }: Loose) => delta))).toEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "Hm" },
      { content: "Hi" },
      { tool_calls: [{ ...calls[0], index: 0 }] },
      { tool_calls: [{ ...calls[1], index: 1 }] },
      {},
    ]);
  });

  test("gives arguments as text, with every digit, where the host gave an object", () => {
    const body = JSON.stringify(chat({ tool_calls: [call({ arguments: { id: "#" } })] }));
    const events = SURFACES["chat.completions"].synthesizeStream(
      encode(body.replace('"#"', "175928847299117063")),
    );
    const text = decode(events as Uint8Array);
    expect(text).toContain('"arguments":"{\\"id\\":175928847299117063}"');
  });

  test("keeps two choices and their probabilities apart, and says what is not of a choice once", () => {
    const choice = (index: number, content: string, finish_reason: string) => ({
      index,
      message: { role: "assistant", content, refusal: null },
      logprobs: { content: [{ token: content, logprob: -1 }] },
      finish_reason,
    });
    const choices = [choice(0, "A", "stop"), choice(1, "B", "length")];
    const whole = { ...chat({}), future: [1], choices, usage: { prompt_tokens: 1, completion_tokens: 2 } };
    expect(chunksOf(whole).filter(({ future }) => future !== undefined)).toHaveLength(1);
    const judge = pairing("chat.completions", "chat.completions").openWhole(
      openRequest("chat.completions", true),
      METADATA,
    );
    judge.push(synthesized("chat.completions", whole));
    const reply = judge.reply();
    expect(JSON.parse(bodyOf(reply))).toEqual(billed(whole));
  });
});

test("a message keeps what is no text: citations, and blocks that come as one", () => {
  const content = [
    { type: "text", text: "Blue.", citations: [{ type: "char_location", cited_text: "b" }] },
    { type: "redacted_thinking", data: "secret" },
    { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "sky" } },
    { type: "web_search_tool_result", tool_use_id: "srv_1", content: [{ type: "web_search_result" }] },
    { type: "tool_use", id: "toolu_1", name: "f", input: {} },
  ];
  const whole = { id: "msg_1", type: "message", role: "assistant", model: "m", content };
  const more = { stop_reason: "tool_use", stop_sequence: null, usage: { input_tokens: 1, output_tokens: 2 } };
  const judge = pairing("messages", "messages").openWhole(openRequest("messages", true), METADATA);
  judge.push(synthesized("messages", { ...whole, ...more }));
  const reply = judge.reply();
  expect(JSON.parse(bodyOf(reply))).toEqual(billed({ ...whole, ...more }));
});

test("a call of a messages host keeps every digit of its input", () => {
  const whole = {
    type: "message",
    content: [{ type: "tool_use", id: "t", name: "f", input: { id: "#" } }],
    stop_reason: "tool_use",
  };
  const events = SURFACES.messages.synthesizeStream(
    encode(JSON.stringify(whole).replace('"#"', "175928847299117063")),
  );
  expect(decode(events as Uint8Array)).toContain('"partial_json":"{\\"id\\":175928847299117063}"');
});

test("what a responses host says of other items, and in other parts, is passed on as it is", () => {
  const output = [
    { id: "ws_1", type: "web_search_call", status: "completed", action: { query: "sky" } },
    { id: "rs_1", type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm" }] },
    {
      id: "msg_1",
      type: "message",
      status: "completed",
      role: "assistant",
      content: [
        {
          type: "output_text",
          text: "Blue.",
          annotations: [{ type: "url_citation", url: "https://a.example" }],
          logprobs: [],
        },
        { type: "output_future", words: "More." },
      ],
    },
  ];
  const text = streamFor("responses", "responses", {
    id: "resp_1",
    object: "response",
    status: "completed",
    model: "m",
    output,
    usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  });
  const events: Loose[] = text
    .split("\n\n")
    .filter(Boolean)
    .map((event) => JSON.parse(event.slice(event.indexOf("data: ") + 6)));
  expect(events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item)).toEqual(
    output,
  );
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
  expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { output } });
  const types = events.map(({ type }) => type);
  expect(types).toContain("response.reasoning_text.delta");
  expect(types).toContain("response.output_text.annotation.added");
});

describe("an answer that is none is named as such", () => {
  test.each<[SurfaceName, unknown, string]>([
    ["chat.completions", [], "the answer is not a JSON object"],
    ["chat.completions", { choices: [] }, "the answer has no choices"],
    ["chat.completions", { choices: [{ finish_reason: "stop" }] }, "the answer has no choices"],
    ["chat.completions", chat({ content: "Hi" }, { finish_reason: "error" }), "the host stopped with error"],
    ["chat.completions", { error: { message: "Broken." } }, "Broken."],
    ["responses", {}, "the answer has no output"],
    ["responses", { status: "failed", error: { message: "Broken." } }, "Broken."],
    ["messages", {}, "the answer has no content"],
    ["messages", { type: "error", error: { message: "Broken." } }, "Broken."],
  ])("%s: %j", (surface, whole, message) => {
    expect(SURFACES[surface].synthesizeStream(encode(JSON.stringify(whole)))).toMatchObject({ message });
  });

  test("one whose stream would be larger than any is refused", () => {
    const item = {
      id: "x".repeat(1_000_000),
      type: "message",
      content: Array(50).fill({ type: "output_text", text: "a" }),
    };
    const events = SURFACES.responses.synthesizeStream(encode(JSON.stringify({ output: [item] })));
    expect(events).toMatchObject({ message: expect.stringContaining("is larger than 134217728 characters") });
  });
});

describe("a client of another language", () => {
  const read = (client: SurfaceName, host: SurfaceName, whole: object) =>
    JSON.parse(
      bodyOf(
        pairing(client, host).readReply(encode(JSON.stringify(whole)), openRequest(client, false), METADATA),
      ),
    );

  test("gets the probabilities of a responses host's tokens in a whole answer, as in a stream", () => {
    const logprobs = [{ token: "Hi", logprob: -0.25, bytes: [72, 105], top_logprobs: [] }];
    const content = [{ type: "output_text", text: "Hi", annotations: [], logprobs }];
    const output = [{ id: "msg_1", type: "message", role: "assistant", status: "completed", content }];
    const whole = { id: "resp_1", object: "response", status: "completed", model: "m", output };
    expect(read("chat.completions", "responses", whole).choices[0].logprobs.content).toEqual(logprobs);
  });

  test("gets the first of several answers of a chat host, whole or streamed", () => {
    const choice = (index: number, content: string) => ({
      index,
      message: { role: "assistant", content },
      finish_reason: "stop",
    });
    const whole = { ...chat({}), choices: [choice(0, "One."), choice(1, "Two.")] };
    expect(read("messages", "chat.completions", whole).content).toEqual([{ type: "text", text: "One." }]);
    const judge = pairing("messages", "chat.completions").openStream(openRequest("messages", true), METADATA);
    const text = given(judge, [synthesized("chat.completions", whole)]);
    expect(text).toContain("One.");
    expect(text).not.toContain("Two.");
  });

  test("gets the thoughts of an open model paragraph by paragraph", () => {
    const content = ["One.", "Two."].map((text) => ({ type: "reasoning_text", text }));
    const output = [{ id: "rs_1", type: "reasoning", summary: [], content }];
    const whole = { id: "resp_1", object: "response", status: "completed", model: "m", output };
    const [thought] = read("messages", "responses", whole).content;
    expect(thought.thinking).toBe("One.\n\nTwo.");
  });
});
