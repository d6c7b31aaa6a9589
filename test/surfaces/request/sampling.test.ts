import { expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import type { Quirks } from "../../../src/catalog/quirks.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { decode, readRequest } from "../harness.ts";

/** What a host receives of how to sample, and what it does not although the client sent it. */
function sampling(client: SurfaceName, spoken: SurfaceName, quirks: Quirks, wish: object) {
  const conversation =
    client === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] };
  const request = readRequest(client, {
    model: "a/b",
    ...(client === "messages" ? { max_tokens: 9 } : {}),
    ...conversation,
    ...wish,
  });
  const body = pairing(client, spoken).hostBody(request, {
    model: "b",
    publicModel: "a/b",
    stream: false,
    quirks,
    maxOutputTokens: null,
    defaultMaxOutputTokens: 100,
  });
  if (refused(body)) throw new Error(body.message);
  const { temperature, top_p, top_k } = JSON.parse(decode(Buffer.concat(body.parts)));
  return { sent: JSON.parse(JSON.stringify({ temperature, top_p, top_k })), omitted: body.omitted };
}

const ALONE: Quirks = { noSampling: true };

test.each<[SurfaceName, SurfaceName, Quirks, object, object, string[]]>([
  [
    "chat.completions",
    "messages",
    ALONE,
    { temperature: 0.2, top_p: 0.9, top_k: 5 },
    {},
    ["temperature", "top_p", "top_k"],
  ],
  ["chat.completions", "messages", ALONE, { temperature: 1, top_p: 1 }, {}, []],
  ["chat.completions", "messages", {}, { temperature: 0.2, top_p: 0.9 }, { temperature: 0.2 }, ["top_p"]],
  ["chat.completions", "messages", {}, { temperature: 0.2, top_p: 1 }, { temperature: 0.2 }, []],
  ["chat.completions", "messages", {}, { top_p: 0.9 }, { top_p: 0.9 }, []],
  ["chat.completions", "responses", ALONE, { temperature: 0.2 }, {}, ["temperature"]],
  [
    "chat.completions",
    "responses",
    {},
    { temperature: 0.2, top_p: 0.9 },
    { temperature: 0.2, top_p: 0.9 },
    [],
  ],
  ["messages", "responses", ALONE, { temperature: 0.2 }, {}, ["temperature"]],
  ["messages", "chat.completions", ALONE, { temperature: 0.2 }, {}, ["temperature"]],
  ["responses", "messages", ALONE, { temperature: 0.2 }, {}, ["temperature"]],
  // A client of the host's own language gets the host's error, as it would without a gateway.
  ["messages", "messages", ALONE, { temperature: 0.2 }, { temperature: 0.2 }, []],
])(
  "a %s client, on a host of %s with %j, asks for %j: the host receives %j, and %j is named",
  (client, spoken, quirks, wish, sent, omitted) => {
    expect(sampling(client, spoken, quirks, wish)).toEqual({ sent, omitted });
  },
);

test("a host that refuses requests for reasoning summaries is asked for the effort alone", () => {
  const request = readRequest("messages", {
    model: "a/b",
    max_tokens: 4_000,
    messages: [{ role: "user", content: "Hi" }],
    thinking: { type: "enabled", budget_tokens: 2_000 },
  });
  const reasoning = (quirks: Quirks) => {
    const body = pairing("messages", "responses").hostBody(request, {
      model: "b",
      publicModel: "a/b",
      stream: false,
      quirks,
      maxOutputTokens: null,
      defaultMaxOutputTokens: 100,
    });
    if (refused(body)) throw new Error(body.message);
    return JSON.parse(decode(Buffer.concat(body.parts))).reasoning;
  };
  const { summary, ...effort } = reasoning({});
  expect(summary).toBe("auto");
  expect(reasoning({ noReasoningSummary: true })).toEqual(effort);
});
