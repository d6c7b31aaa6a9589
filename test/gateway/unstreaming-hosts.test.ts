import { afterAll, describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Behaviour, startFakeHost } from "../fakes/host.ts";
import { chatText, type HostAnswer, messagesText, responsesText, sseText } from "../fakes/transcripts.ts";
import { brokenRules } from "../surfaces/event-order.ts";
import { open } from "./open.ts";

const ANSWERS: Readonly<Record<SurfaceName, HostAnswer>> = {
  "chat.completions": chatText(),
  responses: responsesText(),
  messages: messagesText(),
};
const PATHS = {
  "chat.completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;

/** What the host answers as JSON, whatever it is asked for, by its model. */
const BODIES: Readonly<Record<string, (answer: HostAnswer) => string>> = {
  whole: ({ whole }) => JSON.stringify(whole),
  spaced: ({ whole }) => `\n   \n${JSON.stringify(whole)}`,
  marked: ({ whole }) => `\ufeff${JSON.stringify(whole)}`,
  misnamed: ({ events }) => sseText(events),
  broken: ({ events }) => sseText(events.slice(0, -3)),
};

/** The first bytes arrive apart from the others. */
const piecemeal =
  (body: string): Behaviour =>
  async (wire) => {
    await wire.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`,
    );
    const bytes = Buffer.from(body);
    await wire.write(bytes.subarray(0, 3));
    await wire.write(bytes.subarray(3));
  };

let key = "";
const host = await startFakeHost((request) => {
  const spoken = SURFACE_NAMES.find((name) => PATHS[name] === request.path)!;
  const body = BODIES[request.json().model];
  return body === undefined ? json({ choices: [] }) : piecemeal(body(ANSWERS[spoken]));
});
const served = (id: string, by: string): string => `
  - id: test/${id}
    context_length: 10000
    max_output_tokens: 100
    price: { input: 1, output: 2 }
    routes: [${by}]`;
const rows = SURFACE_NAMES.map(
  (spoken) => `
  - { id: ${spoken}-said, base_url: "${host.url}/v1", speaks: [${spoken}], quirks: { no_stream: true } }
  - { id: ${spoken}-unsaid, base_url: "${host.url}/v1", speaks: [${spoken}] }`,
);
const models = SURFACE_NAMES.flatMap((spoken) => [
  served(`${spoken}-said`, `{ host: ${spoken}-said, model: whole }`),
  served(`${spoken}-marked-said`, `{ host: ${spoken}-said, model: marked }`),
  served(`${spoken}-misnamed-said`, `{ host: ${spoken}-said, model: misnamed }`),
  ...Object.keys(BODIES).map((body) =>
    served(`${spoken}-${body}`, `{ host: ${spoken}-unsaid, model: ${body} }`),
  ),
]);
models.push(
  served("both", "{ host: chat.completions-said, model: whole }, { host: sim, model: echo }"),
  served("bare", "{ host: chat.completions-said, model: bare }"),
);
const gateway = await open(`hosts:${rows.join("")}\nmodels:${models.join("")}\n`);
key = (await gateway.key(5)).key;
afterAll(() => closeAll(gateway, host));

const send = (client: SurfaceName, model: string, more: object = {}) => {
  const conversation =
    client === "responses"
      ? { input: "Hi" }
      : { messages: [{ role: "user", content: "Hi" }], max_tokens: 50 };
  return gateway.send("POST", PATHS[client], {
    bearer: key,
    json: { model: `test/${model}`, ...conversation, ...more },
  });
};
const receiptOf = async (headers: Headers) => (await gateway.receipt({ headers }, key)).json;

describe.each([...SURFACE_NAMES])("a client of %s", (client) => {
  describe.each([...SURFACE_NAMES])("on a host of %s", (spoken) => {
    test("that is said not to stream, is streamed what that answers whole", async () => {
      const { status, text, headers } = await send(client, `${spoken}-said`, { stream: true });
      expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
      expect(text).toContain("Hello");
      expect(brokenRules(client, text)).toEqual([]);
      expect(host.requests.at(-1)!.json().stream ?? false).toBe(false);
      expect(await receiptOf(headers)).toMatchObject({
        state: "settled",
        stream: true,
        attempts: [{ host: `${spoken}-said`, outcome: "opened" }],
      });
    });

    test.each(Object.keys(BODIES).filter((body) => body !== "broken"))(
      "that answers with JSON although it was asked to stream, %s, is streamed that",
      async (body) => {
        const { status, text, headers } = await send(client, `${spoken}-${body}`, { stream: true });
        expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
        expect(host.requests.at(-1)!.json().stream).toBe(true);
        expect(text).toContain("Hello");
        expect(brokenRules(client, text)).toEqual([]);
      },
    );
  });
});

test.each([...SURFACE_NAMES])(
  "a host of %s that always streams is understood by every client, streamed or not",
  async (spoken) => {
    key = (await gateway.key(5)).key;
    for (const client of SURFACE_NAMES) {
      const whole = await send(client, `${spoken}-misnamed`);
      expect(host.requests.at(-1)!.json().stream ?? false).toBe(false);
      expect([client, whole.status, JSON.stringify(whole.json)]).toEqual([
        client,
        200,
        expect.stringContaining("Hello"),
      ]);
      expect(await receiptOf(whole.headers)).toMatchObject({ state: "settled", tokens: { source: "host" } });
      const streamed = await send(client, `${spoken}-misnamed-said`, { stream: true });
      expect(host.requests.at(-1)!.json().stream ?? false).toBe(false);
      expect([client, streamed.status, brokenRules(client, streamed.text)]).toEqual([client, 200, []]);
      expect(streamed.text).toContain("Hello");
    }
  },
);

test.each([...SURFACE_NAMES])(
  "a stream of %s that breaks off where none was due is no answer, and no charge",
  async (spoken) => {
    key = (await gateway.key(5)).key;
    for (const client of SURFACE_NAMES) {
      const { status, headers } = await send(client, `${spoken}-broken`);
      expect([client, status]).toEqual([client, 503]);
      expect(await receiptOf(headers)).toMatchObject({ state: "failed", cost_usd: 0 });
    }
  },
);

test.each([...SURFACE_NAMES])(
  "a byte order mark before the JSON of a host of %s is left out, whether it streams or not",
  async (spoken) => {
    // Its own requests per minute.
    key = (await gateway.key(5)).key;
    for (const model of [`${spoken}-marked`, `${spoken}-marked-said`])
      for (const client of SURFACE_NAMES) {
        const { status, json } = await send(client, model);
        expect([client, model, status, JSON.stringify(json)]).toEqual([
          client,
          model,
          200,
          expect.stringContaining("Hello"),
        ]);
      }
  },
);

test.each([...SURFACE_NAMES])(
  "usage of a host of %s reaches a chat client that asks for it",
  async (spoken) => {
    const streaming = { stream: true, stream_options: { include_usage: true } };
    const { text } = await send("chat.completions", `${spoken}-said`, streaming);
    expect(brokenRules("chat.completions", text, { usage: true })).toEqual([]);
    // OpenAI refuses these without a stream.
    expect(host.requests.at(-1)!.json().stream_options).toBeUndefined();
  },
);

test("unstreamed requests get the host's answer as it is", async () => {
  const { status, headers, json: answer } = await send("chat.completions", "chat.completions-said");
  expect(status).toBe(200);
  const { usage, ...whole } = ANSWERS["chat.completions"].whole as { usage: object };
  const cost = (await receiptOf(headers)).cost_usd;
  expect(answer).toEqual({ ...whole, model: "test/chat.completions-said", usage: { ...usage, cost } });
});

test("a host of the model that streams is asked first", async () => {
  const { text, headers } = await send("chat.completions", "both", { stream: true });
  expect(text).toEndWith("data: [DONE]\n\n");
  expect((await receiptOf(headers)).attempts).toMatchObject([{ host: "sim" }]);
});

test("an answer that is none is a failure of the host, by name", async () => {
  const { status, headers } = await send("chat.completions", "bare", { stream: true });
  expect(status).toBe(503);
  const { attempts } = await receiptOf(headers);
  expect(attempts).toMatchObject([{ outcome: "refused", detail: "the answer has no choices" }]);
});
