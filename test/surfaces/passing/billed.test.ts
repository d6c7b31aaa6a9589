import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import type { StreamJudge } from "../../../src/surfaces/surface.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { framesOf, type Loose } from "../event-order.ts";
import {
  billOf,
  bodyOf,
  COST_USD,
  decode,
  encode,
  given,
  givenSoFar,
  inPieces,
  METADATA,
  openRequest,
} from "../harness.ts";

/**
 * A stream's last usage waits for the bill; everything else is passed on at once and as it came. `usage` is
 * the host's, wherever it puts it.
 */
const open = (surface: SurfaceName = "chat.completions"): StreamJudge =>
  pairing(surface, surface).openStream(openRequest(surface, true), METADATA);

const chunk = (choices: object[], usage?: object) =>
  `data: ${JSON.stringify({ id: "c", choices, usage })}\n\n`;
const word = (content: string, reason: string | null = null, usage?: object) =>
  chunk([{ index: 0, delta: { content }, finish_reason: reason }], usage);
const usage = (output: number) => ({ prompt_tokens: 7, completion_tokens: output, total_tokens: 7 + output });
const billed = (output: number) => ({ ...usage(output), cost: COST_USD });
const DONE = "data: [DONE]\n\n";

const valuesOf = (text: string): Loose[] =>
  framesOf(text).flatMap(({ data }) => (data === "[DONE]" ? [] : [JSON.parse(data)]));

describe("a chat host's usage", () => {
  test.each<[string, string[], object[]]>([
    ["alone at the end", [word("Hi"), word("", "stop"), chunk([], usage(1))], [billed(1)]],
    ["next to the reason to finish", [word("Hi"), word("", "stop", usage(1))], [billed(1)]],
    ["next to the last word", [word("Hi"), word("!", "stop", usage(2))], [billed(2)]],
    [
      "with comments behind it",
      [word("Hi", "stop"), chunk([], usage(1)), ": cost\n\n", ":\n\n"],
      [billed(1)],
    ],
    [
      "in every chunk",
      [word("Hi", null, usage(1)), word("!", null, usage(2)), word("", "stop", usage(2))],
      [usage(1), usage(2), billed(2)],
    ],
    [
      "twice at the end",
      [word("Hi"), word("", "stop", usage(1)), chunk([], usage(1))],
      [usage(1), billed(1)],
    ],
    [
      "of two choices, of which one goes on",
      [word("Hi", "stop", usage(1)), word("!"), word("", "stop", usage(2))],
      [usage(1), billed(2)],
    ],
    [
      "in several lines",
      [word("Hi", "stop"), chunk([], usage(1)).replace(',"usage"', ',\ndata: "usage"')],
      [billed(1)],
    ],
    ["empty", [word("Hi", "stop"), chunk([], {})], [{ cost: COST_USD }]],
  ])("%s carries the bill, at any split", (_name, events, expected) => {
    const bytes = encode(events.join("") + DONE);
    const text = given(open(), [bytes]);
    expect(valuesOf(text).flatMap((value) => (value.usage ? [value.usage] : []))).toEqual(expected);
    for (const size of [1, 2, 7, 61]) expect(given(open(), inPieces(bytes, size))).toBe(text);
    expect(text).toEndWith(DONE);
  });

  test("makes nobody wait but for the usage itself", () => {
    const judge = open();
    expect(decode(judge.push(encode(word("Hi", null, usage(1)))))).toContain("Hi");
    expect(decode(judge.push(encode(word("", "stop", usage(1)))))).toBe("");
    // More text: what was held back goes before it.
    const more = decode(judge.push(encode(word("!"))));
    expect(valuesOf(more).map(({ choices }) => choices[0].delta.content)).toEqual(["", "!"]);
  });

  test("that is never reported is sent with the bill's tokens", () => {
    const text = given(open(), [encode(word("abcdefgh") + word("", "stop") + DONE)]);
    expect(valuesOf(text).at(-1)).toMatchObject({
      id: "c",
      object: "chat.completion.chunk",
      model: METADATA.publicModel,
      choices: [],
      usage: { completion_tokens: 2, cost: COST_USD },
    });
  });

  test("is given before the error of a stream that broke behind it, unless nothing is charged", () => {
    const error = { message: "Gone.", type: "api_error", code: "upstream_error", param: null } as const;
    const broken = () => {
      const judge = open();
      givenSoFar(judge, [encode(word("Hi") + chunk([], usage(1)))]);
      expect(judge.fault).not.toBeNull();
      return judge;
    };
    const judge = broken();
    expect(valuesOf(decode(judge.fail(error, billOf(judge))))).toMatchObject([
      { usage: billed(1) },
      { error },
      { choices: [{ finish_reason: "error" }] },
    ]);
    expect(valuesOf(decode(broken().fail(error, null)))).toHaveLength(2);
  });

  test("is followed by the error alone where the client has the reason to finish already", () => {
    const error = { message: "Gone.", type: "api_error", code: "internal_error", param: null } as const;
    const judge = open();
    judge.push(encode(word("Hi", "stop") + DONE));
    expect(valuesOf(decode(judge.fail(error, null)))).toEqual([{ error }]);
    const failed = open();
    failed.push(encode(word("Hi") + word("", "error")));
    expect(valuesOf(decode(failed.fail(error, null)))).toMatchObject([
      { error },
      { choices: [{ finish_reason: "error" }] },
    ]);
  });

  test("does not keep what comes behind it without end", () => {
    const judge = open();
    judge.push(encode(word("Hi", "stop") + chunk([], usage(1))));
    let length = 0;
    for (let n = 0; n < 100; n++) length += judge.push(encode(`: ${"x".repeat(1_000)}\n\n`)).length;
    expect(length).toBeGreaterThan(60_000);
  });
});

