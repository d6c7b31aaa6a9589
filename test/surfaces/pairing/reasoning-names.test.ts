import { describe, expect, test } from "bun:test";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { messagesThinking, responsesReasoning, sseText } from "../../fakes/transcripts.ts";
import { bodyOf, given, inPieces, METADATA, readRequest } from "../harness.ts";

/**
 * Thoughts of hosts of other languages, for chat clients: some read `reasoning_content`, some `reasoning`, and
 * OpenRouter's provider `reasoning_details`, which it puts together and sends back.
 */
// biome-ignore lint/suspicious/noExplicitAny: what a client would parse.
type Json = Record<string, any>;
const THOUGHTS = ["Let me", " see."];
const HOSTS = {
  messages: messagesThinking(THOUGHTS, ["42"]),
  responses: responsesReasoning(THOUGHTS, ["42"]),
};

const asks = (stream: boolean, messages: object[] = [{ role: "user", content: "Hi" }]) =>
  readRequest("chat.completions", {
    model: "test/model",
    stream,
    messages,
    reasoning_effort: "low",
    max_tokens: 4_000,
  });

/** As OpenRouter's provider does: texts of one index grow, and its signature is set. */
function together(details: readonly Json[]): Json[] {
  const whole: Json[] = [];
  for (const { text, ...detail } of details) {
    const known = whole.find(({ index }) => index === detail.index);
    if (known === undefined) whole.push({ ...detail, text: text ?? "" });
    else Object.assign(known, detail, { text: known.text + (text ?? "") });
  }
  return whole;
}

describe.each(["messages", "responses"] as const)("of a host of %s", (host) => {
  const { readReply, openStream, hostBody } = pairing("chat.completions", host);
  const target = {
    model: "m",
    publicModel: METADATA.publicModel,
    stream: false,
    quirks: {},
    maxOutputTokens: null,
    defaultMaxOutputTokens: 9,
  };

  test("a stream tells each piece by every name, and its seal once", () => {
    const judge = openStream(asks(true), METADATA);
    const text = given(judge, inPieces(Buffer.from(sseText(HOSTS[host].events)), 11));
    const deltas = [...text.matchAll(/^data: (\{.*)$/gm)].flatMap(([, data]) =>
      JSON.parse(data!).choices.map(({ delta }: Json) => delta as Json),
    );
    const textOf = (name: string) => deltas.map((delta) => delta[name] ?? "").join("");
    expect([textOf("reasoning_content"), textOf("reasoning")]).toEqual(["Let me see.", "Let me see."]);
    const details = deltas.flatMap((delta) => delta.reasoning_details ?? []);
    expect(details.map((detail) => detail.text ?? "").join("")).toBe("Let me see.");
    expect(details.filter(({ signature }) => signature !== undefined)).toHaveLength(1);

    // Back at the host, however the client kept them, they are the thoughts that it sealed.
    for (const kept of [details, together(details)]) {
      const turn = { role: "assistant", content: "42", reasoning_details: kept };
      const user = { role: "user", content: "Go on" };
      const body = hostBody(asks(false, [user, turn, user]), target);
      if (refused(body)) throw new Error(body.message);
      expect(body.omitted).toEqual([]);
      const { input, messages } = JSON.parse(Buffer.concat(body.parts).toString());
      const back =
        host === "messages"
          ? messages[1].content[0].thinking
          : input.find(({ type }: Json) => type === "reasoning");
      expect(host === "messages" ? back : back.summary[0].text).toBe("Let me see.");
    }
  });

  test("a whole answer has them by every name", () => {
    const body = Buffer.from(JSON.stringify(HOSTS[host].whole));
    const { message } = JSON.parse(bodyOf(readReply(body, asks(false), METADATA))).choices[0];
    expect(message).toMatchObject({ reasoning_content: "Let me see.", reasoning: "Let me see." });
    expect(message.reasoning_details).toMatchObject([
      { type: "reasoning.text", text: "Let me see.", index: 0 },
    ]);
  });
});

test("thoughts without a seal are sent in the same words", () => {
  const whole = structuredClone(HOSTS.responses.whole) as Json;
  delete whole.output[0].encrypted_content;
  const { readReply } = pairing("chat.completions", "responses");
  const reply = readReply(Buffer.from(JSON.stringify(whole)), asks(false), METADATA);
  const { message } = JSON.parse(bodyOf(reply)).choices[0];
  expect(message.reasoning_details).toEqual([{ type: "reasoning.text", text: "Let me see.", index: 0 }]);
});
