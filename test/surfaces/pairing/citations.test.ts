import { describe, expect, test } from "bun:test";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { responsesText, sseText } from "../../fakes/transcripts.ts";
import { bodyOf, given, inPieces, METADATA, readRequest } from "../harness.ts";
import { violations } from "../wire-schema.ts";

/** Pages that hosts name for what they say, between OpenAI's two languages. */
// biome-ignore lint/suspicious/noExplicitAny: what a client would parse.
type Json = Record<string, any>;

const PAGES = [
  { start_index: 0, end_index: 4, url: "https://oslo.example/a", title: "Oslo" },
  { start_index: 5, end_index: 9, url: "https://oslo.example/b", title: "" },
];
const FLAT = PAGES.map((page) => ({ type: "url_citation", ...page }));
const NESTED = PAGES.map((page) => ({ type: "url_citation", url_citation: page }));

const asks = (client: "chat.completions" | "responses" | "messages", stream: boolean) =>
  readRequest(client, {
    model: "test/model",
    stream,
    ...(client === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] }),
    ...(client === "messages" ? { max_tokens: 9 } : {}),
  });

const eventsOf = (text: string): Json[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!));

const CHAT_WHOLE = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "host-model",
  choices: [
    {
      index: 0,
      finish_reason: "stop",
      message: {
        role: "assistant",
        content: "Oslo is cold",
        annotations: [...NESTED, { type: "file_citation" }],
      },
    },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 },
};
const chunk = (delta: object, finish_reason: string | null = null) => ({
  data: JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason }],
  }),
});
const CHAT_STREAM = sseText([
  chunk({ role: "assistant", content: "" }),
  chunk({ content: "Oslo " }),
  chunk({ content: "is cold", annotations: NESTED.slice(0, 1) }),
  chunk({ annotations: NESTED.slice(1) }),
  chunk({}, "stop"),
  { data: "[DONE]" },
]);

function responsesWhole(): Json {
  const whole = structuredClone(responsesText(["Oslo ", "is cold"]).whole) as Json;
  whole.output[0].content[0].annotations = FLAT;
  return whole;
}

/** With events of its own for them, or in the last one alone. */
function responsesStream(own: boolean): string {
  const whole = responsesWhole();
  const events = responsesText(["Oslo ", "is cold"]).events.flatMap((event): { data: string }[] => {
    const data = JSON.parse(event.data);
    if (data.type === "response.output_item.done") data.item = whole.output[0];
    const cited = FLAT.map((annotation, annotation_index) => ({
      type: "response.output_text.annotation.added",
      output_index: 0,
      content_index: 0,
      annotation_index,
      annotation,
    }));
    const annotated = { data: JSON.stringify(data) };
    const isEnd = own && data.type === "response.output_text.done";
    return isEnd ? [...cited.map((one) => ({ data: JSON.stringify(one) })), annotated] : [annotated];
  });
  return sseText(events);
}

describe("of a chat host, for a client of Responses", () => {
  const { readReply, openStream } = pairing("responses", "chat.completions");
  test("whole", () => {
    const json = JSON.parse(
      bodyOf(readReply(Buffer.from(JSON.stringify(CHAT_WHOLE)), asks("responses", false), METADATA)),
    );
    expect(violations("response", json)).toEqual([]);
    expect(json.output[0].content[0].annotations).toEqual(FLAT);
  });
  test.each([1, 100_000])("streamed in pieces of %d bytes", (size) => {
    const judge = openStream(asks("responses", true), METADATA);
    const events = eventsOf(given(judge, inPieces(Buffer.from(CHAT_STREAM), size)));
    for (const event of events) expect(violations("responseEvent", event)).toEqual([]);
    const added = events.filter(({ type }) => type === "response.output_text.annotation.added");
    expect(added.map(({ annotation }) => annotation)).toEqual(FLAT);
    expect(added.map(({ annotation_index: at }) => at)).toEqual([0, 1]);
    expect(events.at(-1)!.response.output[0].content[0].annotations).toEqual(FLAT);
  });
});

describe("of a Responses host, for a chat client", () => {
  const { readReply, openStream } = pairing("chat.completions", "responses");
  test("whole", () => {
    const body = Buffer.from(JSON.stringify(responsesWhole()));
    const json = JSON.parse(bodyOf(readReply(body, asks("chat.completions", false), METADATA)));
    expect(violations("chatCompletion", json)).toEqual([]);
    expect(json.choices[0].message.annotations).toEqual(NESTED);
  });
  test.each([true, false])("streamed, with events of their own: %p", (own) => {
    for (const size of [1, 100_000]) {
      const judge = openStream(asks("chat.completions", true), METADATA);
      const events = eventsOf(given(judge, inPieces(Buffer.from(responsesStream(own)), size)));
      const annotations = events.flatMap(({ choices }) => choices[0]?.delta?.annotations ?? []);
      expect(annotations).toEqual(NESTED);
    }
  });
});

test("a client of Messages, whose citations are of another kind, gets the text", () => {
  const { openStream } = pairing("messages", "chat.completions");
  const text = given(openStream(asks("messages", true), METADATA), [Buffer.from(CHAT_STREAM)]);
  expect(text).toContain("is cold");
  expect(text).not.toContain("oslo.example");
});
