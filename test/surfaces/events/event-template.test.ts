import { afterEach, expect, spyOn, test } from "bun:test";
import { ChatCollector } from "../../../src/surfaces/chat/collector.ts";
import { EventTemplate } from "../../../src/surfaces/events/event-template.ts";
import { MessagesCollector } from "../../../src/surfaces/messages/collector.ts";
import { ResponsesCollector } from "../../../src/surfaces/responses/collector.ts";
import type { StreamJudge } from "../../../src/surfaces/surface.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { rounds } from "../../rounds.ts";
import { Random } from "../../sim/random.ts";
import { bodyOf, lastOf } from "../harness.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (given: Uint8Array) => new TextDecoder().decode(given);

const LANGUAGES = ["chat.completions", "messages", "responses"] as const;
type Language = (typeof LANGUAGES)[number];

function judgeOf(host: Language, client = host): StreamJudge {
  const request = { surface: client, json: {}, stream: true, choices: 1 } as never;
  return pairing(client, host).openStream(request, { publicModel: "public/model", atS: 0 });
}

/** Everything that a judge says of a stream: of its events one by one, and at the end. */
function verdict(host: Language, events: readonly string[], client = host): unknown {
  const judge = judgeOf(host, client);
  const given = events.map((event) => text(judge.push(bytes(event))));
  given.push(text(judge.end()));
  const { tokenSeen, countedTokens, usage, fault, isComplete, hasStopped } = judge;
  const written = judge.text.all();
  return {
    given,
    tokenSeen,
    countedTokens,
    written,
    usage,
    fault,
    hasStopped,
    last: isComplete && lastOf(judge),
  };
}

afterEach(() => spyOn(EventTemplate.prototype, "pass").mockRestore());

/** The same, by a judge that reads each event. */
function verdictByReading(host: Language, events: readonly string[], client = host): unknown {
  const blind = spyOn(EventTemplate.prototype, "pass").mockReturnValue(-1);
  const judged = verdict(host, events, client);
  blind.mockRestore();
  return judged;
}