describe("everything else of the event that tells the bill stays as it came", () => {
  test("chat", () => {
    const event = 'data: {"id":"c","n":1.0,"choices":[],"usage":{"cost":9,"prompt_tokens":7},"x":[1e3]}\n\n';
    const text = given(open(), [encode(word("Hi", "stop") + event + DONE)]);
    expect(text).toContain(
      `data: {"id":"c","n":1.0,"choices":[],"usage":{"cost":${COST_USD},"prompt_tokens":7},"x":[1e3]}\n\n`,
    );
  });

  test("messages, with a ping behind it", () => {
    const events = [
      'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}\n\n',
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n',
      'event: message_delta\ndata: {"type":"message_delta","delta":{"n":1.0},"usage":{"output_tokens":1}}\n\n',
      'event: ping\ndata: {"type":"ping"}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ];
    const withCost = events[2]!.replace("}}\n\n", `,"cost":${COST_USD}}}\n\n`);
    expect(given(open("messages"), [encode(events.join(""))])).toBe(events.with(2, withCost).join(""));
  });

  test("responses, deeper than any request may be", () => {
    for (const depth of [3, 200]) {
      const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const response = `{"id":"r","output":[],"text":${deep},"model":"theirs","usage":{"output_tokens":1}}`;
      const event = `event: response.completed\ndata: {"type":"response.completed","response":${response}}\n\n`;
      expect(given(open("responses"), [encode(event)])).toBe(
        event.replace('"theirs"', '"test/model"').replace("1}", `1,"cost":${COST_USD}}`),
      );
    }
  });

  test("a whole answer, with spaces and without a usage", () => {
    const { readReply } = pairing("messages", "messages");
    const whole = '{ "model": "theirs", "n": 1.0, "content": [{ "type": "text", "text": "Hi" }] }';
    const body = bodyOf(readReply(encode(whole), openRequest("messages", false), METADATA));
    expect(body).toStartWith(whole.replace("theirs", "test/model").slice(0, -1));
    expect(JSON.parse(body).usage).toMatchObject({ output_tokens: 1, cost: COST_USD });
  });
});
