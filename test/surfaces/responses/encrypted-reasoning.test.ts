import { describe, expect, test } from "bun:test";
import type { GenerationRequest, HostBody } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";

/**
 * What a host of Responses is sent of earlier thoughts, and asked for about new ones, by a client of
 * Responses.
 */
const TARGET = {
  model: "host-model",
  publicModel: "test/model",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 100,
} as const;

function sent(more: object) {
  const body = Buffer.from(JSON.stringify({ model: "test/model", input: "Hi", ...more }));
  const request = SURFACES.responses.readRequest(body) as GenerationRequest;
  const { parts, omitted } = pairing("responses", "responses").hostBody(request, TARGET) as HostBody;
  return { json: JSON.parse(Buffer.concat(parts).toString()), omitted };
}

const ENCRYPTED = "reasoning.encrypted_content";

describe("encrypted thoughts are asked for where the client thinks that they are kept", () => {
  test.each([
    ["an effort", { reasoning: { effort: "low" } }, [ENCRYPTED]],
    ["summaries", { reasoning: { summary: "auto" } }, [ENCRYPTED]],
    [
      "an effort next to other details",
      { reasoning: { effort: "high" }, include: ["message.output_text.logprobs"] },
      ["message.output_text.logprobs", ENCRYPTED],
    ],
    ["an empty list", { reasoning: { effort: "high" }, include: [] }, [ENCRYPTED]],
    ["null", { reasoning: { effort: "high" }, include: null, store: null }, [ENCRYPTED]],
    ["it already", { reasoning: { effort: "low" }, include: [ENCRYPTED] }, [ENCRYPTED]],
  ])("asking for %s", (_what, more, include) => {
    expect(sent(more).json).toMatchObject({ include, store: false });
  });

  test.each([
    ["says nothing of reasoning: its model may have none, and refuse", {}],
    ["wants no reasoning", { reasoning: { effort: "none" } }],
    ["has an empty wish", { reasoning: {} }],
    ["knows that nothing is kept", { reasoning: { effort: "low" }, store: false }],
  ])("not where it %s", (_what, more) => {
    expect(sent(more).json).not.toHaveProperty("include");
  });
});

describe("an earlier thought", () => {
  const CALL = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "{}" };
  const RESULT = { type: "function_call_output", call_id: "call_1", output: "4" };
  const around = (thought: object) => [{ role: "user", content: "Hi" }, thought, CALL, RESULT];
  const rest = [{ role: "user", content: "Hi" }, CALL, RESULT];

  test.each([
    ["an id alone", { type: "reasoning", id: "rs_1", summary: [] }],
    [
      "an id and what its encryption is not",
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: null },
    ],
    [
      "an id and a summary",
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], content: [] },
    ],
    [
      "the encryption of another language's",
      {
        type: "reasoning",
        id: "rs_1",
        summary: [],
        encrypted_content: "gwseal:1:messages/anthropic:signature:abc",
      },
    ],
  ])("of %s stays out, and is named: the host would refuse everything", (_what, thought) => {
    const { json, omitted } = sent({ input: around(thought) });
    expect(json.input).toEqual(rest);
    expect(omitted).toEqual(["reasoning"]);
  });

  test.each([
    ["that is encrypted", { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" }],
    [
      "of an open model",
      { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] },
    ],
  ])("%s goes back as it came", (_what, thought) => {
    const { json, omitted } = sent({ input: around(thought) });
    expect(json.input).toEqual(around(thought));
    expect(omitted).toEqual([]);
  });
});