const chatEvent = (delta: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "c", model: "host-model", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;

const chatText = (content: string): string => chatEvent({ content });

test("an event that differs from the last in its text alone is passed without being read", () => {
  const judge = judgeOf("chat.completions");
  const passes = spyOn(EventTemplate.prototype, "pass");
  for (const word of ["one", "two", "three", "four"]) {
    expect(text(judge.push(bytes(chatText(word))))).toBe(
      chatText(word).replace("host-model", "public/model"),
    );
  }
  expect(passes.mock.results.map(({ value }) => value !== -1)).toEqual([false, true, true, true]);
  expect(judge.countedTokens).toBe(Math.ceil((3 + 3 + 5 + 4) / 4));
});

test.each([
  ["escaped quotes and line breaks in the text", chatText('"}]}\n\\')],
  [
    "a reason to finish",
    chatEvent({ content: "x" }, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
  ],
  [
    "usage",
    chatEvent({ content: "x" }, { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }),
  ],
  ["another model", chatText("x").replace("host-model", "other-model")],
  ["text of another kind", chatEvent({ reasoning_content: "x" })],
  [
    "the same beginning, and an error at the end",
    chatEvent({ content: "x" }, { error: { message: "broken" } }),
  ],
  ["a line break in the middle of the text", chatText("abcd").replace("bc", "b\nc")],
  ["an escape that the end of the line cuts off", chatText("abcd").replace("bc", "b\\\n")],
  ["an event that is cut off", chatText("abcd").slice(0, -20)],
  ["two events in one read", chatText("a") + chatText("b")],
])("%s: what comes behind a learnt event means what it means when it is read", (_, event) => {
  const events = [...["a", "b", "c"].map(chatText), event, chatText("d"), "data: [DONE]\n\n"];
  expect(verdict("chat.completions", events)).toEqual(verdictByReading("chat.completions", events));
});

/** A stream's events, and the same cut anywhere. */
function streamOf(seed: number) {
  const random = new Random(seed);
  const language = random.pick(LANGUAGES);
  const habits = habitsOf(random);
  const events = Array.from({ length: 30 }, (_, at) => eventOf(language, random, habits, at));
  const stream = events.join("");
  const pieces: string[] = [];
  for (let at = 0; at < stream.length; ) {
    const length = random.chance(0.5) ? 1 + random.below(40) : 1 + random.below(600);
    pieces.push(stream.slice(at, at + length));
    at += length;
  }
  return { language, habits, events, pieces };
}

test("streams of all languages, cut anywhere, come out as if each event were read", () => {
  for (let seed = 0; seed < rounds(200, 1_000); seed++) {
    const { language, pieces } = streamOf(seed);
    expect(verdict(language, pieces)).toEqual(verdictByReading(language, pieces));
  }
});

test("streams that are translated, cut anywhere, come out as if each event were read", () => {
  for (let seed = 0; seed < rounds(80, 400); seed++) {
    const { language: host, pieces } = streamOf(seed);
    const stream = [...head(host), ...pieces, ...tail(host)];
    for (const client of LANGUAGES)
      if (client !== host)
        expect(verdict(host, stream, client)).toEqual(verdictByReading(host, stream, client));
  }
});

test("a translated event that differs from the last in its text alone is passed without being read", () => {
  for (const host of LANGUAGES)
    for (const client of LANGUAGES) {
      if (client === host) continue;
      const judge = judgeOf(host, client);
      for (const event of head(host)) judge.push(bytes(event));
      const passes = spyOn(EventTemplate.prototype, "pass");
      const words = ["one", " two", ' \u00e9"\n', " four"];
      const given = words.map((word) => text(judge.push(bytes(wordEvent(host, word)))));
      expect(passes.mock.results.map(({ value }) => value !== -1).slice(2)).toEqual([true, true]);
      for (const [at, word] of words.entries()) expect(given[at]).toContain(`:${JSON.stringify(word)}`);
      passes.mockRestore();
    }
});

test("a signature that comes in pieces next to the thoughts is whole for a client of another language", () => {
  const thought = { type: "thinking_delta", thinking: "so", signature: "piece" };
  const stream = [
    head("messages")[0]!,
    event("content_block_start", { index: 0, content_block: { type: "thinking", thinking: "" } }),
    ...[1, 2, 3, 4].map(() => event("content_block_delta", { index: 0, delta: thought })),
    ...tail("messages"),
  ];
  expect(JSON.stringify(verdict("messages", stream, "chat.completions"))).toContain("piece".repeat(4));
});

function wordEvent(host: Language, word: string): string {
  if (host === "chat.completions") return chatText(word);
  return host === "messages"
    ? event("content_block_delta", { index: 0, delta: { type: "text_delta", text: word } })
    : event("response.output_text.delta", { output_index: 0, content_index: 0, delta: word });
}

test("what a host pads and numbers each event with is stepped over from the fifth event on", () => {
  const padded = (at: number) =>
    chatEvent({ content: `word ${at}` }, { created: 1_000 + at, obfuscation: "x".repeat(1 + (at % 7)) });
  const numbered = (at: number) =>
    `event: response.output_text.delta\ndata: ${JSON.stringify({ type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: `word ${at}`, obfuscation: "x".repeat(1 + (at % 7)), sequence_number: 98 + at })}\n\n`;
  for (const [language, event] of [
    ["chat.completions", padded],
    ["responses", numbered],
  ] as const) {
    const judge = judgeOf(language);
    const passes = spyOn(EventTemplate.prototype, "pass");
    for (let at = 0; at < 8; at++) judge.push(bytes(event(at)));
    expect(passes.mock.results.map(({ value }) => value !== -1).lastIndexOf(false)).toBeLessThan(4);
    passes.mockRestore();
  }
});

/** Assembled for a client that wants it whole, next to the collector that receives each event. */
test("answers that are assembled of events that are alike have every word, and nothing of the padding", () => {
  for (let seed = 0; seed < rounds(150, 800); seed++) {
    const { language, events, pieces } = streamOf(seed);
    const judge = pairing(language, language).openWhole({ surface: language, json: {} } as never, {
      publicModel: "public/model",
      atS: 0,
    });
    for (const piece of [...head(language), ...pieces]) judge.push(bytes(piece));
    for (const piece of tail(language)) judge.push(bytes(piece));
    const collector = COLLECTORS[language]();
    for (const event of [...head(language), ...events, ...tail(language)]) {
      const data = /data: (.*)\n/.exec(event)?.[1] ?? "[DONE]";
      if (data !== "[DONE]") collector.add(JSON.parse(data));
    }
    const { created, usage: _, model: __, ...given } = JSON.parse(bodyOf(judge.reply()));
    const { created: ___, usage: ____, model: _____, ...expected } = collector.whole();
    expect(given).toEqual(expected as never);
    expect(given).not.toHaveProperty("obfuscation");
    expect(typeof created === "number" || created === undefined).toBe(true);
  }
});

const COLLECTORS = {
  "chat.completions": () => new ChatCollector(),
  messages: () => new MessagesCollector(),
  responses: () => new ResponsesCollector(),
};

const event = (name: string, data: object) =>
  `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`;

/** What comes before the first word, and behind the last. */
const head = (language: Language): string[] => {
  if (language === "chat.completions") return [chatEvent({ role: "assistant", content: "" })];
  if (language === "messages")
    return [
      event("message_start", {
        message: { id: "m", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
      }),
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ];
  return [
    event("response.created", { response: { id: "r", output: [] }, sequence_number: 0 }),
    event("response.output_item.added", {
      output_index: 0,
      item: { id: "msg_1", type: "message", role: "assistant", content: [] },
    }),
    event("response.content_part.added", {
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "" },
    }),
  ];
};
const tail = (language: Language): string[] => {
  if (language === "chat.completions")
    return [chatEvent({}, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }), "data: [DONE]\n\n"];
  if (language === "messages")
    return [
      event("content_block_stop", { index: 0 }),
      event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } }),
      event("message_stop", {}),
    ];
  return [event("response.completed", { response: { id: "r", output: [], usage: null } })];
};

