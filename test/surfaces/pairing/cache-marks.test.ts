import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import type { CacheRetention, Price } from "../../../src/catalog/price.ts";
import type { HostTarget } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import type { NanoPerMillion } from "../../../src/units/usd.ts";

/** Marks for prompt caches, from clients of each language to hosts of each. */
const TARGET: HostTarget = {
  model: "m",
  publicModel: "test/m",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 100,
};
/** Models of OpenAI from GPT-5.6 on. */
const AT_MARKS = { ...TARGET, quirks: { cacheMarks: true } };
/** OpenRouter's chat. */
const CONTROLS = { ...TARGET, quirks: { cacheControl: true } };

// biome-ignore lint/suspicious/noExplicitAny: looked into as hosts are sent it.
type Loose = any;

function sent(client: SurfaceName, host: SurfaceName, body: object, target: HostTarget) {
  const request = SURFACES[client].readRequest(Buffer.from(JSON.stringify({ model: "test/m", ...body })));
  if (refused(request)) throw new Error(request.message);
  const encoded = pairing(client, host).hostBody(request, target);
  if (refused(encoded)) return { refusal: encoded, json: null as Loose, omitted: [] };
  return {
    refusal: null,
    json: JSON.parse(Buffer.concat(encoded.parts).toString()) as Loose,
    omitted: encoded.omitted,
  };
}

const control = (ttl?: string) => ({ cache_control: { type: "ephemeral", ...(ttl && { ttl }) } });
const point = (ttl?: string) => ({ prompt_cache_breakpoint: { mode: "explicit", ...(ttl && { ttl }) } });

/** The texts at whose ends a request is marked, in the order of the prompt, with the time that the mark says. */
function marksIn(json: Loose): string[] {
  const found: string[] = [];
  const visit = (value: Loose, name: string) => {
    if (typeof value !== "object" || value === null) return;
    const mark = value.cache_control ?? value.prompt_cache_breakpoint;
    for (const [key, inner] of Object.entries(value)) visit(inner, key);
    const text = value.text ?? value.name ?? value.output ?? value.content ?? name;
    if (mark) found.push(`${typeof text === "string" ? text : value.type}${mark.ttl ? ` ${mark.ttl}` : ""}`);
  };
  for (const part of [json.tools, json.system, json.messages ?? json.input]) visit(part, "");
  return found;
}

