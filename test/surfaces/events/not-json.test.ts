import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { chatText, messagesText, responsesText, type SseEvent, sseText } from "../../fakes/transcripts.ts";
import { encode, givenSoFar, inPieces, METADATA, openRequest } from "../harness.ts";

/**
 * An event that clients cannot parse: OpenAI's throws a bare SyntaxError on it. It is the host's failure, and
 * is never passed on.
 */
const EVENTS: Record<SurfaceName, readonly SseEvent[]> = {
  "chat.completions": chatText(["One", " two", " three", " four", " five"]).events,
  responses: responsesText(["One", " two", " three", " four", " five"]).events,
  messages: messagesText(["One", " two", " three", " four", " five"]).events,
};

/** What stands in place of the event of “ three”. */
const SPOILT: Record<string, (data: string) => string> = {
  "a proxy's page": () => "<html>502 Bad Gateway</html>",
  "a sentence": () => "upstream connect error or disconnect/reset before headers",
  "an object that is cut": (data) => data.slice(0, -3),
  "a number": () => "7",
  "a list": () => "[]",
  "Python's NaN": (data) => data.replace(/^\{/, '{"logprob":NaN,'),
  "Python's NaN inside": (data) => data.replace(/^\{/, '{"logprobs":{"content":[-Infinity]},'),
  "an escape that there is not": (data) => data.replace(" three", " th\\qree"),
  "a bare tab in the text": (data) => data.replace(" three", " th\tree"),
  // Which ends the line, so that clients see half of the object.
  "a carriage return in the object": (data) => data.replace(",", ",\r"),
};

describe.each([...SURFACE_NAMES])("%s host", (host) => {
  for (const [name, spoil] of Object.entries(SPOILT)) {
    test.each([...SURFACE_NAMES])(`${name}: a fault, of which a %s client receives nothing`, (client) => {
      const events = EVENTS[host].map((event) =>
        event.data.includes(" three") ? { ...event, data: spoil(event.data) } : event,
      );
      const bytes = encode(sseText(events));
      for (const size of [1, 7, bytes.length]) {
        const judge = pairing(client, host).openStream(openRequest(client, true), METADATA);
        const text = givenSoFar(judge, inPieces(bytes, size));
        expect(judge.fault?.message).toBe("an event is not a JSON object");
        expect(judge.isComplete).toBe(false);
        expect(text).toContain(" two");
        expect(text).not.toContain("ree");
        for (const line of text.split("\n"))
          if (line.startsWith("data: ")) expect(JSON.parse(line.slice(6))).toBeObject();
      }
    });
  }

  test.each([...SURFACE_NAMES])("empty data is no event: a %s client loses nothing", (client) => {
    const [first, ...rest] = EVENTS[host];
    const judge = pairing(client, host).openStream(openRequest(client, true), METADATA);
    const text = givenSoFar(judge, [encode(`${sseText([first!])}data:\n\n${sseText(rest)}`)]);
    expect(judge.fault).toBeNull();
    expect(judge.isComplete).toBe(true);
    expect(text).toContain(" five");
  });
});
