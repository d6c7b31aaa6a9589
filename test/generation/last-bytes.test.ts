import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { hostRow } from "../fakes/host.ts";
import { chatText, type HostAnswer, messagesText, responsesText } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { read, requestBody } from "./test-gateway.ts";

/**
 * Hosts write the end of a stream's body apart from its last event, often in a packet of its own. The client
 * has its whole answer before that, and the connection is kept: a new one would cost each request a
 * handshake.
 */
const ANSWERS: Record<SurfaceName, HostAnswer> = {
  "chat.completions": chatText(),
  responses: responsesText(),
  messages: messagesText(),
};
/** A collected answer is one that may be long. */
const CEILING: Record<SurfaceName, object> = {
  "chat.completions": { max_tokens: 4_000 },
  responses: { max_output_tokens: 4_000 },
  messages: { max_tokens: 4_000 },
};

const { startHost, openGateway } = openedPerTest();

describe.each([...SURFACE_NAMES])("%s", (surface) => {
  test.each([true, false])("the connection is used again, streamed: %p", async (stream) => {
    const { events } = ANSWERS[surface];
    const end = gate();
    const late = sse(events, { before: (n) => (n === events.length ? end.passed : undefined) });
    const host = await startHost((_request, n) => (n === 0 ? late : sse(events)));
    const gateway = await openGateway([hostRow(host, { speaks: [surface] })]);
    const answered = async () =>
      read(await gateway.send(surface, { ...requestBody(surface, CEILING[surface]), stream }));

    await answered();
    end.open();
    // It may come after the next request; of one more at a time than there were before, one has the first
    // connection then.
    const isUsedAgain = () => host.requests.slice(1).some(({ connection }) => connection === 0);
    for (let atOnce = 1; atOnce <= 10 && !isUsedAgain(); atOnce++)
      await Promise.all(Array.from({ length: atOnce }, answered));
    expect(isUsedAgain()).toBe(true);
  });
});
