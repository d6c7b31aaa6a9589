/**
 * The host that bench/transport.ts measures against, in a process of its own: POST /json is answered with a
 * small JSON body, POST /sse?events=N&everyMs=M with a paced stream. Prints its port.
 */
const BODY = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "pong" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
});

export const EVENT = `data: ${JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion.chunk",
  created: 1_763_000_000,
  model: "bench",
  choices: [{ index: 0, delta: { content: " token" }, logprobs: null, finish_reason: null }],
})}\n\n`;

if (import.meta.main) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      await request.bytes();
      if (url.pathname === "/json")
        return new Response(BODY, { headers: { "content-type": "application/json" } });
      return paced(Number(url.searchParams.get("events")), Number(url.searchParams.get("everyMs")));
    },
  });
  console.log(server.port);
}

function paced(events: number, everyMs: number): Response {
  let left = events;
  const stream = new ReadableStream<string>({
    async pull(controller) {
      await Bun.sleep(everyMs);
      controller.enqueue(EVENT);
      if (--left === 0) controller.close();
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}
