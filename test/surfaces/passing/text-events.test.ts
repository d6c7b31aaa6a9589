import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import type { GenerationRequest, StreamJudge } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { estimateTokens } from "../../../src/tokens/estimate.ts";
import { Random } from "../../sim/random.ts";

/**
 * Events that carry text are read where they stand. Whatever their shape, they say what `JSON.parse` finds in
 * them.
 */
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const BEGIN: Record<SurfaceName, object> = {
  "chat.completions": { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 9 },
};

function judgeFor(surface: SurfaceName, more: object = {}): StreamJudge {
  const body = { model: "test/model", stream: true, ...BEGIN[surface], ...more };
  const request = SURFACES[surface].readRequest(encode(JSON.stringify(body))) as GenerationRequest;
  return pairing(surface, surface).openStream(request, { publicModel: "test/model", atS: 0 });
}

/** With its first token behind it, which is read by other means. */
function chatJudge(more: object = {}): StreamJudge {
  const judge = judgeFor("chat.completions", more);
  judge.push(encode('data: {"id":"c","created":1,"choices":[{"delta":{"content":"abcd"}}]}\n\n'));
  return judge;
}

/** What the client gets of it, and what it counted. */
function pushed(judge: StreamJudge, data: string): { given: string; tokens: number } {
  const before = judge.countedTokens;
  const given = decode(judge.push(encode(`data: ${data}\n\n`)));
  return { given: given.replace(/^data: |\n\n$/g, ""), tokens: judge.countedTokens - before };
}

const CHUNK = '"choices":[{"index":0,"delta":{"content":"abcd"},"finish_reason":null}]';

interface Case {
  readonly says: string;
  readonly data: string;
  /** The same as `data` where it is left out. */
  readonly given?: string;
  readonly tokens: number;
  readonly wantsUsage?: boolean;
}

