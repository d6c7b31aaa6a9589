import { expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { sse } from "../fakes/behaviours.ts";
import type { Behaviour } from "../fakes/host.ts";
import { chatText, responsesText, type SseEvent } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { read, requestBody } from "./test-gateway.ts";

/** What a host says before its first token. */
const { serving } = openedPerTest();

/** The attempts at these hosts for a client that streams. */
async function attempts(client: SurfaceName, body: object, behaving: readonly [SurfaceName, Behaviour][]) {
  const { gateway } = await serving(
    behaving.map(([spoken, says]) => [says, { speaks: [spoken] }]),
    { promptTokens: 1_000, model: { contextLength: 1_000_000 } },
  );
  const answer = await gateway.send(client, requestBody(client, { stream: true, ...body }));
  await read(answer);
  return gateway.receipt(answer).attempts;
}

/** Half a megabyte of letters that take two bytes each, and six in escapes. */
const LONG = "Поэтому ответ всегда краток. ".repeat(8_000);
const INSTRUCTED: Record<SurfaceName, object> = {
  "chat.completions": {
    messages: [
      { role: "system", content: LONG },
      { role: "user", content: "Hello" },
    ],
  },
  responses: { instructions: LONG },
  messages: { system: LONG },
};

test.each(SURFACE_NAMES)(
  "a host may repeat the instructions twice, in escapes, however long they are: to a client of %s",
  async (client) => {
    const escaped = (text: string) =>
      text.replace(/[^\x20-\x7e]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const events = responsesText().events.map((event): SseEvent => {
      const data = JSON.parse(event.data);
      if (data.response?.status === "in_progress") data.response.instructions = LONG;
      return { ...event, data: escaped(JSON.stringify(data)) };
    });
    const tried = await attempts(client, INSTRUCTED[client], [["responses", sse(events)]]);
    expect(tried).toMatchObject([{ outcome: "opened", detail: null }]);
  },
);

test.each(SURFACE_NAMES)(
  "a host that goes on and on without a token is left for the next: for a client of %s",
  async (client) => {
    const padding: SseEvent = { data: JSON.stringify({ choices: [], padding: "x".repeat(100_000) }) };
    const endless = sse(Array(20).fill(padding), { before: (n) => n === 20 && new Promise(() => {}) });
    const tried = await attempts(client, {}, [
      ["chat.completions", endless],
      ["chat.completions", sse(chatText().events)],
    ]);
    expect(tried).toMatchObject([
      { outcome: "refused", detail: expect.stringMatching(/^no token within 10\d{5} bytes$/) },
      { outcome: "opened" },
    ]);
  },
);
