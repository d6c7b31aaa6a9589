import { describe, expect, test } from "bun:test";
import {
  encodeFor,
  type HostRequest,
  hostRequestFor,
  type OutputCeilings,
} from "../../src/hosts/host-request.ts";
import { type Candidate, paidCandidates } from "../../src/routing/candidate.ts";
import type { GenerationRequest, HostTarget } from "../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import { model, route } from "../routing/world.ts";

const CEILINGS: OutputCeilings = { outputCeiling: null, defaultMaxOutputTokens: 100 };
const LONG_PROMPT = "word ".repeat(4_000);

/** What a host is sent for a request to a model that writes at most 500 tokens. */
function sent(
  body: object,
  ceilings: Partial<OutputCeilings> = {},
  one = route("a"),
): HostTarget & { readonly spoken: string } {
  const whole = { model: "x/one", messages: [{ role: "user", content: "Hi" }], ...body };
  const request = SURFACES["chat.completions"].readRequest(
    new TextEncoder().encode(JSON.stringify(whole)),
  ) as GenerationRequest;
  const candidate = paidCandidates(model("x/one", [one]), { surface: "chat.completions" })[0]!;
  let target: HostTarget | null = null;
  const encoded = encodeFor(request, candidate, { ...CEILINGS, ...ceilings }, (client, host) => {
    const pair = pairing(client, host);
    return {
      ...pair,
      hostBody(read, to) {
        target = to;
        return pair.hostBody(read, to);
      },
    };
  });
  if (refused(encoded)) throw new Error(encoded.message);
  return { ...target!, spoken: encoded.spoken };
}

describe("an answer that nobody streams is streamed from the host", () => {
  test.each<[string, object, Partial<OutputCeilings>, boolean]>([
    ["not where 150 tokens are named", { max_tokens: 150 }, {}, false],
    ["where 151 are named", { max_tokens: 151 }, {}, true],
    ["not where its key holds for 150", {}, { outputCeiling: 150, defaultMaxOutputTokens: 400 }, false],
    ["where it may be as long as is usual", {}, { defaultMaxOutputTokens: 400 }, true],
    ["not where what is usual is short", {}, { defaultMaxOutputTokens: 100 }, false],
    [
      "not where it is spoken",
      { max_tokens: 400, modalities: ["text", "audio"], audio: { voice: "a", format: "wav" } },
      {},
      false,
    ],
  ])("%s", (_, body, ceilings, stream) => {
    expect(sent(body, ceilings).stream).toBe(stream);
  });

  test("not where the model writes less than is usual", () => {
    const small = { maxOutputTokens: 120 };
    const candidate = paidCandidates(model("x/one", [route("a")], small), {
      surface: "chat.completions",
    })[0]!;
    const request = SURFACES["chat.completions"].readRequest(
      new TextEncoder().encode(
        JSON.stringify({ model: "x/one", messages: [{ role: "user", content: "Hi" }] }),
      ),
    ) as GenerationRequest;
    const encoded = encodeFor(request, candidate, { ...CEILINGS, defaultMaxOutputTokens: 4_000 }, pairing);
    expect(encoded).toMatchObject({ stream: false });
  });

  test("never where the host cannot stream", () => {
    expect(
      sent({ stream: true, max_tokens: 400 }, {}, route("a", { quirks: { noStream: true } })).stream,
    ).toBe(false);
  });
});

test.each<[string, object, Partial<OutputCeilings>, number | null]>([
  ["what a client names is left to it", { max_tokens: 400 }, {}, null],
  ["more than the model writes becomes that", { max_tokens: 501 }, {}, 500],
  ["as much as the model writes is left as it is", { max_tokens: 500 }, {}, null],
  ["what is held for limits an answer that is not streamed", {}, { outputCeiling: 90 }, 90],
  ["a stream is stopped by the gateway", { stream: true }, { outputCeiling: 90 }, null],
])("the ceiling that a host gets: %s", (_, body, ceilings, expected) => {
  expect(sent(body, ceilings).maxOutputTokens).toBe(expected);
});

test.each([
  [100, 100],
  [4_000, 500],
])(
  "a host whose language wants a ceiling gets the usual %i, and no more than the model writes: %i",
  (usual, most) => {
    expect(sent({}, { defaultMaxOutputTokens: usual }).defaultMaxOutputTokens).toBe(most);
  },
);

test.each<[string, object, Parameters<typeof route>[1], boolean]>([
  ["by itself, not", { messages: [{ role: "user", content: LONG_PROMPT }] }, {}, false],
  [
    "as the request wants",
    { auto_cache: true, messages: [{ role: "user", content: LONG_PROMPT }] },
    {},
    true,
  ],
  ["as the route says", { messages: [{ role: "user", content: LONG_PROMPT }] }, { autoCache: true }, true],
  [
    "as the host says",
    { messages: [{ role: "user", content: LONG_PROMPT }] },
    { on: { autoCache: true } },
    true,
  ],
  [
    "the route before the host",
    { messages: [{ role: "user", content: LONG_PROMPT }] },
    { autoCache: false, on: { autoCache: true } },
    false,
  ],
  [
    "the request before the route",
    { auto_cache: false, messages: [{ role: "user", content: LONG_PROMPT }] },
    { autoCache: true },
    false,
  ],
  ["a short prompt never", { auto_cache: true }, {}, false],
])("a prompt is marked for the cache: %s", (_, body, more, marks) => {
  expect(sent(body, {}, route("a", more)).marksCache).toBe(marks);
});

test.each<[string, object, string]>([
  ["with tools", { tools: [{ type: "function", function: { name: "f", parameters: {} } }] }, "responses"],
  [
    "with tools and no thinking",
    { reasoning_effort: "none", tools: [{ type: "function", function: { name: "f", parameters: {} } }] },
    "chat.completions",
  ],
  ["without tools", { tools: [] }, "chat.completions"],
])("a host that takes no tools in chat is spoken to %s in %s", (_, body, spoken) => {
  const both = route("a", {
    quirks: { noChatTools: true },
    on: { speaks: ["chat.completions", "responses"] },
  });
  expect(sent(body, {}, both).spoken).toBe(spoken);
});

test("what was encoded for another candidate, another ceiling or another request is not sent", () => {
  const readRequest = () =>
    SURFACES["chat.completions"].readRequest(
      new TextEncoder().encode(
        JSON.stringify({ model: "x/one", messages: [{ role: "user", content: "Hi" }] }),
      ),
    ) as GenerationRequest;
  const request = readRequest();
  const [candidate, other] = paidCandidates(model("x/one", [route("a"), route("b")]), {
    surface: "chat.completions",
  }) as [Candidate, Candidate];
  const hostRequest = encodeFor(request, candidate, CEILINGS, pairing) as HostRequest;
  const prepared = { request, candidate, outputCeiling: null, hostRequest };
  const isReused = (to: GenerationRequest, at: Candidate, outputCeiling: number | null) =>
    hostRequestFor(to, at, { ...CEILINGS, outputCeiling }, pairing, prepared) === hostRequest;
  expect(isReused(request, candidate, null)).toBeTrue();
  expect(isReused(request, other, null)).toBeFalse();
  expect(isReused(request, candidate, 90)).toBeFalse();
  expect(isReused(readRequest(), candidate, null)).toBeFalse();
});
