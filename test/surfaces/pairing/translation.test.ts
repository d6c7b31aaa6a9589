import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES } from "../../../src/catalog/catalog.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { ACCENTED, OFFICIAL } from "../../fakes/hosts/all.ts";
import { contentOfStream, contentOfWhole, tellable } from "../answer-content.ts";
import { brokenRules, wrongEvents } from "../event-order.ts";
import { bodyOf, encode, given, inPieces, METADATA, openRequest } from "../harness.ts";
import { violations } from "../wire-schema.ts";

/** Every answer of every host, sent to clients of all three languages. */
const WHOLE = { "chat.completions": "chatCompletion", responses: "response", messages: "message" } as const;

for (const [name, transcript] of [...OFFICIAL, ...ACCENTED]) {
  const { host, stream, whole, story } = transcript;
  const official = OFFICIAL.some(([, one]) => one === transcript);
  const bytes = encode(stream);

  describe(name, () => {
    for (const client of SURFACE_NAMES) {
      const speaksOfCustomTools = client !== "messages";
      if (!speaksOfCustomTools && story.calls?.some(({ custom }) => custom)) continue;
      const by = client === host ? "host" : "gateway";
      const open = () => pairing(client, host).openStream(openRequest(client, true), METADATA);
      // What a host says with an accent reaches a client of its own language as it is.
      const heldToRules = official || client !== host;
      const answers = {
        ...tellable(client, story),
        ...(client === host && story.ending ? { end: story.ending } : {}),
      };

      test(`${client} client, streamed`, () => {
        const judge = open();
        const text = given(judge, [bytes]);
        expect(judge.usage).toMatchObject(story.usage!);
        if (!heldToRules) return;
        expect(brokenRules(client, text, { usage: true })).toEqual([]);
        expect(wrongEvents(client, text, by)).toEqual([]);
        expect(contentOfStream(client, text)).toEqual(answers);
      });

      test(`${client} client, unstreamed`, () => {
        const reply = pairing(client, host).readReply(
          encode(JSON.stringify(whole)),
          openRequest(client, false),
          METADATA,
        );
        if (reply.kind === "fault") throw new Error(reply.error.message);
        expect(reply.usage).toMatchObject(story.usage!);
        if (!heldToRules) return;
        const body = JSON.parse(bodyOf(reply));
        expect(violations(WHOLE[client], body, by)).toEqual([]);
        expect(contentOfWhole(client, body)).toEqual(answers);
      });

      test(`${client} client: cut anywhere, the stream is the same`, () => {
        const text = given(open(), [bytes]);
        for (const size of [1, 3, 61]) expect(given(open(), inPieces(bytes, size))).toBe(text);
        const crlf = encode(stream.replaceAll("\n", "\r\n"));
        if (client !== host) expect(given(open(), inPieces(crlf, 1))).toBe(text);
      });
    }
  });
}
