import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { ChatWriter } from "../../../src/surfaces/chat/answer-writer.ts";
import { writeChatRequest } from "../../../src/surfaces/chat/request-writer.ts";
import { MessagesWriter } from "../../../src/surfaces/messages/answer-writer.ts";
import { writeMessagesRequest } from "../../../src/surfaces/messages/request-writer.ts";
import { itemForm, ResponsesWriter } from "../../../src/surfaces/responses/answer-writer.ts";
import { writeResponsesRequest } from "../../../src/surfaces/responses/request-writer.ts";
import type { HostTarget } from "../../../src/surfaces/surface.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import type { AnswerWriter } from "../../../src/surfaces/vocabulary/answer-writer.ts";
import type { Conversation } from "../../../src/surfaces/vocabulary/conversation.ts";
import { TranslationReport } from "../../../src/surfaces/vocabulary/translation-report.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { rounds } from "../../rounds.ts";
import { Random } from "../../sim/random.ts";
import { type AnswerContent, contentOfStream, ENDS, type Ending } from "../answer-content.ts";
import { brokenRules, wrongEvents } from "../event-order.ts";
import { COST_USD, decode, encode, given, METADATA, openRequest, readRequest } from "../harness.ts";
import { randomConversation, randomText } from "../random-conversation.ts";
import { violations } from "../wire-schema.ts";

/** What both languages can say comes back from the other as it was said. */
const TARGET: HostTarget = {
  stream: false,
  model: "test/model",
  publicModel: "test/model",
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 9_000,
};

const SEEDS = rounds(40, 300);

const WRITE: Readonly<
  Record<SurfaceName, (conversation: Conversation, report: TranslationReport) => object>
> = {
  "chat.completions": writeChatRequest,
  responses: writeResponsesRequest,
  messages: writeMessagesRequest,
};
const SCHEMA = {
  "chat.completions": "chatRequest",
  responses: "responsesRequest",
  messages: "messagesRequest",
} as const;

/** The body in the other language; nothing of it may be left out. */
function translated(body: object, from: SurfaceName, to: SurfaceName): object {
  const hostBody = pairing(from, to).hostBody(readRequest(from, body), TARGET);
  if (refused(hostBody)) throw new Error(hostBody.message);
  expect(hostBody.omitted).toEqual([]);
  return JSON.parse(Buffer.concat(hostBody.parts).toString());
}

const PAIRS = SURFACE_NAMES.flatMap((one) =>
  SURFACE_NAMES.filter((other) => other !== one).map((other) => [one, other] as const),
);

describe.each(PAIRS)("%s, written in %s and back", (one, other) => {
  test("150 random conversations come back as they were", () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const conversation = randomConversation(new Random(seed), one, other);
      const body = plain(WRITE[one](conversation, new TranslationReport(one, one, TARGET)));
      const there = translated(body, one, other);
      const back = translated(there, other, one);
      expect({ seed, body: back }).toEqual({ seed, body });
      for (const [language, content] of [
        [one, body],
        [other, there],
      ] as const)
        expect({ seed, wrong: violations(SCHEMA[language], content) }).toEqual({ seed, wrong: [] });
    }
  });
});

const plain = (value: object): object => JSON.parse(JSON.stringify(value));

/** A stream of the language, as the gateway writes it. */
function randomAnswer(language: SurfaceName, random: Random): string {
  const writer = OPEN_WRITER[language]();
  writer.start("msg_1", null);
  let calls = 0;
  // Chat and Responses have room for thoughts before what they lead to, and for calls behind it.
  for (const kind of ["reasoning", "text", "tool_call"] as const) {
    const blocks = kind === "tool_call" ? random.below(4) : random.below(2);
    for (let n = 0; n < blocks; n++) {
      writer.open(
        kind === "tool_call" ? { kind, id: `call_${calls++}`, name: "f", custom: false } : { kind },
      );
      const words =
        kind === "tool_call"
          ? JSON.stringify({ [randomText(random)]: randomText(random) })
          : randomText(random);
      for (const piece of pieces(words, random)) writer.delta(piece);
      writer.close(null);
    }
  }
  const [input, cacheRead, cacheWrite, reasoning] = [0, 0, 0, 0].map(() => random.below(1_000)) as [
    number,
    number,
    number,
    number,
  ];
  const tokens = { input, cacheRead, cacheWrite, output: reasoning + random.below(1_000), reasoning };
  writer.stop(calls > 0 ? "tools" : random.pick(["end", "length", "filter"]), null);
  writer.finish();
  return decode(Buffer.concat([writer.take(), writer.last({ tokens, costUsd: COST_USD })]));
}

const OPEN_WRITER: Readonly<Record<SurfaceName, () => AnswerWriter>> = {
  "chat.completions": () => new ChatWriter(METADATA, true),
  responses: () => new ResponsesWriter({}, METADATA, itemForm({})),
  messages: () => new MessagesWriter(METADATA, "messages/test", 0),
};

function pieces(words: string, random: Random): string[] {
  const letters = [...words];
  const cut: string[] = [];
  while (letters.length > 0) cut.push(letters.splice(0, 1 + random.below(5)).join(""));
  return cut;
}

describe.each(PAIRS)("an answer in %s, written in %s and back", (one, other) => {
  test("150 random answers come back as they were, however their bytes are split", () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = new Random(seed);
      const answer = randomAnswer(one, random);
      const through = (text: string, client: SurfaceName, host: SurfaceName) =>
        given(
          pairing(client, host).openStream(openRequest(client, true), METADATA),
          randomSplit(encode(text), random),
        );
      const there = through(answer, other, one);
      const back = through(there, one, other);
      expect({ seed, content: contentOfStream(other, there) }).toEqual({
        seed,
        content: inOther(contentOfStream(one, answer), one, other),
      });
      expect({ seed, content: contentOfStream(one, back) }).toEqual({
        seed,
        content: contentOfStream(one, answer),
      });
      for (const [language, text] of [
        [other, there],
        [one, back],
      ] as const) {
        expect({ seed, broken: brokenRules(language, text, { usage: true }) }).toEqual({ seed, broken: [] });
        expect({ seed, wrong: wrongEvents(language, text) }).toEqual({ seed, wrong: [] });
      }
    }
  });
});

/** The same, but for the word by which the other language says why it ends. */
function inOther(answer: AnswerContent, one: SurfaceName, other: SurfaceName): AnswerContent {
  const order: Ending[] = answer.calls.length > 0 ? ["tools"] : ["end", "length", "filter"];
  return { ...answer, end: ENDS[other][order.find((end) => ENDS[one][end] === answer.end)!] };
}

function randomSplit(bytes: Uint8Array, random: Random): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.below(random.chance(0.5) ? 8 : 400);
    chunks.push(bytes.slice(at, at + size));
    at += size;
  }
  return chunks;
}
