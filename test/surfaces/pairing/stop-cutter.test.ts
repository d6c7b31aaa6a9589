import { describe, expect, test } from "bun:test";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { responsesReasoning, responsesText, responsesToolCall, sseText } from "../../fakes/transcripts.ts";
import { bodyOf, given, inPieces, METADATA, readRequest } from "../harness.ts";

/** Stop sequences of clients on hosts of Responses, which know none. */
type Client = "chat.completions" | "messages";
// biome-ignore lint/suspicious/noExplicitAny: what a client would parse.
type Json = Record<string, any>;

const request = (client: Client, stop: unknown, stream: boolean) =>
  readRequest(client, {
    model: "test/model",
    messages: [{ role: "user", content: "Hi" }],
    stream,
    ...(client === "messages" ? { max_tokens: 100, stop_sequences: stop } : { stop }),
    ...(client === "messages" ? {} : { stream_options: stream ? { include_usage: true } : undefined }),
  });

interface CutAnswer {
  readonly text: string;
  readonly reason: unknown;
  readonly sequence: unknown;
}

function whole(client: Client, stop: unknown, words: readonly string[]): CutAnswer {
  const { readReply } = pairing(client, "responses");
  const body = Buffer.from(JSON.stringify(responsesText(words).whole));
  const json = JSON.parse(bodyOf(readReply(body, request(client, stop, false), METADATA)));
  if (client === "messages")
    return { text: textIn(json.content), reason: json.stop_reason, sequence: json.stop_sequence };
  return { text: json.choices[0].message.content, reason: json.choices[0].finish_reason, sequence: null };
}

const textIn = (content: readonly Json[]): string => content.map(({ text }) => text ?? "").join("");

function streamed(client: Client, stop: unknown, words: readonly string[], size: number): CutAnswer {
  const judge = pairing(client, "responses").openStream(request(client, stop, true), METADATA);
  const sent = given(judge, inPieces(Buffer.from(sseText(responsesText(words).events)), size));
  expect(judge.usage?.output).toBe(words.length);
  const events: Json[] = [...sent.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));
  if (client === "messages") {
    const end = events.find(({ type }) => type === "message_delta")!.delta;
    const text = events.map(({ delta }) => (delta?.type === "text_delta" ? delta.text : "")).join("");
    return { text, reason: end.stop_reason, sequence: end.stop_sequence };
  }
  const choices = events.flatMap((event) => event.choices);
  return {
    text: choices.map(({ delta }) => delta.content ?? "").join(""),
    reason: choices.findLast((choice) => choice.finish_reason !== null)?.finish_reason,
    sequence: null,
  };
}

const TABLE: [string, unknown, string[], string, string | null][] = [
  ["in one word", ["END"], ["One END two"], "One ", "END"],
  [
    "across words",
    ["\nObservation:"],
    ["Act", "ion\nObs", "erva", "tion: 7", " more"],
    "Action",
    "\nObservation:",
  ],
  ["that only began", ["END"], ["One EN", "T two E"], "One ENT two E", null],
  ["that begins within another's beginning", ["aab"], ["aaa", "ab!"], "aa", "aab"],
  ["the first of several", ["two", "One"], ["Zero One", " two"], "Zero ", "One"],
  ["the first that is named, of two at one place", ["ab", "a"], ["x", "ab"], "x", "ab"],
  ["at the very beginning", ["H"], ["Hello"], "", "H"],
  ["that never comes", ["###"], ["Hello", " there"], "Hello there", null],
  ["of several characters each, one of them no letter", ["🌍"], ["Oslo ", "🌍", "!"], "Oslo ", "🌍"],
  ["none", [], ["Hello"], "Hello", null],
  ["an empty one", [""], ["Hello"], "Hello", null],
];

describe.each<Client>(["chat.completions", "messages"])("a client of %s", (client) => {
  test.each(TABLE)("a stop sequence %s", (_, stop, words, text, sequence) => {
    const end = client === "messages" ? (sequence === null ? "end_turn" : "stop_sequence") : "stop";
    const answer = { text, reason: end, sequence: client === "messages" ? sequence : null };
    const plain = whole(client, stop, words);
    expect({ ...plain, text: plain.text ?? "" }).toEqual(answer);
    for (const size of [1, 7, 100_000]) expect(streamed(client, stop, words, size)).toEqual(answer);
  });
});

test("a single sequence may be a text", () => {
  expect(whole("chat.completions", "END", ["One END two"]).text).toBe("One ");
});

test("what follows a sequence is not sent, calls neither, and thoughts are not looked through", () => {
  const { readReply } = pairing("messages", "responses");
  const json = (body: unknown, stop: string[]) =>
    JSON.parse(
      bodyOf(readReply(Buffer.from(JSON.stringify(body)), request("messages", stop, false), METADATA)),
    );
  const text = responsesText(["Say END"]).whole as Json;
  const call = responsesToolCall().whole as Json;
  const both = { ...text, output: [...text.output, ...call.output] };
  expect(json(both, ["END"])).toMatchObject({
    content: [{ type: "text", text: "Say " }],
    stop_reason: "stop_sequence",
  });
  const thought = responsesReasoning(["END of", " it"], ["42"]).whole;
  expect(textIn(json(thought, ["END"]).content)).toBe("42");
});
