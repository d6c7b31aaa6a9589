import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES } from "../../src/catalog/catalog.ts";
import type { ErrorObject } from "../../src/errors/refusal.ts";
import { pairing } from "../../src/surfaces/surfaces.ts";
import { SICK } from "../fakes/hosts/sick.ts";
import { brokenRules, wrongEvents } from "./event-order.ts";
import { ASKED, decode, encode, given, givenSoFar, inPieces, openRequest } from "./harness.ts";
import { tellable, toldByStream } from "./told.ts";

/** Hosts that break the rules of their language, and clients of the others, for whom every rule of theirs holds. */
const ERROR: ErrorObject = { message: "It broke.", type: "api_error", code: "upstream_error", param: null };

describe.each(SICK)("%s", (_name, { host, stream, broken, story }) => {
  const bytes = encode(stream);

  test.each(SURFACE_NAMES.filter((client) => client !== host))("%s client", (client) => {
    const open = () => pairing(client, host).openStream(openRequest(client, true), ASKED);
    if (broken === null) {
      const text = given(open(), [bytes]);
      expect(brokenRules(client, text, { usage: true })).toEqual([]);
      expect(wrongEvents(client, text)).toEqual([]);
      const { usage: _told, ...told } = toldByStream(client, text);
      const { usage: _none, ...expected } = tellable(client, { ...story, usage: null });
      expect(told).toEqual(expected);
      for (const size of [1, 5]) expect(given(open(), inPieces(bytes, size))).toBe(text);
      return;
    }
    for (const size of [bytes.length, 1, 5]) {
      const judge = open();
      const before = givenSoFar(judge, inPieces(bytes, size));
      expect(judge.terminal).toBeNull();
      expect(judge.fault?.message).toMatch(broken);
      const text = before + decode(judge.fail(ERROR));
      expect(text).toContain("It broke.");
      expect(brokenRules(client, text, { usage: true })).toEqual([]);
      expect(wrongEvents(client, text)).toEqual([]);
    }
  });

  test("a client of the host's own language learns of a fault all the same", () => {
    const judge = pairing(host, host).openStream(openRequest(host, true), ASKED);
    givenSoFar(judge, [bytes]);
    if (broken === null) expect(judge.fault).toBeNull();
    else expect(judge.terminal).toBeNull();
  });
});
