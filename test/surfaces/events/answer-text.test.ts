import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { ALONE, AnswerText } from "../../../src/tokens/answer-text.ts";
import {
  chatText,
  messagesText,
  messagesThinking,
  responsesText,
  type SseEvent,
  sseText,
} from "../../fakes/transcripts.ts";
import { encode, givenSoFar, inPieces, METADATA, openRequest } from "../harness.ts";

/** What a model wrote is kept whole, however it was cut: only so can its tokens be counted. */
const TRICKY = [
  'He said "hi"\\n',
  "\t{\u0007}\n",
  "你好",
  "，世界",
  "👩‍",
  "👧 ok",
  "\u2028 x",
  " </br>",
  "\n\n",
  "é",
];
const WHOLE = TRICKY.join("");

const EVENTS: Record<SurfaceName, readonly SseEvent[]> = {
  "chat.completions": chatText(TRICKY).events,
  responses: responsesText(TRICKY).events,
  messages: messagesText(TRICKY).events,
};

/** As Python's servers spell it, in ASCII; characters of two units are cut in the middle. */
const inAscii = (events: readonly SseEvent[]): SseEvent[] =>
  events.map((event) => ({
    ...event,
    data: event.data.replace(
      /[\u0080-\uffff]/g,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
    ),
  }));

describe.each([...SURFACE_NAMES])("%s host", (host) => {
  for (const client of SURFACE_NAMES)
    test(`to a ${client} client: the text is what the host wrote, at any split`, () => {
      for (const events of [EVENTS[host], inAscii(EVENTS[host])])
        for (const size of [1, 7, 1 << 20]) {
          const judge = pairing(client, host).openStream(openRequest(client, true), METADATA);
          givenSoFar(judge, inPieces(encode(sseText(events)), size));
          expect(judge.text.all()).toEqual({ texts: [WHOLE], unkept: 0 });
          // The host's last word had all of it.
          expect(judge.text.estimateSinceReport).toBe(0);
          expect(judge.text.sinceReport().texts).toEqual([]);
        }
    });
});

const chunk = (...choices: object[]): SseEvent => ({ data: JSON.stringify({ id: "c", choices }) });
const choice = (index: number, delta: object) => ({ index, delta, finish_reason: null });

function textsOf(host: SurfaceName, client: SurfaceName, events: readonly SseEvent[]) {
  const judge = pairing(client, host).openStream(openRequest(client, true), METADATA);
  givenSoFar(judge, [encode(sseText(events))]);
  return judge.text.all().texts;
}

test("two choices that are written side by side are two texts", () => {
  const events = ["Hello", " there", " you"].flatMap((word, at) => [
    chunk(choice(0, { content: word })),
    chunk(choice(1, { content: `${at}${word}` })),
  ]);
  const both = chunk(choice(0, { content: "!" }), choice(1, { content: "?" }));
  expect(textsOf("chat.completions", "chat.completions", [...events, both])).toEqual([
    "Hello there you!",
    "0Hello1 there2 you?",
  ]);
});

test("thoughts, text, and each call are texts of their own; names stand alone", () => {
  const call = (index: number, words: string, name?: string) => ({
    tool_calls: [
      {
        index,
        ...(name === undefined ? {} : { id: `c${index}`, type: "function" }),
        function: { ...(name === undefined ? {} : { name }), arguments: words },
      },
    ],
  });
  const events = [
    choice(0, { role: "assistant", reasoning_content: "They" }),
    choice(0, { reasoning_content: " want" }),
    choice(0, { content: "Let" }),
    choice(0, { content: " me" }),
    choice(0, call(0, "", "get_weather")),
    choice(0, call(1, "", "get_time")),
    choice(0, call(0, '{"city"')),
    choice(0, call(1, '{"at"')),
    choice(0, call(0, ':"Oslo"}')),
    choice(0, call(1, ":1}")),
  ].map((choice) => chunk(choice));
  expect(textsOf("chat.completions", "chat.completions", events)).toEqual([
    "They want",
    "Let me",
    '{"city":"Oslo"}',
    '{"at":1}',
    "get_weather",
    "get_time",
  ]);
});

