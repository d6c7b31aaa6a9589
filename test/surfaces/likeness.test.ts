import { afterEach, expect, spyOn, test } from "bun:test";
import { Likeness } from "../../src/surfaces/likeness.ts";
import type { StreamJudge } from "../../src/surfaces/surface.ts";
import { pairing } from "../../src/surfaces/surfaces.ts";
import { Random } from "../sim/random.ts";
import { lastOf } from "./harness.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (given: Uint8Array) => new TextDecoder().decode(given);

const LANGUAGES = ["chat.completions", "messages", "responses"] as const;
type Language = (typeof LANGUAGES)[number];

function judgeOf(language: Language): StreamJudge {
  const request = { surface: language, json: {}, stream: true, choices: 1 } as never;
  return pairing(language, language).openStream(request, { publicModel: "public/model", atS: 0 });
}

/** Everything that a judge says of a stream: of its events one by one, and at the end. */
function verdict(language: Language, events: readonly string[]): unknown {
  const judge = judgeOf(language);
  const given = events.map((event) => text(judge.push(bytes(event))));
  given.push(text(judge.end()));
  const { tokenSeen, countedTokens, usage, fault, isComplete } = judge;
  return { given, tokenSeen, countedTokens, usage, fault, last: isComplete && lastOf(judge) };
}

afterEach(() => spyOn(Likeness.prototype, "pass").mockRestore());

/** The same, by a judge that reads each event. */
function verdictByReading(language: Language, events: readonly string[]): unknown {
  const blind = spyOn(Likeness.prototype, "pass").mockReturnValue(-1);
  const said = verdict(language, events);
  blind.mockRestore();
  return said;
}

const chatEvent = (delta: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "c", model: "host-model", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;

const chatText = (content: string): string => chatEvent({ content });

test("an event that differs from the last in its text alone is passed without being read", () => {
  const judge = judgeOf("chat.completions");
  const passes = spyOn(Likeness.prototype, "pass");
  for (const word of ["one", "two", "three", "four"]) {
    expect(text(judge.push(bytes(chatText(word))))).toBe(
      chatText(word).replace("host-model", "public/model"),
    );
  }
  expect(passes.mock.results.map(({ value }) => value !== -1)).toEqual([false, false, true, true]);
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

test("streams of all languages, cut anywhere, come out as if each event were read", () => {
  for (let seed = 0; seed < 400; seed++) {
    const random = new Random(seed);
    const language = random.pick(LANGUAGES);
    const stream = Array.from({ length: 30 }, () => eventOf(language, random)).join("");
    const pieces: string[] = [];
    for (let at = 0; at < stream.length; ) {
      const length = random.chance(0.5) ? 1 + random.below(40) : 1 + random.below(600);
      pieces.push(stream.slice(at, at + length));
      at += length;
    }
    expect(verdict(language, pieces)).toEqual(verdictByReading(language, pieces));
  }
});

const WORDS = ["a", " token", "", '"', "\\", "\n", "data: x", '"}]}', "x".repeat(50), "\u007f"];

function eventOf(language: Language, random: Random): string {
  const words = random.pick(WORDS) + random.pick(WORDS);
  const rare = random.chance(0.1);
  if (language === "chat.completions") {
    if (rare) return chatEvent({ tool_calls: [{ index: 0, function: { arguments: words } }] });
    return chatEvent({ content: words }, random.chance(0.1) ? { usage: null } : {});
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
          ...(rare ? { sequence_number: random.below(9) } : {}),
          delta: words,
        };
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
