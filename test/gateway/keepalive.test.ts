import { afterAll, describe, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { streamText } from "ai";
import OpenAI from "openai";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText, messagesText, responsesText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/** A host that falls silent in the middle of its answer, until the client has received so many signs of life. */
const SIGNS = 3;
let received: Gate<void>;

const ANSWERS = { "chat.completions": chatText, responses: responsesText, messages: messagesText } as const;
const SIGN: Readonly<Record<SurfaceName, string>> = {
  "chat.completions": ": keepalive\n\n",
  responses: ": keepalive\n\n",
  messages: 'event: ping\ndata: {"type":"ping"}\n\n',
};

const host = await startFakeHost((request) => {
  const spoken = SURFACE_NAMES.find((name) => request.path.endsWith(name.replace(".", "/")))!;
  const { events } = ANSWERS[spoken](["Hello", " there"]);
  const word = events.findIndex(({ data }) => data.includes(" there"));
  return sse(
    events.filter(({ event }) => event !== "ping"),
    { before: (n) => (n === word ? received.passed : undefined) },
  );
});
const rows = SURFACE_NAMES.map((name) => ({
  host: `  - { id: "${name}", base_url: "${host.url}/v1", speaks: [${name}] }`,
  model: `
  - id: on/${name}
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: "${name}", model: m }]`,
}));
const gateway = await open(`
hosts:\n${rows.map((row) => row.host).join("\n")}
models:${rows.map((row) => row.model).join("")}
generation: { keepalive_ms: 5 }
`);
const mine = await gateway.key(10);
afterAll(() => closeAll(gateway, host));

/** The client's own, with an ear for what arrives. */
const listening = (surface: SurfaceName) =>
  (async (url: string | URL | Request, init?: RequestInit) => {
    received = gate();
    const response = await fetch(url, init);
    let text = "";
    const decoder = new TextDecoder();
    const ear = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        text += decoder.decode(bytes, { stream: true });
        // Whole events alone stand before a sign.
        const parts = text.split(SIGN[surface]);
        for (const part of parts.slice(0, -1)) expect(part === "" || part.endsWith("\n\n")).toBe(true);
        if (parts.length > SIGNS) received.open();
        controller.enqueue(bytes);
      },
    });
    return new Response(response.body!.pipeThrough(ear), response);
  }) as typeof fetch;

const messages = [{ role: "user" as const, content: "Hi" }];
const openai = (surface: SurfaceName) =>
  new OpenAI({
    apiKey: mine.key,
    baseURL: `${gateway.url}/v1`,
    maxRetries: 0,
    fetch: listening(surface),
  });

describe.each(SURFACE_NAMES)("in a silence of a host of %s", (on) => {
  const model = `on/${on}`;

  test("OpenAI's client on chat receives signs of life, and the whole answer", async () => {
    const answer = await openai("chat.completions")
      .chat.completions.stream({ model, messages })
      .finalChatCompletion();
    expect(answer.choices[0]!.message.content).toBe("Hello there");
  });

  test("and so does it on responses", async () => {
    const answer = await openai("responses").responses.stream({ model, input: "Hi" }).finalResponse();
    expect(answer.output_text).toBe("Hello there");
  });

  test("and Anthropic's", async () => {
    const client = new Anthropic({
      apiKey: mine.key,
      baseURL: gateway.url,
      maxRetries: 0,
      fetch: listening("messages"),
    });
    const answer = await client.messages.stream({ model, max_tokens: 100, messages }).finalMessage();
    expect(answer.content).toMatchObject([{ type: "text", text: "Hello there" }]);
  });

  test("and Vercel's AI SDK", async () => {
    const provider = createOpenAICompatible({
      name: "gateway",
      apiKey: mine.key,
      baseURL: `${gateway.url}/v1`,
      fetch: listening("chat.completions"),
    });
    expect(await streamText({ model: provider(model), prompt: "Hi" }).text).toBe("Hello there");
  });
});
