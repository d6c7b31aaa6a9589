import { expect, test } from "bun:test";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { decode, encode, METADATA, openRequest } from "../harness.ts";

const chunk = (more: string, text = '"Hello"') =>
  `data: {"id":"c",${more}"model":"m","choices":[{"index":0,"delta":{"content":${text}},"finish_reason":null}]}\n\n`;
const BROKEN = [
  '"created":00,',
  '"created":1763"x":1,',
  '"fp":"\u0001",',
  '"fp":"\\x",',
  '"fp":[1,],',
  '"fp":tru,',
];

test.each(BROKEN)("an event with %j reaches no client of the same language", (more) => {
  const judge = pairing("chat.completions", "chat.completions").openStream(
    openRequest("chat.completions", true),
    METADATA,
  );
  const good = encode(chunk(""));
  expect(decode(judge.push(good.slice()))).not.toBe("");
  expect(judge.fault).toBeNull();
  expect(decode(judge.push(encode(chunk(more))))).toBe("");
  expect(judge.fault?.message).toBe("an event is not a JSON object");
});

test("nor does one whose text is no JSON", () => {
  const judge = pairing("chat.completions", "chat.completions").openStream(
    openRequest("chat.completions", true),
    METADATA,
  );
  judge.push(encode(chunk("")));
  expect(decode(judge.push(encode(chunk("", '"\\uZZZZ"'))))).toBe("");
  expect(judge.fault).not.toBeNull();
});
