/**
 * The host behind every macro measurement: as little work as a host can do, on raw sockets, so that what is
 * measured is the gateway. POST …/chat/completions answers JSON, or with `"stream":true` a paced stream: a
 * first token after `firstMs`, then `deltas` of them every `everyMs`; a model called `paced-300-64-20` asks
 * for that pace by its name. Prints its port.
 *
 *     bun run bench/mock-host.ts [firstMs] [deltas] [everyMs] [port]
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
  /** What arrived of the request so far. */
  readonly parts: Buffer[];
  bytes: number;
  /** Of head and body; 0 while the head is incomplete. */
  needed: number;
  timer: Timer | null;
}

interface Pace {
  readonly firstMs: number;
  readonly deltas: number;
  readonly everyMs: number;
}

if (import.meta.main) {
  const [firstMs = 0, deltas = 0, everyMs = 0, port = 0] = process.argv.slice(2).map(Number);
  const pace = { firstMs, deltas: deltas || 64, everyMs };
  const listener = Bun.listen<Connection>({
    hostname: "127.0.0.1",
    port,
    socket: {
      open(socket) {
        socket.data = { parts: [], bytes: 0, needed: 0, timer: null };
      },
      data(socket, bytes) {
        read(socket, bytes, pace);
      },
      close(socket) {
        clearTimeout(socket.data?.timer ?? undefined);
      },
    },
  });
  console.log(listener.port);
}

/** Parts are joined once, when all are there: a body of 10 MB must not be what slows every other stream. */
function read(socket: Socket<Connection>, bytes: Buffer, pace: Pace): void {
  const { data } = socket;
  data.parts.push(bytes);
  data.bytes += bytes.length;
  if (data.bytes < data.needed) return;
  const all = data.parts.length === 1 ? bytes : Buffer.concat(data.parts);
  data.parts.length = 0;
  let at = 0;
  for (;;) {
    const head = all.indexOf("\r\n\r\n", at);
    const end = head === -1 ? 0 : head + 4 + lengthIn(all.toString("latin1", at, head));
    if (head === -1 || all.length < end) {
      data.needed = end - at;
      if (at < all.length) data.parts.push(all.subarray(at));
      data.bytes = all.length - at;
      return;
    }
    answer(socket, all.toString("latin1", head + 4, Math.min(end, head + 4 + LOOKED_AT)), pace);
    at = end;
  }
}

const lengthIn = (head: string): number => Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);

/** The benches put `model` and `stream` first. */
const LOOKED_AT = 4_096;

function answer(socket: Socket<Connection>, body: string, pace: Pace): void {
  if (!/"stream": ?true/.test(body)) {
    socket.write(WHOLE);
    return;
  }
  const named = /"paced-([\d.]+)-(\d+)-(\d+)"/.exec(body);
  stream(
    socket,
    named === null
      ? pace
      : { firstMs: Number(named[1]), deltas: Number(named[2]), everyMs: Number(named[3]) },
  );
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
  socket.data.timer = setTimeout(() => {
    next();
    if (left > 0) socket.data.timer = setInterval(next, everyMs);
  }, firstMs);
}
