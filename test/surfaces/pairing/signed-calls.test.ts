import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { COMPATIBLE_CHAT } from "../../fakes/hosts/compatible-chat.ts";
import type { Loose } from "../event-order.ts";
import { bodyOf, decode, encode, readRequest } from "../harness.ts";

/**
 * Gemini 3 signs its calls, and answers 400 to a tool's result behind a call that has lost its signature
 * (ai.google.dev, "Thought signatures").
 */
const METADATA = { publicModel: "google/gemini-3-flash", atS: 1_763_000_000 };
const ANSWER = COMPATIBLE_CHAT["Gemini: calls without an index, finished by stop"];
const CLIENTS: readonly SurfaceName[] = ["responses", "messages"];

const body = (client: SurfaceName, history: readonly object[]) => ({
  model: METADATA.publicModel,
  ...(client === "responses"
    ? { input: [{ role: "user", content: "Hi" }, ...history], include: ["reasoning.encrypted_content"] }
    : { messages: [{ role: "user", content: "Hi" }, ...history], max_tokens: 500 }),
});

/** The answer as the client received it, and results for its two calls. */
function historyOf(client: SurfaceName, keepsThoughts: boolean): object[] {
  const request = readRequest(client, body(client, []));
  const reply = pairing(client, "chat.completions").readReply(
    encode(JSON.stringify(ANSWER.whole)),
    request,
    METADATA,
  );
  const answer: Loose = JSON.parse(bodyOf(reply));
  const items: Loose[] = (answer.output ?? answer.content).filter(
    ({ type }: Loose) => keepsThoughts || (type !== "reasoning" && type !== "redacted_thinking"),
  );
  return client === "responses"
    ? [
        ...items,
        ...items.flatMap(({ type, call_id }) =>
          type === "function_call" ? [{ type: "function_call_output", call_id, output: "4 °C" }] : [],
        ),
      ]
    : [
        { role: "assistant", content: items },
        {
          role: "user",
          content: items.flatMap(({ type, id }) =>
            type === "tool_use" ? [{ type: "tool_result", tool_use_id: id, content: "4 °C" }] : [],
          ),
        },
      ];
}

/** Signatures of the calls as the host gets them. */
function signatures(
  client: SurfaceName,
  history: readonly object[],
  publicModel: string,
  signsCalls: boolean,
) {
  const target = {
    model: "gemini-3-flash",
    publicModel,
    stream: false,
    quirks: { signsCalls },
    maxOutputTokens: null,
    defaultMaxOutputTokens: 500,
  };
  const written = pairing(client, "chat.completions").hostBody(
    readRequest(client, body(client, history)),
    target,
  );
  if (refused(written)) throw new Error(written.message);
  const sent: Loose = JSON.parse(decode(Buffer.concat(written.parts)));
  expect(JSON.stringify(sent)).not.toContain("gwseal");
  return sent.messages[1].tool_calls.map(
    (call: Loose) => call.extra_content?.google.thought_signature ?? null,
  );
}

describe.each(CLIENTS)("a %s client of Gemini", (client) => {
  test("sends each call back with its signature", () => {
    const sent = signatures(client, historyOf(client, true), METADATA.publicModel, true);
    expect(sent).toEqual(["CiQB0e2Kb3Hn", "CiQB0e2Kb3Hn"]);
  });

  test("that did not keep them has its first call marked as unsigned", () => {
    const sent = signatures(client, historyOf(client, false), METADATA.publicModel, true);
    expect(sent).toEqual(["skip_thought_signature_validator", null]);
  });

  test("takes no signature to a host of another family", () => {
    const sent = signatures(client, historyOf(client, true), "openai/gpt-5.1", false);
    expect(sent).toEqual([null, null]);
  });
});
