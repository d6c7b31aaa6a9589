/**
 * The host of a storm, on a machine of its own: answers with as many tokens as the prompt asks for, whole or
 * as a stream of one token every few milliseconds.
 *
 *     bun test/network/host.ts 9000
 */
export {};

const server = Bun.serve({
  hostname: "0.0.0.0",
  port: Number(process.argv[2]),
  async fetch(request) {
    const { stream, messages } = (await request.json()) as HostedRequest;
    const tokens = Number(messages[0]!.content.split(" ").at(-1));
    if (stream !== true) {
      await Bun.sleep(tokens / 4);
      const message = { role: "assistant", content: "token ".repeat(tokens) };
      return Response.json({
        ...about("chat.completion"),
        choices: [{ index: 0, message, finish_reason: "stop" }],
        usage: usage(tokens),
      });
    }
    return new Response(paced(tokens), { headers: { "content-type": "text/event-stream" } });
  },
});
console.log(server.port);

function paced(tokens: number): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      for (let index = 0; index < TOKENS_AT_ONCE && sent < tokens; index++, sent++) {
        const choice = { index: 0, delta: { content: "token " }, finish_reason: null };
        controller.enqueue(encoder.encode(chunk({ choices: [choice] })));
      }
      if (sent < tokens) return Bun.sleep(TOKENS_AT_ONCE * 4);
      controller.enqueue(
        encoder.encode(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })),
      );
      controller.enqueue(encoder.encode(chunk({ choices: [], usage: usage(tokens) })));
      controller.enqueue(encoder.encode("data: [DONE]\n\n"));
      controller.close();
    },
  });
}

const TOKENS_AT_ONCE = 5;

const chunk = (members: object): string =>
  `data: ${JSON.stringify({ ...about("chat.completion.chunk"), ...members })}\n\n`;
const about = (object: string) => ({ id: "chatcmpl-storm", object, created: 1, model: "host-model" });
const usage = (tokens: number) => ({
  prompt_tokens: 10,
  completion_tokens: tokens,
  total_tokens: 10 + tokens,
});

interface HostedRequest {
  readonly stream?: boolean;
  readonly messages: readonly { readonly content: string }[];
}
