import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import type { GenerationRequest, HostBody, StreamJudge } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import type { ErrorObject, Refusal } from "../../../src/units/errors/refusal.ts";
import {
  chatReasoning,
  chatText,
  chatToolCall,
  type HostAnswer,
  messagesText,
  messagesThinking,
  messagesToolUse,
  responsesCustomToolCall,
  responsesReasoning,
  responsesText,
  responsesToolCall,
  type SseEvent,
  sseText,
} from "../../fakes/transcripts.ts";
import { brokenRules } from "../event-order.ts";
import { bodyOf, COST_USD, lastOf } from "../harness.ts";

/** The host speaks the client's own language: what passes, what is changed, what is withheld. */
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const MULTIBYTE = ["Grüße ", "🌍", " こんにちは", " — ok"];
const FIXTURES: Record<SurfaceName, Record<string, HostAnswer>> = {
  "chat.completions": { text: chatText(MULTIBYTE), tools: chatToolCall(), reasoning: chatReasoning() },
  responses: {
    text: responsesText(MULTIBYTE),
    tools: responsesToolCall(),
    custom: responsesCustomToolCall(),
    reasoning: responsesReasoning(),
  },
  messages: { text: messagesText(MULTIBYTE), tools: messagesToolUse(), thinking: messagesThinking() },
};

function request(surface: SurfaceName, more: object = {}): GenerationRequest {
  const conversation =
    surface === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] };
  const body = {
    model: "test/model",
    stream: true,
    ...(surface === "messages" ? { max_tokens: 9 } : {}),
    ...conversation,
    ...more,
  };
  return SURFACES[surface].readRequest(encode(JSON.stringify(body))) as GenerationRequest;
}

const METADATA = { publicModel: "test/model", atS: 1_763_000_000 };

const judgeFor = (surface: SurfaceName, more: object = {}): StreamJudge =>
  pairing(surface, surface).openStream(request(surface, more), METADATA);

/** Everything that the client gets, and what was learnt on the way. */
function run(judge: StreamJudge, chunks: Iterable<Uint8Array>) {
  const given: Uint8Array[] = [];
  for (const chunk of chunks) given.push(judge.push(chunk).slice());
  given.push(judge.end());
  const text = decode(Buffer.concat(given)) + (judge.isComplete ? lastOf(judge) : "");
  return {
    text,
    usage: judge.usage,
    counted: judge.countedTokens,
    fault: judge.fault,
    tokenSeen: judge.tokenSeen,
  };
}

const inPieces = (bytes: Uint8Array, size: number): Uint8Array[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.slice(index * size, (index + 1) * size),
  );

const isNextToLineEnd = (bytes: Uint8Array, at: number): boolean =>
  bytes.slice(Math.max(0, at - 2), at + 2).some((byte) => byte === 10 || byte === 13);

