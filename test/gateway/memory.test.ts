import { heapStats } from "bun:jsc";
import { afterAll, expect, test } from "bun:test";
import { gate } from "../fakes/gate.ts";
import { chatText, eventText, messagesText, type SseEvent } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/** Hosts that keep nothing of what they are sent, and keep their streams open after a few events. */
let finish = gate();

const openStream = (events: readonly SseEvent[]) =>
  Bun.serve({
    port: 0,
    async fetch(request) {
      await request.arrayBuffer();
      const body = new ReadableStream<Uint8Array>({
        async start(controller) {
          const send = (some: readonly SseEvent[]) =>
            controller.enqueue(Buffer.from(some.map((event) => eventText(event)).join("")));
          send(events.slice(0, 4));
          await finish.passed;
          send(events.slice(4));
          controller.close();
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });

const hosts = [chatText().events, messagesText().events].map(openStream);
const [chat, messages] = hosts.map(({ port }) => `http://127.0.0.1:${port}/v1`);
const model = `context_length: 100000000, max_output_tokens: 100, price: { input: 0, output: 10 }`;
const gateway = await open(`
hosts:
  - { id: chat, base_url: "${chat}", speaks: [chat.completions] }
  - { id: messages, base_url: "${messages}", speaks: [messages] }
models:
  - { id: test/same, ${model}, routes: [{ host: chat, model: m }] }
  - { id: test/translated, ${model}, routes: [{ host: messages, model: m }] }
defaults:
  accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }
`);
afterAll(async () => {
  finish.open();
  await gateway.close();
  await Promise.all(hosts.map((host) => host.stop(true)));
});

const PROMPT_BYTES = 2_000_000;
// So many that the few which the collector finds by chance, on a stack that is not cleared, do not count.
const STREAMS = 16;

test.each([
  ["/v1/chat/completions", "test/same"],
  ["/v1/chat/completions", "test/translated"],
  ["/v1/responses", "test/translated"],
])("a stream of %s from %s keeps nothing of its prompt", async (path, model) => {
  finish = gate();
  const { key } = await gateway.key(1_000);
  const content = "x".repeat(PROMPT_BYTES);
  const conversation = path.endsWith("responses")
    ? { input: content }
    : { messages: [{ role: "user", content }] };
  const body = JSON.stringify({ model, stream: true, ...conversation });
  const before = heldBytes();
  const readers = [];
  for (let index = 0; index < STREAMS; index++) {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(gateway.url + path, { method: "POST", headers, body });
    expect(response.status).toBe(200);
    const reader = response.body!.getReader();
    await reader.read();
    readers.push(reader);
  }
  expect(heldBytes() - before).toBeLessThan((STREAMS * PROMPT_BYTES) / 4);
  // A client that left would be billed for an exact count of the prompt, which takes a second each.
  finish.open();
  for (const reader of readers) while (!(await reader.read()).done);
});

function heldBytes(): number {
  Bun.gc(true);
  return heapStats().heapSize;
}