/** Instructions, a question, a call with its result, and a question, each of which a client may mark. */
type Marks = Partial<Record<"tool" | "system" | "first" | "call" | "result" | "last", object>>;
const BODIES: Record<SurfaceName, (marks: Marks) => object> = {
  messages: ({ tool, system, first, call, result, last }) => ({
    max_tokens: 50,
    tools: [{ name: "view", input_schema: { type: "object" }, ...tool }],
    system: [{ type: "text", text: "Be brief.", ...system }],
    messages: [
      { role: "user", content: [{ type: "text", text: "One?", ...first }] },
      { role: "assistant", content: [{ type: "tool_use", id: "c", name: "view", input: {}, ...call }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "Seen.", ...result }] },
      { role: "assistant", content: [{ type: "text", text: "Yes." }] },
      { role: "user", content: [{ type: "text", text: "Two?", ...last }] },
    ],
  }),
  "chat.completions": ({ tool, system, first, result, last }) => ({
    tools: [{ type: "function", function: { name: "view", parameters: { type: "object" } }, ...tool }],
    messages: [
      { role: "system", content: [{ type: "text", text: "Be brief.", ...system }] },
      { role: "user", content: [{ type: "text", text: "One?", ...first }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "view", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c", content: [{ type: "text", text: "Seen.", ...result }] },
      { role: "assistant", content: "Yes." },
      { role: "user", content: [{ type: "text", text: "Two?", ...last }] },
    ],
  }),
  responses: ({ tool, system, first, result, last }) => ({
    tools: [{ type: "function", name: "view", parameters: { type: "object" }, strict: false, ...tool }],
    input: [
      { role: "developer", content: [{ type: "input_text", text: "Be brief.", ...system }] },
      { role: "user", content: [{ type: "input_text", text: "One?", ...first }] },
      { type: "function_call", call_id: "c", name: "view", arguments: "{}" },
      {
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_text", text: "Seen.", ...result }],
      },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes." }] },
      { role: "user", content: [{ type: "input_text", text: "Two?", ...last }] },
    ],
  }),
};

describe("a mark behind the instructions and at the end, in nine pairings", () => {
  const OWN = { messages: control(), "chat.completions": point(), responses: point() };
  for (const client of SURFACE_NAMES)
    for (const host of SURFACE_NAMES)
      test(`from ${client} to ${host}`, () => {
        const marks = { system: OWN[client], last: OWN[client] };
        const { json, omitted } = sent(client, host, BODIES[client](marks), AT_MARKS);
        const ends = marksIn(json);
        expect([ends[0], ends.at(-1)]).toEqual(["Be brief.", "Two?"]);
        expect(omitted).toEqual([]);
        expect(JSON.stringify(json).includes("cache_control")).toBe(host === "messages");
      });
});

/** Prices of writes by retention, in nano-dollars per million tokens. */
const sells = (...retentions: CacheRetention[]): Price => {
  const nano = (rate: number) => rate as NanoPerMillion;
  const cacheWrites = Object.fromEntries(retentions.map((one, at) => [one, nano(10 * (at + 1))]));
  return { input: nano(8), output: nano(40), cacheRead: nano(1), cacheWrite: nano(10), cacheWrites };
};

describe("a mark is kept for the nearest time that the host knows and that has a price there", () => {
  const HALF_DAY = { "chat.completions": point("12h"), responses: point("12h"), messages: control("1h") };
  const cases: [SurfaceName, SurfaceName, Price, string][] = [
    ["chat.completions", "chat.completions", sells("30m", "12h"), "12h"],
    ["chat.completions", "responses", sells("30m", "12h"), "12h"],
    ["chat.completions", "responses", sells("30m"), "30m"],
    ["chat.completions", "messages", sells("5m", "1h"), "1h"],
    ["chat.completions", "messages", sells("5m"), "5m"],
    ["responses", "chat.completions", sells("30m", "12h"), "12h"],
    ["responses", "chat.completions", sells("30m"), "30m"],
    ["responses", "responses", sells("30m", "12h"), "12h"],
    ["responses", "messages", sells("5m", "1h"), "1h"],
    ["responses", "messages", sells("5m"), "5m"],
    ["messages", "chat.completions", sells("30m", "12h"), "30m"],
    ["messages", "responses", sells("30m", "12h"), "30m"],
    ["messages", "messages", sells("5m", "1h"), "1h"],
  ];
  const DEFAULT = { messages: "5m", "chat.completions": "30m", responses: "30m" };
  test.each(cases)("from %s to %s", (client, host, price, kept) => {
    const { json, omitted } = sent(client, host, BODIES[client]({ last: HALF_DAY[client] }), {
      ...AT_MARKS,
      price,
    });
    expect(marksIn(json).at(-1)).toBe(kept === DEFAULT[host] ? "Two?" : `Two? ${kept}`);
    expect(omitted).toEqual([]);
  });

  test.each([
    ["30m", "12h", { mode: "explicit", ttl: "12h" }],
    ["30m", null, { mode: "explicit" }],
  ] as const)(
    "and so is the whole request, where writes have prices for %s and %s",
    (short, long, options) => {
      const body = {
        ...BODIES.responses({ last: point() }),
        prompt_cache_options: { mode: "explicit", ttl: "12h" },
      };
      const price = long === null ? sells(short) : sells(short, long);
      const { json } = sent("responses", "chat.completions", body, { ...AT_MARKS, price });
      expect(json.prompt_cache_options).toEqual(options);
    },
  );

  test("a mark for half an hour does not get the twelve hours of the whole request", () => {
    const marks = { first: point("30m"), last: point() };
    const body = { ...BODIES.responses(marks), prompt_cache_options: { mode: "explicit", ttl: "12h" } };
    const target = { ...AT_MARKS, price: sells("30m", "12h") };
    expect(marksIn(sent("responses", "chat.completions", body, target).json)).toEqual([
      "One? 30m",
      "Two? 12h",
    ]);
  });
});

describe("Anthropic's marks on hosts that match at marks", () => {
  test.each(["responses", "chat.completions"] as const)(
    "get one at the end of each message before them, and nothing else is cached: %s",
    (host) => {
      const { json } = sent(
        "messages",
        host,
        BODIES.messages({ system: control(), last: control() }),
        AT_MARKS,
      );
      expect(marksIn(json)).toEqual(["Be brief.", "One?", "Seen.", "Two?"]);
      expect(json.prompt_cache_options).toEqual({ mode: "explicit" });
    },
  );
  const moved: [string, Marks, string[]][] = [
    ["on a tool: behind the instructions", { tool: control() }, ["Be brief."]],
    ["on a call: behind the message before it", { call: control() }, ["Be brief.", "One?"]],
    ["on a result: at the end of its text", { result: control() }, ["Be brief.", "One?", "Seen."]],
  ];
  test.each(moved)("one %s", (_, marks, expected) => {
    const { json, omitted } = sent("messages", "responses", BODIES.messages(marks), AT_MARKS);
    expect([marksIn(json), omitted]).toEqual([expected, []]);
  });
  test("one on the whole request leaves the rest to the host", () => {
    const { json, omitted } = sent(
      "messages",
      "responses",
      { ...BODIES.messages({}), ...control() },
      AT_MARKS,
    );
    expect([marksIn(json), json.prompt_cache_options, omitted]).toEqual([[], undefined, []]);
  });
  test("of a long conversation, the first two and the latest 48 are sent", () => {
    const messages = Array.from({ length: 201 }, (_, n) => ({
      role: n % 2 === 0 ? "user" : "assistant",
      content: [{ type: "text", text: `n${n}`, ...(n === 200 && control()) }],
    }));
    const { json } = sent(
      "messages",
      "responses",
      { max_tokens: 50, system: "Be brief.", messages },
      AT_MARKS,
    );
    const ends = marksIn(json);
    expect([ends.length, ends[0], ends[1], ends[2], ends.at(-1)]).toEqual([
      50,
      "Be brief.",
      "n0",
      "n106",
      "n200",
    ]);
  });
  test("where there is nothing to mark, caching is left to the host and the mark is named", () => {
    const bare = {
      max_tokens: 50,
      tools: [{ name: "a", input_schema: {}, ...control() }],
      messages: [{ role: "user", content: "Hi" }],
    };
    const { json, omitted } = sent("messages", "responses", bare, AT_MARKS);
    expect([json.prompt_cache_options, omitted]).toEqual([undefined, ["cache_control"]]);
  });
});

describe("OpenAI's marks on hosts of Messages", () => {
  const all: Marks = { system: point(), first: point(), result: point(), last: point() };
  test("are at most four with the newest message, which OpenAI's hosts mark by themselves: the first, and the latest", () => {
    const turns = [0, 1, 2, 3].flatMap((n) => [
      { role: "user", content: [{ type: "input_text", text: `q${n}`, ...point() }] },
      { role: "assistant", content: `a${n}` },
    ]);
    const input = [...turns, { role: "user", content: "now" }];
    const { json, omitted } = sent("responses", "messages", { input, max_output_tokens: 50 }, TARGET);
    expect(marksIn(json)).toEqual(["q0", "q2", "q3", "now"]);
    expect(omitted).toEqual(["prompt_cache_breakpoint"]);
  });
  test("stand on the result that contains them", () => {
    const { json } = sent("chat.completions", "messages", BODIES["chat.completions"](all), TARGET);
    expect(json.messages[2].content).toEqual([
      { type: "tool_result", tool_use_id: "c", content: "Seen.", ...control() },
    ]);
  });
  test("with `mode: explicit` nothing else is marked, even with a cache key", () => {
    const more = { prompt_cache_options: { mode: "explicit" }, prompt_cache_key: "k" };
    for (const marks of [{ first: point() }, {}]) {
      const { json, omitted } = sent(
        "responses",
        "messages",
        { ...BODIES.responses(marks), ...more },
        TARGET,
      );
      expect([marksIn(json), omitted]).toEqual(["first" in marks ? ["One?"] : [], []]);
    }
  });
  test("options without marks have the tools, the instructions and the newest turns marked", () => {
    const more = { prompt_cache_options: { mode: "implicit" } };
    const { json } = sent("responses", "messages", { ...BODIES.responses({}), ...more }, TARGET);
    expect(marksIn(json)).toEqual(["view", "Be brief.", "Seen.", "Two?"]);
  });
});

describe("the nearest time that the host knows", () => {
  const table: [SurfaceName, SurfaceName, string | undefined, string, HostTarget][] = [
    ["messages", "responses", "1h", "Two?", AT_MARKS],
    ["messages", "chat.completions", "1h", "Two? 1h", CONTROLS],
    ["responses", "messages", "30m", "Two?", TARGET],
    ["responses", "chat.completions", "30m", "Two?", AT_MARKS],
  ];
  test.each(table)("from %s to %s: %s", (client, host, ttl, expected, target) => {
    const mark = client === "messages" ? control(ttl) : point(ttl);
    const { json } = sent(client, host, BODIES[client]({ last: mark }), target);
    expect(marksIn(json).at(-1)).toBe(expected);
  });
  test("earlier marks last as long as later ones, because Anthropic refuses the opposite", () => {
    const marks = { system: point(), first: control("1h"), last: point() };
    const { json } = sent("chat.completions", "messages", BODIES["chat.completions"](marks), TARGET);
    expect(marksIn(json)).toEqual(["Be brief. 1h", "One? 1h", "Two?"]);
  });
  test("a time that the client's language does not have is refused by name", () => {
    const { refusal } = sent("responses", "messages", BODIES.responses({ first: point("1h") }), TARGET);
    const param = "input[1].content[0].prompt_cache_breakpoint.ttl";
    expect([refusal?.code, refusal?.details.param]).toEqual(["invalid_request", param]);
  });
});

describe("hosts that take no marks", () => {
  const table: [SurfaceName, SurfaceName, object, string[]][] = [
    ["messages", "responses", BODIES.messages({ last: control() }), ["cache_control"]],
    ["messages", "chat.completions", BODIES.messages({ tool: control() }), ["cache_control"]],
    ["responses", "chat.completions", BODIES.responses({ last: point() }), ["prompt_cache_breakpoint"]],
    [
      "chat.completions",
      "responses",
      { ...BODIES["chat.completions"]({}), prompt_cache_options: { ttl: "30m" } },
      ["prompt_cache_options"],
    ],
  ];
  test.each(table)(
    "from %s to %s are sent none, and the client learns of it",
    (client, host, body, expected) => {
      const { json, omitted } = sent(client, host, body, TARGET);
      expect([marksIn(json), json.prompt_cache_options, omitted]).toEqual([[], undefined, expected]);
    },
  );
});

describe("chat clients on chat hosts", () => {
  const OPENAI = { ...TARGET, quirks: { maxCompletionTokens: true } };
  const chat = (marks: Marks) => BODIES["chat.completions"](marks);
  test("Anthropic's marks become the host's own where it matches at marks", () => {
    const { json, omitted } = sent(
      "chat.completions",
      "chat.completions",
      chat({ system: control(), last: control() }),
      AT_MARKS,
    );
    expect([marksIn(json), omitted]).toEqual([["Be brief.", "Two?"], []]);
    expect(JSON.stringify(json)).not.toContain("cache_control");
  });
  test("they are left out where the host would refuse them", () => {
    const { json, omitted } = sent("chat.completions", "chat.completions", chat({ last: control() }), OPENAI);
    expect([marksIn(json), omitted]).toEqual([[], ["cache_control"]]);
  });
  test("OpenAI's are left out on hosts that refuse what only OpenAI has", () => {
    const target = { ...TARGET, quirks: { coreFieldsOnly: true } };
    const { json, omitted } = sent("chat.completions", "chat.completions", chat({ last: point() }), target);
    expect([marksIn(json), omitted]).toEqual([[], ["prompt_cache_breakpoint"]]);
  });
  test("a text that speaks of marks arrives as it came", () => {
    const body = { messages: [{ role: "user", content: 'What is "cache_control"?' }] };
    expect(sent("chat.completions", "chat.completions", body, OPENAI)).toMatchObject({
      json: body,
      omitted: [],
    });
  });
});

describe("`auto_cache` on hosts that match at marks", () => {
  const target = { ...AT_MARKS, marksCache: true };
  const END = { type: "input_text", text: "Be brief.", ...point() };
  const table: [string, SurfaceName, SurfaceName, object, object][] = [
    [
      "instructions of Responses become the message that they are",
      "responses",
      "responses",
      { instructions: "Be brief.", input: "Hi" },
      {
        input: [
          { type: "message", role: "developer", content: [END] },
          { type: "message", role: "user", content: "Hi" },
        ],
      },
    ],
    [
      "the same before a list, and where they come last",
      "responses",
      "responses",
      { input: [{ role: "user", content: "Hi" }], instructions: "Be brief." },
      {
        input: [
          { type: "message", role: "developer", content: [END] },
          { role: "user", content: "Hi" },
        ],
      },
    ],
    [
      "behind the last message of instructions, with the instructions before it",
      "responses",
      "responses",
      {
        instructions: "A",
        input: [
          { role: "developer", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
      },
      {
        instructions: "A",
        input: [
          { role: "developer", content: [END] },
          { role: "user", content: "Hi" },
        ],
      },
    ],
    [
      "chat",
      "chat.completions",
      "chat.completions",
      {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
      },
      {
        messages: [
          { role: "system", content: [{ ...END, type: "text" }] },
          { role: "user", content: "Hi" },
        ],
      },
    ],
    [
      "a client of Messages",
      "messages",
      "responses",
      { max_tokens: 50, system: "Be brief.", messages: [{ role: "user", content: "Hi" }] },
      {
        input: [
          { type: "message", role: "system", content: [END] },
          { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] },
        ],
      },
    ],
  ];
  test.each(table)("%s", (_, client, host, body, expected) => {
    const { json } = sent(client, host, body, target);
    const { model: _m, store: _s, include: _i, max_output_tokens: _o, ...rest } = json;
    expect(rest).toEqual(expected);
  });
  test.each([
    ["a request without instructions", { input: "Hi" }],
    ["a client's own marks", BODIES.responses({ first: point() })],
    [
      "a client that wants nothing else cached",
      { instructions: "A", input: "Hi", prompt_cache_options: { mode: "explicit" } },
    ],
  ])("%s stays as it is", (_, body) => {
    const { json } = sent("responses", "responses", body, target);
    expect(json).toMatchObject(body);
  });
});
