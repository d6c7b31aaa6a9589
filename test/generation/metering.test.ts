import { expect, test } from "bun:test";
import { deliveredTokens } from "../../src/generation/metering.ts";
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

// Of a stream that its client left nobody tells the usage, and tokens that are counted by their text may be too many.
test.each([
  ["fewer than were asked for count as they are", 90, asked(100), 90],
  ["no more are counted than the client allowed", 135, asked(100), 100],
  ["each choice may have as many", 135, asked(100, 2), 135],
  ["a client that named no ceiling is charged what was delivered", 135, asked(null), 135],
])("%s", (_, counted, request, charged) => {
  expect(deliveredTokens(null, counted, request).output).toBe(charged);
});
