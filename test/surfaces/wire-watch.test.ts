import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { differences, LIST, outcomesNow } from "./wire-watch.ts";

const listed = JSON.parse(readFileSync(LIST, "utf8"));

test("what becomes of all that the vendors' packages name is listed (bun test/surfaces/wire-watch.ts --write)", () => {
  expect(differences(listed, outcomesNow())).toEqual({ added: [], gone: [], changed: [] });
});

test("a newer package fails with what is new in it, what is gone, and what has changed", () => {
  const before = {
    "responses: items": { message: "known", old: "refused" },
    "chat: parts": { text: "known" },
  } as const;
  const now = {
    "responses: items": { message: "refused", new: "left out" },
    "chat: parts": { text: "known" },
  } as const;
  expect(differences(before, now)).toEqual({
    added: ["responses: items: new is left out"],
    gone: ["responses: items: old"],
    changed: ["responses: items: message is refused, and was known"],
  });
});
