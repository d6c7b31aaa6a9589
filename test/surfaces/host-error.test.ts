import { describe, expect, test } from "bun:test";
import { errorOf, readHostError } from "../../src/surfaces/host-error.ts";

const read = (body: string) => readHostError(502, Buffer.from(body)).message;

describe("a page instead of an error", () => {
  test.each([
    ["<html><body><h1>502 Bad Gateway</h1></body></html>", "502 Bad Gateway"],
    ["<html><style>h1 > b { color: red }</style><p>Down</p></html>", "Down"],
    ["  <p>Down for <b>maintenance</b>", "Down for maintenance"],
    ["<script>never closed", "status 502 without a message"],
    ["<p", "status 502 without a message"],
  ])("%s says %s", (page, words) => expect(read(page)).toBe(words));

  // By patterns, each of these took time with the square of its length: minutes.
  test.each(["<", "<style", "<script>"])("made of nothing but %s is read in one pass", (piece) => {
    expect(read(piece.repeat(500_000))).toBe("status 502 without a message");
  });
});

test("an error whose code is no text is an error all the same", () => {
  expect(errorOf({ error: { message: "No.", code: { toString: 1 } } }, "")).toMatchObject({ message: "No." });
});