describe.each([...SURFACE_NAMES])("%s", (surface) => {
  for (const [name, { events }] of Object.entries(FIXTURES[surface])) {
    for (const eol of ["\n", "\r\n", "\r"] as const) {
      const bytes = encode(sseText(events, eol));
      const whole = run(judgeFor(surface), [bytes]);

      test(`${name}, lines ending in ${JSON.stringify(eol)}: cut anywhere, the client gets the same`, () => {
        for (let at = 0; at <= bytes.length; at++) {
          // Only next to its end does it matter how a line ends.
          if (eol !== "\n" && !isNextToLineEnd(bytes, at)) continue;
          expect(run(judgeFor(surface), [bytes.slice(0, at), bytes.slice(at)])).toEqual(whole);
        }
        for (const size of [1, 2, 3, 7, 64])
          expect(run(judgeFor(surface), inPieces(bytes, size))).toEqual(whole);
      });

      test(`${name}, lines ending in ${JSON.stringify(eol)}: nothing but the model and withheld usage differs`, () => {
        expect(whole.fault).toBeNull();
        expect(whole.tokenSeen).toBe(true);
        const [given, sent] = [dataOf(whole.text), dataOf(sseText(events))];
        const withheld = surface === "chat.completions" ? 1 : 0;
        expect(given.length).toBe(sent.length - withheld);
        for (const [index, data] of given.slice(0, -1).entries()) {
          expect(forgetful(data)).toEqual(forgetful(sent[index]!));
        }
        expect(whole.text).not.toContain("\ufffd");
        expect(whole.text).not.toContain("\r");
      });
    }
  }

  test("a stream is not complete without its end mark", () => {
    const { events } = FIXTURES[surface].text!;
    const cut = run(judgeFor(surface), [encode(sseText(events.slice(0, -4)))]);
    expect(cut.fault).not.toBeNull();
  });

  test("bytes behind the end mark are nobody's", () => {
    const text = sseText(FIXTURES[surface].text!.events);
    const more = run(judgeFor(surface), [encode(text), encode(text)]);
    expect(more.text).toBe(run(judgeFor(surface), [encode(text)]).text);
  });

  test("comments, pings and roles are no token; they pass", () => {
    const judge = judgeFor(surface);
    expect(decode(judge.push(encode(": PROCESSING\n\n")))).toBe(": PROCESSING\n\n");
    const opening = FIXTURES[surface].text!.events[0] as SseEvent;
    judge.push(encode(sseText([opening])));
    expect(judge.tokenSeen).toBe(false);
    expect(judge.countedTokens).toBe(0);
  });

  test("a byte order mark before the first event is dropped", () => {
    const bytes = encode(`\ufeff${sseText(FIXTURES[surface].text!.events)}`);
    const plain = run(judgeFor(surface), [encode(sseText(FIXTURES[surface].text!.events))]);
    for (const size of [1, 2, bytes.length])
      expect(run(judgeFor(surface), inPieces(bytes, size))).toEqual(plain);
  });

  test("a giant event passes whole; one that never ends is a fault", () => {
    const big = "x".repeat(3_000_000);
    const { events } =
      surface === "chat.completions"
        ? chatText([big])
        : surface === "responses"
          ? responsesText([big])
          : messagesText([big]);
    const given = run(judgeFor(surface), inPieces(encode(sseText(events)), 65_536));
    expect(given.fault).toBeNull();
    expect(given.text).toContain(big);
    const endless = judgeFor(surface);
    for (let mebibytes = 0; mebibytes < 20 && endless.fault === null; mebibytes++) {
      endless.push(encode(`data: ${"x".repeat(1_048_576)}`));
    }
    expect(endless.fault?.message).toContain("larger than");
  });

  test("a giant event in tiny pieces takes as long as it is, not as often as it is looked through", () => {
    const judge = judgeFor(surface);
    for (const piece of inPieces(encode(`data: {"x":"${"x".repeat(12_000_000)}"}\n\n`), 100))
      judge.push(piece);
    expect(judge.fault).toBeNull();
  });

  test("an error ends the client's stream in its own language, without an end mark", () => {
    const judge = judgeFor(surface);
    judge.push(encode(sseText(FIXTURES[surface].text!.events.slice(0, 4))));
    const error: ErrorObject = {
      message: "It broke.",
      type: "api_error",
      code: "upstream_error",
      param: null,
    };
    const text = decode(judge.fail(error, null));
    expect(text).toContain("It broke.");
    expect(text).toContain("upstream_error");
    expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
    for (const data of dataOf(text)) expect(() => JSON.parse(data)).not.toThrow();
  });

  test("an error in place of the withheld end takes the end's number", () => {
    if (surface !== "responses") return;
    const judge = judgeFor(surface);
    const before = decode(judge.push(encode(sseText(FIXTURES[surface].text!.events))));
    const error: ErrorObject = { message: "No.", type: "api_error", code: "internal_error", param: null };
    expect(brokenRules(surface, before + decode(judge.fail(error, null)))).toEqual([]);
  });

  test("the request reaches the host byte for byte, but for the model and what is the gateway's own", () => {
    const odd = '{ "model" : "test/model", "temperature":1.0,"big":12345678901234567890,"esc":"\\u00e9\\/", ';
    const tail =
      surface === "responses" ? '"input":"Hi"' : '"messages":[{"role":"user","content":"Hi"}],"max_tokens":5';
    const read = SURFACES[surface].readRequest(
      encode(`${odd}${tail},"provider":{"only":["a"]},"route":"fallback"}`),
    );
    const target = {
      model: 'host "model"',
      publicModel: "test/model",
      stream: false,
      quirks: {},
      maxOutputTokens: null,
      defaultMaxOutputTokens: 100,
    } as const;
    const { parts } = pairing(surface, surface).hostBody(read as GenerationRequest, target) as HostBody;
    const sent = decode(Buffer.concat(parts));
    for (const kept of ['"temperature":1.0', '"big":12345678901234567890', '"esc":"\\u00e9\\/"'])
      expect(sent).toContain(kept);
    const parsed = JSON.parse(sent);
    expect(parsed.model).toBe('host "model"');
    expect("provider" in parsed || "route" in parsed).toBe(false);
    expect((read as GenerationRequest).overrides.provider).toEqual({ only: ["a"] });
  });

  test.each([
    ["service_tier", "priority"],
    ["service_tier", "fast"],
    ["speed", "fast"],
  ])("a request for a more expensive service, %s: %s, is refused by its field", (name, value) => {
    const { body } = request(surface);
    const given = { ...JSON.parse(Buffer.from(body).toString()), [name]: value };
    const refusal = SURFACES[surface].readRequest(encode(JSON.stringify(given))) as Refusal;
    expect([refusal.code, refusal.details.param]).toEqual(["invalid_request", name]);
  });

  test("a conversation of more entries than any client has is refused by its field", () => {
    const name = surface === "responses" ? "input" : "messages";
    const { [name]: _, ...rest } = JSON.parse(Buffer.from(request(surface).body).toString());
    const param = (count: number, entry: unknown) => {
      const body = encode(JSON.stringify({ ...rest, [name]: Array.from({ length: count }, () => entry) }));
      return (SURFACES[surface].readRequest(body) as Refusal).details?.param;
    };
    expect(param(80_000, { role: "user", content: "x" })).toBeUndefined();
    expect(param(100_001, {})).toBe(name);
  });

  test("a request with only a list of models requests the first of them", () => {
    const { model: _, ...rest } = JSON.parse(Buffer.from(request(surface).body).toString());
    const body = encode(JSON.stringify({ ...rest, models: ["a/first", "b/second"] }));
    const read = SURFACES[surface].readRequest(body) as GenerationRequest;
    expect(read.model).toBe("a/first");
    const target = {
      model: "host-model",
      publicModel: "a/first",
      stream: true,
      quirks: {},
      maxOutputTokens: null,
      defaultMaxOutputTokens: 100,
    };
    const sent = JSON.parse(
      decode(Buffer.concat((pairing(surface, surface).hostBody(read, target) as HostBody).parts)),
    );
    expect([sent.model, sent.models]).toEqual(["host-model", undefined]);
  });

  test("a nested `model` in an answer stays what it was", () => {
    const input = { model: "nested", deep: { model: "deeper" } };
    const whole = {
      id: "x",
      model: "host-model",
      choices: [
        { index: 0, message: { role: "assistant", content: JSON.stringify(input) }, finish_reason: "stop" },
      ],
      content: [{ type: "tool_use", id: "t", name: "n", input }],
      output: [{ type: "message", content: [{ type: "output_text", text: "x" }], input }],
      usage: { model: "nested" },
    };
    const reply = pairing(surface, surface).readReply(
      encode(JSON.stringify(whole)),
      request(surface),
      METADATA,
    );
    expect(reply.kind).toBe("reply");
    expect(JSON.parse(bodyOf(reply))).toEqual({
      ...whole,
      model: "test/model",
      usage: { ...whole.usage, cost: COST_USD },
    });
  });

  test.each([
    ["nothing", ""],
    ["no JSON", "<html>"],
    ["an error", '{"error":{"message":"overloaded"}}'],
    ["an array", "[]"],
  ])("an answer that is %s is the host's fault", (_name, body) => {
    expect(pairing(surface, surface).readReply(encode(body), request(surface), METADATA).kind).toBe("fault");
  });
});

