import { expect, test } from "bun:test";
import { deliveredTokens, usedTokens } from "../../src/generation/metering.ts";
import type { GenerationRequest } from "../../src/surfaces/surface.ts";

const asked = (maxOutputTokens: number | null, choices = 1) =>
  ({
    maxOutputTokens,
    choices,
    promptEstimate: 10,
    promptCachedFor1h: false,
    promptBesideAudio: null,
    answersInAudio: false,
  }) as GenerationRequest;

// Of a stream that its client left nobody tells the usage, and tokens that are counted by their text may be
// too many.
test.each([
  ["fewer than were asked for count as they are", 90, asked(100), 90],
  ["no more are counted than the client allowed", 135, asked(100), 100],
  ["each choice may have as many", 135, asked(100, 2), 135],
  ["a client that named no ceiling is charged what was delivered", 135, asked(null), 135],
])("%s", (_, counted, request, charged) => {
  expect(deliveredTokens(null, counted, request).output).toBe(charged);
});

const NOTHING = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

test("a host that claims to have read and written nothing, although text arrived, is believed in neither", () => {
  const { tokens, from } = usedTokens(NOTHING, 7, asked(null));
  expect([tokens.input, tokens.output, from]).toEqual([10, 7, "counted"]);
});

test("what a host said of the prompt before it broke stands, also where all of it came from its cache", () => {
  expect(deliveredTokens({ ...NOTHING, input: 4 }, 7, asked(null)).input).toBe(4);
  expect(deliveredTokens({ ...NOTHING, cacheRead: 4 }, 7, asked(null))).toMatchObject({
    input: 0,
    cacheRead: 4,
  });
});
