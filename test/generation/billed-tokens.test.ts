import { describe, expect, test } from "bun:test";
import { billedTokens, type EndedAnswer } from "../../src/generation/billed-tokens.ts";
import type { GenerationRequest, Usage } from "../../src/surfaces/surface.ts";

/** A request of 60 bytes, and a model that writes at most 4,000 tokens. A token is a letter here. */
const requestOf = (more: Partial<GenerationRequest> = {}) => ({
  request: {
    maxOutputTokens: null,
    choices: 1,
    promptBound: 60,
    promptEstimate: 15,
    promptTextEstimate: 15,
    promptHasFiles: false,
    promptUnseen: false,
    promptRetentions: {},
    promptWithoutAudio: null,
    answersInAudio: false,
    ...more,
  } as GenerationRequest,
  model: { contextLength: 100_000, maxOutputTokens: 4_000 },
});

interface Case {
  usage?: Partial<Usage> | null;
  /** What was written, before and after the host's last report. */
  text?: string;
  since?: string;
  left?: boolean;
  request?: Partial<GenerationRequest>;
}

const NONE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
const PROMPT_TOKENS = 8;

async function billed(
  { usage = null, text = "", since = "", left = false, request }: Case,
  countable = true,
) {
  let asks = 0;
  const answer: EndedAnswer = {
    usage: usage === null ? null : { ...NONE, ...usage },
    text: {
      // As estimates are: a quarter too many.
      estimate: (text.length + since.length) * 1.25,
      estimateSinceReport: since.length * 1.25,
      all: () => ({ texts: [text + since], unkept: 0 }),
      sinceReport: () => ({ texts: [since], unkept: 0 }),
    },
    isLeft: left,
    isFree: false,
  };
  const outcome = billedTokens(answer, requestOf(request), {
    answer: async (texts) => {
      asks += 1;
      return countable ? texts.join("").length : null;
    },
    prompt: async () => {
      asks += 1;
      return countable ? PROMPT_TOKENS : null;
    },
  });
  const { tokens, from } = await outcome;
  const { input, cacheRead, cacheWrite, output, reasoning } = tokens;
  return {
    input,
    cacheRead,
    cacheWrite,
    output,
    reasoning,
    from,
    atOnce: asks === 0 && !(outcome instanceof Promise),
  };
}

const words = (count: number): string => "x".repeat(count);

describe("a host's word of its answer", () => {
  test.each<[string, Case, object]>([
    [
      "that can be true is believed at once",
      { usage: { input: 7, output: 60 }, text: words(60) },
      { input: 7, output: 60, from: "host", atOnce: true },
    ],
    ["of an empty answer too", { usage: { input: 7 } }, { input: 7, output: 0, from: "host", atOnce: true }],
    [
      "may tell thoughts that nobody saw",
      { usage: { input: 7, output: 3_000, reasoning: 2_990 }, text: words(10) },
      { output: 3_000, reasoning: 2_990, from: "host", atOnce: true },
    ],
    [
      "and thoughts next to the ceiling, which are billed up to it",
      {
        usage: { input: 7, output: 3_050, reasoning: 3_000 },
        text: words(50),
        request: { maxOutputTokens: 100 },
      },
      { output: 100, reasoning: 50, from: "host" },
    ],
    [
      "but not more thoughts than the model writes",
      { usage: { input: 7, output: 500_000, reasoning: 499_990 }, text: words(10) },
      { output: 10, reasoning: 0, from: "counted" },
    ],
    [
      "of more than the ceiling is not believed",
      { usage: { input: 7, output: 150 }, text: words(60), request: { maxOutputTokens: 100 } },
      { input: 7, output: 60, from: "counted" },
    ],
    [
      "may be as much for each choice",
      { usage: { input: 7, output: 150 }, text: words(150), request: { maxOutputTokens: 100, choices: 2 } },
      { output: 150, from: "host" },
    ],
    [
      "of more than the model writes is not believed",
      { usage: { input: 7, output: 500_000 }, text: words(10) },
      { input: 7, output: 10, from: "counted" },
    ],
    [
      "one token for sixty words is not believed",
      { usage: { input: 7, output: 1 }, text: words(60) },
      { input: 7, output: 60, from: "counted" },
    ],
    [
      "nothing for sixty words is not believed",
      { usage: { input: 7, output: 0 }, text: words(60) },
      { input: 7, output: 60, from: "counted" },
    ],
    [
      "vocabularies may differ by half",
      { usage: { input: 7, output: 30 }, text: words(60) },
      { output: 30, from: "host" },
    ],
    [
      "and not by more",
      { usage: { input: 7, output: 29 }, text: words(60) },
      { output: 29 + 31, from: "counted" },
    ],
  ])("%s", async (_, given, expected) => {
    expect(await billed(given)).toMatchObject(expected);
  });
});

