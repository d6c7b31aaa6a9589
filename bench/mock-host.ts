/**
 * The host behind every macro measurement: as little work as a host can do, on raw sockets, so that what is measured is
 * the gateway. POST …/chat/completions answers JSON, or with `"stream":true` a paced stream: a first token after
 * `firstMs`, then `deltas` of them every `everyMs`. Prints its port.
 *
 *     bun run bench/mock-host.ts [firstMs] [deltas] [everyMs]
 */
import type { Socket } from "bun";

export const DELTA = `data: ${JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion.chunk",
  created: 1_763_000_000,
  model: "bench-model",
  choices: [{ index: 0, delta: { content: " token" }, logprobs: null, finish_reason: null }],
})}\n\n`;

const REPLY = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_763_000_000,
  model: "bench-model",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "pong", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
});
const WHOLE = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${REPLY.length}\r\n\r\n${REPLY}`;
const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const FINISH = `data: ${JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion.chunk",
  created: 1_763_000_000,
  model: "bench-model",
  choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }],
})}\n\n`;
const USAGE = `data: ${JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion.chunk",
  created: 1_763_000_000,
  model: "bench-model",
  choices: [],
  usage: { prompt_tokens: 10, completion_tokens: 64, total_tokens: 74 },
})}\n\n`;
const END = `${chunked(FINISH)}${chunked(USAGE)}${chunked("data: [DONE]\n\n")}0\r\n\r\n`;
const DELTA_CHUNK = chunked(DELTA);

interface Connection {
  pending: string;
  timer: Timer | null;
}

if (import.meta.main) {
  const [firstMs, deltas, everyMs] = [3, 4, 5].map((at) => Number(process.argv[at - 1] ?? 0)) as [
    number,
    number,
    number,
  ];
  const listener = Bun.listen<Connection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { pending: "", timer: null };
      },
      data(socket, bytes) {
        read(socket, bytes.toString("latin1"), { firstMs, deltas: deltas || 64, everyMs });
      },
      close(socket) {
        if (socket.data?.timer) clearInterval(socket.data.timer);
      },
    },
  });
  console.log(listener.port);
}

interface Pace {
  readonly firstMs: number;
  readonly deltas: number;
  readonly everyMs: number;
}

function read(socket: Socket<Connection>, text: string, pace: Pace): void {
  const { data } = socket;
  data.pending += text;
  for (;;) {
    const head = data.pending.indexOf("\r\n\r\n");
    if (head === -1) return;
    const length = Number(/content-length: *(\d+)/i.exec(data.pending.slice(0, head))?.[1] ?? 0);
    const end = head + 4 + length;
    if (data.pending.length < end) return;
    const body = data.pending.slice(head + 4, end);
    data.pending = data.pending.slice(end);
    if (body.includes('"stream":true')) stream(socket, pace);
    else socket.write(WHOLE);
  }
}

function stream(socket: Socket<Connection>, { firstMs, deltas, everyMs }: Pace): void {
  if (everyMs === 0 && firstMs === 0) {
    socket.write(HEAD + DELTA_CHUNK.repeat(deltas) + END);
    return;
  }
  let left = deltas;
  const next = () => {
    socket.write(left === deltas ? HEAD + DELTA_CHUNK : DELTA_CHUNK);
    left -= 1;
    if (left > 0) return;
    clearInterval(socket.data.timer!);
    socket.data.timer = null;
    socket.write(END);
  };
  setTimeout(() => {
    next();
    if (left > 0) socket.data.timer = setInterval(next, everyMs);
  }, firstMs);
}
