import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import type { ErrorObject } from "../../../src/units/errors/refusal.ts";
import { SICK } from "../../fakes/hosts/sick.ts";
import { contentOfStream, tellable } from "../answer-content.ts";
import { brokenRules, wrongEvents } from "../event-order.ts";
import {
  bodyOf,
  decode,
  encode,
  given,
  givenSoFar,
  inPieces,
  METADATA,
  openRequest,
  readRequest,
} from "../harness.ts";

/**
 * Hosts that break the rules of their language, and clients of the others, for whom every rule of theirs
 * holds.
 */
const ERROR: ErrorObject = { message: "It broke.", type: "api_error", code: "upstream_error", param: null };

describe.each(SICK)("%s", (_name, { host, stream, broken, story }) => {
  const bytes = encode(stream);

  test.each(SURFACE_NAMES.filter((client) => client !== host))("%s client", (client) => {
    const open = () => pairing(client, host).openStream(openRequest(client, true), METADATA);
    if (broken === null) {
      const text = given(open(), [bytes]);
      expect(brokenRules(client, text, { usage: true })).toEqual([]);
      expect(wrongEvents(client, text)).toEqual([]);
      const { usage: _usage, ...content } = contentOfStream(client, text);
      const { usage: _none, ...expected } = tellable(client, { ...story, usage: null });
      expect(content).toEqual(expected);
      for (const size of [1, 5]) expect(given(open(), inPieces(bytes, size))).toBe(text);
      return;
    }
    for (const size of [bytes.length, 1, 5]) {
      const judge = open();
      const before = givenSoFar(judge, inPieces(bytes, size));
      expect(judge.isComplete).toBe(false);
      expect(judge.fault?.message).toMatch(broken);
      const text = before + decode(judge.fail(ERROR, null));
      expect(text).toContain("It broke.");
      expect(brokenRules(client, text, { usage: true })).toEqual([]);
      expect(wrongEvents(client, text)).toEqual([]);
    }
  });

  test("a client of the host's own language learns of a fault all the same", () => {
    const judge = pairing(host, host).openStream(openRequest(host, true), METADATA);
    const before = givenSoFar(judge, [bytes]);
    if (broken === null) {
      expect(judge.fault).toBeNull();
      return;
    }
    expect(judge.isComplete).toBe(false);
    // The one error that the client receives is the gateway's.
    expect(before).not.toMatch(broken);
    const text = before + decode(judge.fail(ERROR, null));
    expect(text).toContain("It broke.");
    expect(brokenRules(host, text, { usage: true })).toEqual([]);
  });
});

describe("a chat host that gives no reason for the end of an answer with all the tokens that it may have: it was cut", () => {
  const chunk = (more: object) => ({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    ...more,
  });
  const text = chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "Hello" } }] });
  const streamOf = (tokens: number) =>
    [
      text,
      chunk({
        choices: [],
        usage: { prompt_tokens: 3, completion_tokens: tokens, total_tokens: 3 + tokens },
      }),
    ]
      .map((data) => `data: ${JSON.stringify(data)}\n\n`)
      .join("")
      .concat("data: [DONE]\n\n");
  const prompt = { model: "test/model", messages: [{ role: "user", content: "Hi" }], max_tokens: 9 };

  test.each([
    ["chat.completions", "length", "stop"],
    ["messages", "max_tokens", "end_turn"],
  ] as const)("%s client", (client, cut, whole) => {
    const pair = pairing(client, "chat.completions");
    for (const [tokens, reason] of [
      [9, cut],
      [8, whole],
    ] as const) {
      const streamed = pair.openStream(readRequest(client, { ...prompt, stream: true }), METADATA);
      expect(given(streamed, [encode(streamOf(tokens))])).toContain(`"${reason}"`);
      const collected = pair.openWhole(readRequest(client, prompt), METADATA);
      collected.push(encode(streamOf(tokens)));
      expect(bodyOf(collected.reply())).toContain(`"${reason}"`);
    }
  });
});

describe("a chat host that ends its stream without a finish_reason: a chat client gets one", () => {
  test.each([
    ["no finish_reason", "stop"],
    ["no finish_reason behind a call", "tool_calls"],
  ])("%s: %s", (name, reason) => {
    const [, { stream }] = SICK.find(([one]) => one === `chat.completions: ${name}`)!;
    const pair = pairing("chat.completions", "chat.completions");
    const text = given(pair.openStream(openRequest("chat.completions", true), METADATA), [encode(stream)]);
    expect(brokenRules("chat.completions", text, { usage: true })).toEqual([]);
    const chunks = text.matchAll(/^data: (\{.*)$/gm).map(([, data]) => JSON.parse(data!).choices[0]);
    expect(chunks.toArray().flatMap((choice) => choice?.finish_reason ?? [])).toEqual([reason]);
    const whole = pair.openWhole(openRequest("chat.completions", false), METADATA);
    whole.push(encode(stream));
    expect(JSON.parse(bodyOf(whole.reply())).choices[0].finish_reason).toBe(reason);
  });
});

describe("arguments that are no JSON object", () => {
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"city": "Os' } };
  const whole = {
    id: "chatcmpl-1",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: null, tool_calls: [call] },
        finish_reason: "length",
      },
    ],
  };

  test.each<[SurfaceName, string, unknown]>([
    ["messages", "content", { INVALID_JSON: '{"city": "Os' }],
    ["responses", "output", '{"city": "Os'],
  ])("a %s client receives them as they are", (client, list, expected) => {
    const reply = pairing(client, "chat.completions").readReply(
      encode(JSON.stringify(whole)),
      openRequest(client, false),
      METADATA,
    );
    const [content] = JSON.parse(bodyOf(reply))[list];
    expect(content.input ?? content.arguments).toEqual(expected);
  });
});
