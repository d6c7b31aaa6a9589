import { describe, expect, test } from "bun:test";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { sseText } from "../../fakes/transcripts.ts";
import { bodyOf, given, inPieces, METADATA, readRequest } from "../harness.ts";
import { violations } from "../wire-schema.ts";

/** Mistral's lists of texts and thoughts, which clients of OpenAI's chat take for a text. */
const { readReply, openStream, openWhole } = pairing("chat.completions", "chat.completions");
const asks = (stream: boolean) =>
  readRequest("chat.completions", {
    model: "test/model",
    messages: [{ role: "user", content: "Hi" }],
    stream,
  });

const text = (words: string) => ({ type: "text", text: words });
const thinking = (words: string) => ({ type: "thinking", thinking: [text(words)] });
const whole = (content: unknown) => ({
  id: "1",
  object: "chat.completion",
  created: 1,
  model: "host-model",
  choices: [
    {
      index: 0,
      finish_reason: "stop",
      message: { role: "assistant", content, refusal: null },
      logprobs: null,
    },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 },
});
const chunk = (content: unknown, finish_reason: string | null = null) => ({
  data: JSON.stringify({
    id: "1",
    object: "chat.completion.chunk",
    created: 1,
    model: "host-model",
    choices: [{ index: 0, delta: { content }, finish_reason }],
  }),
});
const STREAM = sseText([
  chunk(""),
  chunk([thinking("Let me")]),
  chunk([thinking(" see.")]),
  chunk([text("4")]),
  chunk([text("2"), { type: "reference", reference_ids: [1] }]),
  chunk("!"),
  chunk("", "stop"),
  { data: "[DONE]" },
]);

test("a whole answer has one text, and its thoughts next to it", () => {
  const content = [thinking("Let me see."), text("4"), text("2")];
  const json = JSON.parse(
    bodyOf(readReply(Buffer.from(JSON.stringify(whole(content))), asks(false), METADATA)),
  );
  expect(violations("chatCompletion", json)).toEqual([]);
  expect(json).toMatchObject({ model: "test/model" });
  expect(json.choices[0].message).toEqual({
    role: "assistant",
    content: "42",
    refusal: null,
    reasoning_content: "Let me see.",
  });
});

describe.each([1, 30, 100_000])("a stream in pieces of %d bytes", (size) => {
  test("has texts, and its thoughts next to them", () => {
    const judge = openStream(asks(true), METADATA);
    const written = given(judge, inPieces(Buffer.from(STREAM), size));
    const deltas = [...written.matchAll(/^data: (\{.*)$/gm)].flatMap(([, data]) => {
      const json = JSON.parse(data!);
      expect(violations("chatChunk", json)).toEqual([]);
      return json.choices.map(({ delta }: { delta: object }) => delta);
    });
    expect(deltas.map(({ content }) => content ?? "").join("")).toBe("42!");
    expect(deltas.map(({ reasoning_content: thought }) => thought ?? "").join("")).toBe("Let me see.");
    expect(judge.countedTokens).toBeGreaterThan(0);
  });

  test("is put together so for a client that wants it whole", () => {
    const judge = openWhole(asks(false), METADATA);
    for (const piece of inPieces(Buffer.from(STREAM), size)) judge.push(piece);
    judge.end();
    const { message } = JSON.parse(bodyOf(judge.reply())).choices[0];
    expect(message).toMatchObject({ content: "42!", reasoning_content: "Let me see." });
  });
});

test("a list that holds anything else stays as it came", () => {
  const content = [text("Look:"), { type: "image_url", image_url: { url: "data:image/png;base64,AA" } }];
  const json = JSON.parse(
    bodyOf(readReply(Buffer.from(JSON.stringify(whole(content))), asks(false), METADATA)),
  );
  expect(json.choices[0].message.content).toEqual(content);
});
