import { expect, test } from "bun:test";
import type { Endpoint } from "../../src/http/endpoint.ts";
import { unknownPath } from "../../src/http/unknown-path.ts";

const endpoints = Array.from({ length: 3_000 }, (_, n) => ({ method: "GET", path: `/v1/things/${n}/:id` }));
const why = (path: string): string =>
  unknownPath(new Request(`http://gateway.test${path}`), endpoints as unknown as Endpoint[]).why.message;

// Anybody may ask for them, as often as they like. Each took a second when it was cut up for every endpoint.
test.each([
  ["of many parts", "/a".repeat(8_000)],
  ["of slashes alone, but for its end", `${"/".repeat(16_000)}a`],
])("a path %s is looked at in the time that its length takes", (_, path) => {
  for (let n = 0; n < 10; n++) expect(why(path)).toContain("is not served");
});

test("slashes at the end are found, however many", () => {
  expect(why(`/v1/things/7/x${"/".repeat(8_000)}`)).toContain("leave out the slash at the end");
});