/** What a host puts into each of its events next to the text. */
interface Habits {
  readonly pads: boolean;
  readonly numbers: boolean;
  readonly dates: boolean;
}

const habitsOf = (random: Random): Habits => ({
  pads: random.chance(0.5),
  numbers: random.chance(0.5),
  dates: random.chance(0.3),
});

/** Events between those of text, in an order that hosts keep to or not. */
const BETWEEN: Readonly<Record<Language, readonly string[]>> = {
  "chat.completions": [
    chatEvent({ role: "assistant" }),
    chatEvent({ reasoning_content: "thought" }),
    chatEvent({ content: "said" }, { logprobs: null }),
    chatEvent({ tool_calls: [{ index: 1, id: "c1", function: { name: "run", arguments: "" } }] }),
    chatEvent({}, { choices: [{ index: 0, delta: {}, finish_reason: "length" }] }),
  ],
  messages: [
    event("content_block_stop", { index: 0 }),
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    event("content_block_start", { index: 1, content_block: { type: "thinking", thinking: "" } }),
    event("content_block_delta", { index: 0, delta: { type: "signature_delta", signature: "abc" } }),
  ],
  responses: [
    event("response.output_item.added", { output_index: 0, item: { id: "m", type: "message" } }),
    event("response.output_item.added", {
      output_index: 1,
      item: { id: "f", type: "function_call", call_id: "c", name: "run" },
    }),
    event("response.function_call_arguments.delta", { output_index: 1, delta: "{}" }),
    event("response.output_item.done", {
      output_index: 0,
      item: { id: "m", type: "message", content: [] },
    }),
  ],
};

const WORDS = ["a", " token", "", '"', "\\", "\n", "data: x", '"}]}', "x".repeat(50), "\u007f"];

function eventOf(language: Language, random: Random, { pads, numbers, dates }: Habits, at: number): string {
  // Signs of life come at any time, and events that are too large to be learnt.
  if (random.chance(0.08)) return language === "messages" ? event("ping", {}) : ": sign of life\n\n";
  if (random.chance(0.04)) return random.pick(BETWEEN[language]);
  const words = random.pick(WORDS) + (random.chance(0.03) ? "x".repeat(1_200) : random.pick(WORDS));
  const rare = random.chance(0.1);
  const padding = pads ? { obfuscation: "x".repeat(random.below(12)) } : {};
  if (language === "chat.completions") {
    const dated = dates ? { created: 1_700_000_000 + at } : {};
    if (rare) return chatEvent({ tool_calls: [{ index: 0, function: { arguments: words } }] }, padding);
    return chatEvent(
      { content: words },
      { ...(random.chance(0.1) ? { usage: null } : {}), ...dated, ...padding },
    );
  }
  const data =
    language === "messages"
      ? {
          type: "content_block_delta",
          index: 0,
          delta: rare ? { type: "thinking_delta", thinking: words } : { type: "text_delta", text: words },
        }
      : {
          type: "response.output_text.delta",
          ...(rare && !numbers ? { sequence_number: random.below(9) } : {}),
          output_index: 0,
          content_index: random.chance(0.1) ? 1 : 0,
          delta: words,
          ...padding,
          ...(numbers ? { sequence_number: at + 3 } : {}),
        };
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
