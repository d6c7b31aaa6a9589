import { expect, test } from "bun:test";
import { SURFACE_NAMES } from "../../../src/catalog/catalog.ts";
import { SURFACES } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";

const BODY = JSON.stringify({
  model: "a/b",
  max_tokens: 5,
  input: "Hello",
  messages: [{ role: "user", content: "Hello" }],
});
const bytes = (text: string) => new TextEncoder().encode(text);

test.each(SURFACE_NAMES)(
  "%s: a byte order mark before the body is left out, of what the host is sent too",
  (name) => {
    const request = SURFACES[name].readRequest(bytes(`\ufeff${BODY}`));
    if (refused(request)) throw new Error(request.message);
    expect(new TextDecoder("utf-8", { ignoreBOM: true }).decode(request.body)).toBe(BODY);
  },
);

test("a second one is no JSON", () => {
  expect(refused(SURFACES.messages.readRequest(bytes(`\ufeff\ufeff${BODY}`)))).toBe(true);
});