describe("a host's word of its prompt", () => {
  test.each<[string, Case, object]>([
    [
      "of more tokens than it has bytes, by what hosts put around it, is believed",
      { usage: { input: 1_084, output: 6 }, text: words(6) },
      { input: 1_084, from: "host" },
    ],
    [
      "by more than that it is not",
      { usage: { input: 1_085, output: 6 }, text: words(6) },
      { input: PROMPT_TOKENS, output: 6, from: "counted" },
    ],
    [
      "a hundred million for 60 bytes",
      { usage: { input: 100_000_000, output: 6 }, text: words(6) },
      { input: PROMPT_TOKENS, output: 6, from: "counted" },
    ],
    [
      "nothing",
      { usage: { output: 6 }, text: words(6) },
      { input: PROMPT_TOKENS, output: 6, from: "counted" },
    ],
    [
      "all of it from the cache",
      { usage: { cacheRead: 40, output: 6 }, text: words(6) },
      { input: 0, cacheRead: 40, from: "host" },
    ],
    [
      "a cache that cannot be true discards nothing else",
      { usage: { input: 7, cacheRead: 9_000_000, output: 6 }, text: words(6) },
      { input: 7, cacheRead: 0, output: 6, from: "host" },
    ],
    [
      "parts that cannot all be true",
      { usage: { input: 800, cacheRead: 800, output: 6 }, text: words(6) },
      { input: PROMPT_TOKENS, cacheRead: 0, from: "counted" },
    ],
    [
      "a file may have all that the model reads",
      { usage: { input: 90_000, output: 6 }, text: words(6), request: { promptHasFiles: true } },
      { input: 90_000, from: "host" },
    ],
    [
      "a search reads it again and again",
      { usage: { input: 900_000, output: 6 }, text: words(6), request: { promptUnseen: true } },
      { input: 900_000, from: "host" },
    ],
    [
      "images stay at what they are held at where the text is counted",
      { text: words(6), request: { promptEstimate: 1_015 } },
      { input: PROMPT_TOKENS + 1_000, from: "counted" },
    ],
  ])("%s", async (_, given, expected) => {
    expect(await billed(given)).toMatchObject(expected);
  });
});

describe("where no host vouches", () => {
  test.each<[string, Case, object]>([
    ["all is counted", { text: words(45) }, { input: PROMPT_TOKENS, output: 45, from: "counted" }],
    [
      "no more than the client allowed",
      { text: words(120), request: { maxOutputTokens: 100 } },
      { output: 100 },
    ],
    ["for each choice", { text: words(120), request: { maxOutputTokens: 100, choices: 2 } }, { output: 120 }],
    [
      "the host's running usage counts, and what came after it",
      { usage: { input: 7, output: 42 }, text: words(40), since: words(5) },
      { input: 7, output: 47, from: "counted" },
    ],
    [
      "a running usage that cannot be true does not",
      { usage: { input: 7, output: 1 }, text: words(40), since: words(5) },
      { input: 7, output: 45, from: "counted" },
    ],
    [
      "the prompt stands where the host reported it at the beginning",
      { usage: { input: 7 }, text: words(45) },
      { input: 7, output: 45, from: "counted" },
    ],
  ])("%s", async (_, given, expected) => {
    expect(await billed(given)).toMatchObject(expected);
  });

  test("and nobody can count in time, the estimates stand, within the same bounds", async () => {
    expect(await billed({ text: words(45) }, false)).toMatchObject({ input: 15, output: 57 });
    const tight = { text: words(45), request: { maxOutputTokens: 50 } };
    expect(await billed(tight, false)).toMatchObject({ input: 15, output: 50 });
    const running = { usage: { input: 7, output: 42 }, text: words(40), since: words(5) };
    expect(await billed(running, false)).toMatchObject({ input: 7, output: 42 + 7 });
  });
});

describe("a client that leaves", () => {
  test.each<[string, Case, object]>([
    [
      "pays what it was given",
      { text: words(45), left: true },
      { input: PROMPT_TOKENS, output: 45, from: "counted" },
    ],
    [
      "and no more, whatever was written since",
      { usage: { input: 7, output: 900 }, text: words(45), left: true },
      { input: 7, output: 45, from: "counted" },
    ],
    [
      "pays the thoughts that it did not see",
      { usage: { input: 7, output: 900, reasoning: 800 }, text: words(45), left: true },
      { output: 845, reasoning: 800 },
    ],
    [
      "at the last word pays all of it",
      { usage: { input: 7, output: 845, reasoning: 800 }, text: words(45), left: true },
      { output: 845, reasoning: 800, from: "host" },
    ],
    [
      "pays no more than the host made, which counts in its own tokens",
      { usage: { input: 7, output: 40 }, text: words(45), left: true },
      { output: 40, from: "host" },
    ],
    [
      "pays what it was given where the host's word cannot be true",
      { usage: { input: 7, output: 9_000 }, text: words(45), left: true },
      { output: 45, from: "counted" },
    ],
    [
      "pays the thoughts of a running usage",
      { usage: { input: 7, output: 830, reasoning: 800 }, text: words(30), since: words(5), left: true },
      { output: 835, reasoning: 800 },
    ],
    ["before it was given anything pays the prompt", { left: true }, { input: PROMPT_TOKENS, output: 0 }],
  ])("%s", async (_, given, expected) => {
    expect(await billed(given)).toMatchObject(expected);
  });
});
