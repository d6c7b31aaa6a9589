import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { parseExactObject } from "../../../src/surfaces/json/exact-json.ts";
import { MessagesCollector } from "../../../src/surfaces/messages/collector.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { bodyOf, decode, encode, METADATA } from "../harness.ts";

/** Longer than a double is exact, as ids of messages and people are at many services. */
const ID = "175928847299117063";
const INPUT = `{"id":${ID},"ids":[-${ID},{"id":${ID}}],"note":"\\"${ID}: ${ID}\\\\"}`;

describe("a long whole number stays as it is spelt", () => {
  const kept: readonly string[] = [
    INPUT,
    `{"id":-${ID}}`,
    '{"first":9007199254740993,"second":[12345678901234567890,12345678901234567891]}',
    '{"__proto__":12345678901234567890}',
  ];
  for (const text of kept) test(text, () => expect(JSON.stringify(parseExactObject(text))).toBe(text));

  test("and every other value is what JSON.parse makes of it", () => {
    for (const text of [
      '{"whole":9007199254740991,"share":0.30000000000000004,"far":1e16,"small":1.2345678901234567e-16}',
      `{"text":"${ID}","back":"\\\\","${ID}":1}`,
    ])
      expect(parseExactObject(text)).toEqual(JSON.parse(text));
  });

  test("what is no JSON stays none, though quotes would make some of it", () => {
    for (const text of [`{${ID}:1}`, `{"id":0${ID}}`, `{"id":"${ID}`, `{"id":${ID}`, ID, `[${ID}]`])
      expect(parseExactObject(text)).toBeNull();
  });
});

describe("the arguments of a tool reach the other side of a translation", () => {
  const call = { id: "call_1", type: "function", function: { name: "kick", arguments: INPUT } };
  const use = `{"type":"tool_use","id":"call_1","name":"kick","input":${INPUT}}`;
  const clients: [SurfaceName, string][] = [
    [
      "chat.completions",
      `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[${JSON.stringify(call)}]},{"role":"tool","tool_call_id":"call_1","content":"done"}]`,
    ],
    [
      "messages",
      `{"max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[${use}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"done"}]}]`,
    ],
  ];
  const hosts: readonly SurfaceName[] = ["chat.completions", "responses", "messages"];
  for (const [client, body] of clients)
    for (const host of hosts)
      test(`in a conversation: ${client} to ${host}`, () => {
        const request = SURFACES[client].readRequest(encode(`${body},"model":"test/model"}`));
        if (refused(request)) throw new Error(request.message);
        const written = pairing(client, host).hostBody(request, TARGET);
        if (refused(written)) throw new Error(written.message);
        expect(decode(Buffer.concat(written.parts))).toContain(
          host === "messages" ? INPUT : JSON.stringify(INPUT),
        );
      });

  const chatAnswer = `{"choices":[{"message":{"role":"assistant","tool_calls":[${JSON.stringify(call)}]},"finish_reason":"tool_calls"}]}`;
  const messagesAnswer = `{"id":"msg_1","type":"message","role":"assistant","content":[${use}],"stop_reason":"tool_use"}`;
  const answers: [SurfaceName, SurfaceName, string][] = [
    ["messages", "chat.completions", chatAnswer],
    ["chat.completions", "messages", messagesAnswer],
    ["responses", "messages", messagesAnswer],
  ];
  for (const [client, host, answer] of answers)
    test(`in an answer: ${host} to ${client}`, () => {
      const body = {
        model: "test/model",
        max_tokens: 9,
        messages: [{ role: "user", content: "Hi" }],
        input: "Hi",
      };
      const request = SURFACES[client].readRequest(encode(JSON.stringify(body)));
      if (refused(request)) throw new Error(request.message);
      const reply = pairing(client, host).readReply(encode(answer), request, METADATA);
      expect(bodyOf(reply)).toContain(client === "messages" ? INPUT : JSON.stringify(INPUT));
    });

  test("in an answer that is collected from a stream", () => {
    const collector = new MessagesCollector();
    collector.add({ type: "content_block_start", content_block: { type: "tool_use", input: {} } });
    for (const part of [INPUT.slice(0, 12), INPUT.slice(12)])
      collector.add({ type: "content_block_delta", delta: { type: "input_json_delta", partial_json: part } });
    collector.add({ type: "content_block_stop" });
    expect(JSON.stringify(collector.whole())).toContain(INPUT);
  });
});

const TARGET = {
  model: "host-model",
  publicModel: "test/model",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 4_096,
};