test.each([
  ["no choice", []],
  ["a choice without a message", [{ index: 0, finish_reason: "stop" }]],
  ["a message that is null", [{ index: 0, message: null, finish_reason: "stop" }]],
  ["a choice that is a list", [[["x"]]]],
  ["one message of two", [{ index: 0, message: { role: "assistant", content: "x" } }, { index: 1 }]],
])("a chat answer with %s is the host's fault, as its clients look into each", (_what, choices) => {
  const body = encode(JSON.stringify({ id: "x", model: "m", choices, usage: { prompt_tokens: 5 } }));
  const { readReply } = pairing("chat.completions", "chat.completions");
  expect(readReply(body, request("chat.completions"), METADATA)).toMatchObject({
    kind: "fault",
    error: { message: "the answer has no choices" },
  });
});

describe("thoughts and text in parts, as Mistral has them, are tokens like any other", () => {
  const parts = [
    { type: "thinking", thinking: [{ type: "text", text: "They want" }] },
    { type: "text", text: "Wait." },
  ];
  const chunkOf = (delta: object): Uint8Array =>
    encode(`data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`);

  test("in a stream: the first of them is the first token", () => {
    const judge = judgeFor("chat.completions");
    judge.push(chunkOf({ content: [parts[0]] }));
    expect(judge.tokenSeen).toBe(true);
    judge.push(chunkOf({ content: [parts[1]] }));
    const plain = judgeFor("chat.completions");
    plain.push(chunkOf({ reasoning_content: "They want" }));
    plain.push(chunkOf({ content: "Wait." }));
    expect(judge.countedTokens).toBe(plain.countedTokens);
  });

  test("in a whole answer", () => {
    const whole = { model: "m", choices: [{ index: 0, message: { role: "assistant", content: parts } }] };
    const { readReply } = pairing("chat.completions", "chat.completions");
    expect(readReply(encode(JSON.stringify(whole)), request("chat.completions"), METADATA)).toMatchObject({
      kind: "reply",
      countedTokens: 4,
    });
  });
});