const CHAT: readonly Case[] = [
  { says: "text", data: `{"id":"c",${CHUNK}}`, tokens: 1 },
  {
    says: "the host's model",
    data: `{"model":"theirs",${CHUNK}}`,
    given: `{"model":"test/model",${CHUNK}}`,
    tokens: 1,
  },
  {
    says: "a model with an escaped quote",
    data: String.raw`{"model":"the\"irs",${CHUNK}}`,
    given: `{"model":"test/model",${CHUNK}}`,
    tokens: 1,
  },
  { says: "the client's model", data: `{"model":"test/model",${CHUNK}}`, tokens: 1 },
  { says: "no model", data: `{"model":null,${CHUNK}}`, tokens: 1 },
  {
    says: "null as usage, last",
    data: `{"model":"theirs",${CHUNK},"usage":null}`,
    given: `{"model":"test/model",${CHUNK}}`,
    tokens: 1,
  },
  {
    says: "null as usage, first",
    data: `{"usage":null,"model":"theirs",${CHUNK}}`,
    given: `{"model":"test/model",${CHUNK}}`,
    tokens: 1,
  },
  {
    says: "null as usage, before the model",
    data: `{"id":"c","usage": null, "model":"theirs",${CHUNK}}`,
    given: `{"id":"c", "model":"test/model",${CHUNK}}`,
    tokens: 1,
  },
  {
    says: "null as usage, which the client wants",
    data: `{${CHUNK},"usage":null}`,
    tokens: 1,
    wantsUsage: true,
  },
  {
    says: "a number as usage, which is withheld",
    data: `{${CHUNK},"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
    given: `{${CHUNK}}`,
    tokens: 1,
  },
  {
    says: "a model that is named inside a text only",
    data: '{"choices":[{"delta":{"content":"\\"model\\":\\"theirs\\""}}]}',
    tokens: 4,
  },
  {
    says: "members whose names are spelt with escapes",
    data: String.raw`{"\u0063hoices":[{"index":0,"delta":{"content":"abcd"}}]}`,
    tokens: 1,
  },
  {
    says: "a member within a choice whose name is spelt with an escape",
    data: String.raw`{"choices":[{"index":0,"delt\u0061":{"content":"abcd"}}]}`,
    tokens: 1,
  },
  {
    says: "thoughts by both of their names, which count once",
    data: '{"choices":[{"delta":{"reasoning_content":"abcdefgh","content":null,"reasoning":"abcdefgh"}}]}',
    tokens: 2,
  },
  {
    says: "two choices",
    data: '{"choices":[{"delta":{"content":"abcd"}},{"delta":{"content":"abcdefgh"}}]}',
    tokens: 3,
  },
  {
    says: "a call's arguments",
    data: '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"abcd"}}]}}]}',
    tokens: 1,
  },
  {
    says: "no calls next to text",
    data: '{"choices":[{"delta":{"content":"abcd","tool_calls":[]}}]}',
    tokens: 1,
  },
  {
    says: "null as calls next to text",
    data: '{"choices":[{"delta":{"content":"abcd","tool_calls":null}}]}',
    tokens: 1,
  },
  {
    says: "two calls, with names and arguments",
    data: '{"model":"theirs","choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"abcd","arguments":"{\\"a\\""}},{"index":1,"function":{"arguments":"abcd"}}]}}]}',
    given:
      '{"model":"test/model","choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"abcd","arguments":"{\\"a\\""}},{"index":1,"function":{"arguments":"abcd"}}]}}]}',
    tokens: 3,
  },
  {
    says: "a freeform call",
    data: '{"choices":[{"delta":{"tool_calls":[{"index":0,"custom":{"name":"abcd","input":"abcd"}}]}}]}',
    tokens: 2,
  },
  {
    says: "a list that does not end",
    data: '{"model":"theirs","choices":[{"delta":{"content":"abcd"}},',
    given: "",
    tokens: 0,
  },
  {
    says: "spaces everywhere",
    data: ' { "model" : "theirs" , "choices" : [ { "delta" : { "content" : "abcd" } } ] } ',
    given: ' { "model" : "test/model" , "choices" : [ { "delta" : { "content" : "abcd" } } ] } ',
    tokens: 1,
  },
  { says: "more behind its object", data: `{"model":"theirs",${CHUNK}} and more`, given: "", tokens: 0 },
  { says: "no whole object", data: `{"model":"theirs",${CHUNK}`, given: "", tokens: 0 },
  { says: "no content but an empty one", data: '{"choices":[{"delta":{"content":""}}]}', tokens: 0 },
];

describe("a chat chunk inside a stream", () => {
  for (const { says, data, given = data, tokens, wantsUsage = false } of CHAT) {
    test(`with ${says}`, () => {
      const judge = chatJudge(wantsUsage ? { stream_options: { include_usage: true } } : {});
      expect(pushed(judge, data)).toEqual({ given, tokens });
      expect(judge.fault === null).toBe(given !== "");
    });
  }

  test("an error next to text is the host's fault", () => {
    const judge = chatJudge();
    expect(pushed(judge, `{${CHUNK},"error":{"message":"overloaded"}}`).given).toBe("");
    expect(judge.fault?.message).toBe("overloaded");
  });

  test("a reason to finish next to text is noticed", () => {
    const judge = chatJudge();
    pushed(judge, '{"choices":[{"delta":{"content":"abcd"},"finish_reason":"stop"}]}');
    judge.end();
    expect(judge.isComplete).toBe(true);
  });

  test("seeded: members in any order, with any text, leave the client what JSON.parse finds", () => {
    const random = new Random(20);
    const judge = chatJudge();
    for (let round = 0; round < 500; round++) {
      const { data, text } = randomChunk(random);
      const before = judge.countedTokens;
      const given = pushed(judge, data).given;
      const { usage, ...rest } = JSON.parse(data);
      expect(JSON.parse(given)).toEqual("model" in rest ? { ...rest, model: "test/model" } : rest);
      expect(Math.abs(judge.countedTokens - before - estimateTokens(text))).toBeLessThan(1);
    }
  });
});

function randomChunk(random: Random): { data: string; text: string } {
  const text = Array.from({ length: random.below(12) }, () => SIGNS[random.below(SIGNS.length)]).join("");
  const members = [
    '"id":"chatcmpl-1"',
    '"model":"host/{[\\"model"',
    '"usage":null',
    '"obfuscation":"}]\\\\"',
    '"empty":{"model":"x","list":[1,{},[]]}',
  ].filter(() => random.below(2) === 0);
  const content = random.below(2) === 0 ? JSON.stringify(text) : escaped(text);
  const delta = `{"role":"assistant","content":${content}}`;
  members.splice(random.below(members.length + 1), 0, `"choices":[{"index":0,"delta":${delta}}]`);
  return { data: `{${members.join(random.below(2) === 0 ? "," : " , ")}}`, text };
}

const SIGNS = ["a", " ", "\n", '"', "\\", "é", "こ", "🌍", "{", "}", "]", ",", "\u0001", "data:"];

const escaped = (text: string): string =>
  `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`;

const DELTAS: readonly (readonly [SurfaceName, says: string, data: string, tokens: number])[] = [
  [
    "messages",
    "text",
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"abcd"}}',
    1,
  ],
  ["messages", "its type at its end", '{"index":0,"delta":{"text":"abcd"},"type":"content_block_delta"}', 1],
  [
    "messages",
    "a signature",
    '{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"abcd"}}',
    0,
  ],
  ["messages", "arguments", '{"type":"content_block_delta","delta":{"partial_json":"{\\"a\\":"}}', 1.25],
  ["messages", "no type", '{"delta":{"text":"abcd"}}', 0],
  ["messages", "another type", '{"type":"ping","delta":{"text":"abcd"}}', 0],
  [
    "messages",
    "a number for a text",
    '{"type":"content_block_delta","delta":{"text":1,"thinking":"abcd"}}',
    1,
  ],
  ["responses", "text", '{"type":"response.output_text.delta","sequence_number":7,"delta":"abcd"}', 1],
  [
    "responses",
    "its type at its end",
    '{"sequence_number":7,"delta":"abcd","type":"response.refusal.delta"}',
    1,
  ],
  ["responses", "audio", '{"type":"response.audio.delta","sequence_number":7,"delta":"abcd"}', 0],
  [
    "responses",
    "a number that is none",
    '{"type":"response.output_text.delta","sequence_number":null,"delta":"abcd"}',
    1,
  ],
];

for (const [surface, says, data, tokens] of DELTAS) {
  test(`${surface}: a delta with ${says} passes as it came, and counts`, () => {
    const judge = judgeFor(surface);
    expect(pushed(judge, data)).toEqual({ given: data, tokens: Math.ceil(tokens) });
    expect(judge.tokenSeen).toBe(tokens > 0);
    expect(judge.fault).toBeNull();
  });
}

test("responses: the event that ends a broken stream has the number behind the last delta's", () => {
  const judge = judgeFor("responses");
  pushed(judge, '{"type":"response.output_text.delta","sequence_number":41,"delta":"abcd"}');
  const error = { message: "Gone.", type: "api_error", code: "upstream_error", param: null } as never;
  expect(decode(judge.fail(error, null))).toContain('"sequence_number":42');
});

const BROKEN: Record<SurfaceName, string> = {
  "chat.completions": `{"id":"c","model":"theirs",${CHUNK},"usage":null}`,
  messages: DELTAS[0]![2],
  responses: DELTAS[7]![2],
};

for (const surface of SURFACE_NAMES) {
  test(`seeded: ${surface}: bytes that are broken anywhere never throw, and never reach into the next event`, () => {
    const random = new Random(3);
    const whole = encode(`data: ${BROKEN[surface]}`);
    const next = `data: ${BROKEN[surface]}\n\n`;
    const alone = decode(chosenJudge(surface).push(encode(next)));
    for (let round = 0; round < 2_000; round++) {
      const bytes = whole.slice(0, 1 + random.below(whole.length));
      for (let change = random.below(4); change > 0; change--)
        bytes[random.below(bytes.length)] = encode(random.pick([...'{}[]",:\\0nu ']))[0]!;
      const judge = chosenJudge(surface);
      const given = decode(judge.push(encode(`${decode(bytes)}\n\n${next}`)));
      if (judge.fault === null) expect(given.endsWith(alone)).toBe(true);
    }
  });
}

for (const surface of SURFACE_NAMES) {
  test(`${surface}: an event that is cut anywhere says nothing`, () => {
    const whole = BROKEN[surface];
    for (let length = 0; length < whole.length; length++)
      expect(pushed(chosenJudge(surface), whole.slice(0, length))).toMatchObject({ tokens: 0 });
  });
}

const chosenJudge = (surface: SurfaceName): StreamJudge =>
  surface === "chat.completions" ? chatJudge() : judgeFor(surface);