test.each([...SURFACE_NAMES])(
  "calls that a %s client receives one after the other are in the host's last report all the same",
  (client) => {
    const call = (index: number, words: string, name?: string) => ({
      tool_calls: [
        {
          index,
          ...(name === undefined ? {} : { id: `c${index}`, type: "function" }),
          function: { ...(name === undefined ? {} : { name }), arguments: words },
        },
      ],
    });
    const events: SseEvent[] = [
      ...[
        choice(0, call(0, "", "get_weather")),
        choice(0, call(1, "", "get_time")),
        choice(0, call(1, '{"at":1}')),
        choice(0, call(0, '{"city":"Oslo"}')),
        { index: 0, delta: {}, finish_reason: "tool_calls" },
      ].map((choice) => chunk(choice)),
      { data: JSON.stringify({ id: "c", choices: [], usage: { prompt_tokens: 7, completion_tokens: 30 } }) },
      { data: "[DONE]" },
    ];
    const judge = pairing(client, "chat.completions").openStream(openRequest(client, true), METADATA);
    givenSoFar(judge, [encode(sseText(events))]);
    expect(judge.isComplete).toBe(true);
    expect(judge.text.all().texts.toSorted()).toEqual(
      ['{"at":1}', '{"city":"Oslo"}', "get_time", "get_weather"].toSorted(),
    );
    expect(judge.text.estimateSinceReport).toBe(0);
  },
);

test("blocks of messages are texts of their own", () => {
  const texts = textsOf("messages", "messages", messagesThinking(["Let me", " see."], ["4", "2"]).events);
  expect(texts).toEqual(["Let me see.", "42"]);
});

test("what came after the host's last report of usage is known, also in the middle of a text", () => {
  const usage = { prompt_tokens: 7, completion_tokens: 2 };
  const events: SseEvent[] = [
    chunk(choice(0, { content: "One" })),
    { data: JSON.stringify({ id: "c", choices: [choice(0, { content: " two" })], usage }) },
    chunk(choice(0, { content: " three" })),
    chunk(choice(0, { content: " four" })),
  ];
  for (const client of SURFACE_NAMES) {
    const judge = pairing(client, "chat.completions").openStream(openRequest(client, true), METADATA);
    givenSoFar(judge, [encode(sseText(events))]);
    expect(judge.usage).toMatchObject({ input: 7, output: 2 });
    expect(judge.text.all().texts).toEqual(["One two three four"]);
    expect(judge.text.sinceReport().texts).toEqual([" three four"]);
  }
});

describe("kept text", () => {
  test("only what was delivered counts once the client has left", () => {
    const text = new AnswerText();
    text.add("given", 0);
    text.deliver();
    text.add(" and not given", 0);
    text.report();
    text.end();
    text.add(" too late", 0);
    expect(text.all()).toEqual({ texts: ["given"], unkept: 0 });
    expect([text.estimate, text.estimateSinceReport]).toEqual([5 / 4, 0]);
    expect(text.sinceReport().texts).toEqual([]);
  });

  test("of an endless answer a bounded part is kept, and the rest is estimated", () => {
    const text = new AnswerText();
    const piece = "x".repeat(1_000);
    for (let count = 0; count < 3_000; count++) text.add(piece, 0);
    const { texts, unkept } = text.all();
    expect(texts.length).toBe(1);
    expect(texts[0]!.length).toBeLessThanOrEqual(1024 * 1024);
    expect(texts[0]!.length / 4 + unkept).toBe(750_000);
    expect(text.estimate).toBe(750_000);
  });

  test("beyond what is kept, what the host has reported, or nobody was given, is not counted again", () => {
    const text = new AnswerText();
    const piece = "word".repeat(250_000);
    for (let n = 0; n < 3; n++) text.add(piece, 0);
    const before = text.all().unkept;
    expect(before).toBeGreaterThan(0);
    text.report();
    expect(text.sinceReport()).toEqual({ texts: [], unkept: 0 });
    text.add(piece, 0);
    const { unkept } = text.sinceReport();
    expect(unkept).toBeGreaterThan(0);
    expect(text.all().unkept).toBe(before + unkept);
    text.deliver();
    text.add(piece, 0);
    text.end();
    expect(text.all().unkept).toBe(before + unkept);
    expect(text.sinceReport().unkept).toBe(unkept);
  });

  test("read piece by piece, from moment to moment, it is the same text", () => {
    const text = new AnswerText();
    let read = "";
    let { moment } = text;
    for (const [at, word] of [...TRICKY, ...TRICKY].entries()) {
      text.add(word, 7);
      if (at % 3 !== 0) continue;
      const piece = text.since(moment);
      expect(piece.unkept).toBe(0);
      read += piece.texts.join("");
      moment = text.moment;
    }
    read += text.since(moment).texts.join("");
    expect(read).toBe(WHOLE + WHOLE);
    expect(text.since(text.moment)).toEqual({ texts: [], unkept: 0 });
  });

  test("texts that stand alone do not join, and empty ones are none", () => {
    const text = new AnswerText();
    for (const word of ["a", "", "b"]) text.add(word, ALONE);
    text.add("c", 0);
    text.add("d", ALONE);
    text.add("e", 0);
    expect(text.all().texts).toEqual(["ce", "a", "b", "d"]);
  });
});