test.each<SurfaceName>([...SURFACE_NAMES])(
  "%s client: the answer's tokens that a messages host tells at its beginning are no report of the answer",
  (client) => {
    const judge = pairing(client, "messages").openStream(request(client), METADATA);
    const { events } = messagesText(["Hello"], { input: 7, output: 3 });
    const silent = events.filter(({ event }) => event !== "message_delta");
    expect(silent.length).toBe(events.length - 1);
    run(judge, [encode(sseText(silent))]);
    expect(judge.isComplete).toBe(true);
    expect(judge.usage).toMatchObject({ input: 7, output: 0 });
    expect(judge.countedTokens).toBe(2);
  },
);

describe("usage of a chat stream", () => {
  const { events } = chatText(["Hello"], { input: 7, output: 3 });

  test("is withheld, and still known here, when the client did not ask for it", () => {
    const { text, usage } = run(judgeFor("chat.completions"), [encode(sseText(events))]);
    expect(text).not.toContain('"usage"');
    expect(usage).toMatchObject({ input: 7, output: 3 });
  });

  test("passes when the client asked", () => {
    const { text } = run(judgeFor("chat.completions", { stream_options: { include_usage: true } }), [
      encode(sseText(events)),
    ]);
    expect(text).toContain('"prompt_tokens":7');
  });
});

describe("what a language does not allow", () => {
  test.each<[SurfaceName, object, string]>([
    ["messages", { max_tokens: undefined }, "max_tokens"],
    ["messages", { messages: [] }, "messages"],
    ["responses", { input: [] }, "input"],
    ["responses", { previous_response_id: "resp_1" }, "previous_response_id"],
    ["responses", { input: [{ type: "item_reference", id: "msg_1" }] }, "input[0]"],
    ["responses", { background: true }, "background"],
    ["responses", { store: true }, "store"],
    ["chat.completions", { stream_options: [] }, "stream_options"],
    ["chat.completions", { n: 0 }, "n"],
  ])("%s: %p is refused, naming %s", (surface, more, param) => {
    expect(request(surface, more)).toMatchObject({ code: "invalid_request", details: { param } } as never);
  });
});

const dataOf = (text: string): string[] =>
  text
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length).trim());

/** An event without what the gateway may change. */
function forgetful(data: string): unknown {
  if (data === "[DONE]") return data;
  return JSON.parse(data, (name, value) => (name === "model" || name === "usage" ? undefined : value));
}
