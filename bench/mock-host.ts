/**
 * The host behind every macro measurement: as little work as a host can do, on raw sockets, so that what is
 * measured is the gateway. POST …/chat/completions answers JSON, or with `"stream":true` a paced stream: a
 * first token after `firstMs`, then `deltas` of them every `everyMs`; a model called `paced-300-64-20` asks
 * for that pace by its name, with `-obfuscated` behind it for padded deltas, as OpenAI sends them, and with `-tools` for a
 * tool call behind the first third. At
 * …/messages and …/responses it streams those languages. Prints its port.
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
/** As many tokens as there were deltas: what a host tells that its text does not have is counted again. */
const usageOf = (deltas: number): string =>
  `data: ${JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1_763_000_000,
    model: "bench-model",
    choices: [],
    usage: { prompt_tokens: 10, completion_tokens: deltas, total_tokens: 10 + deltas },
  })}\n\n`;
const DELTA_CHUNK = chunked(DELTA);

/** A stream of a kind: what comes before the first delta, the delta of a number, and what comes behind the last. */
interface Story {
  readonly begin: string;
  readonly delta: (at: number) => string;
  readonly end: (deltas: number) => string;
}

const CHAT: Story = {
  begin: "",
  delta: () => DELTA_CHUNK,
  end: (deltas) => `${chunked(FINISH)}${chunked(usageOf(deltas))}${chunked("data: [DONE]\n\n")}`,
};

const PADDED = Array.from({ length: 16 }, (_, at) => {
  const padding = "aZ3kQ9xW5bN7cP1d".slice(0, 1 + ((at * 7) % 15));
  return chunked(DELTA.replace("}\n\n", `,"obfuscation":"${padding}"}\n\n`));
});

const OBFUSCATED: Story = { ...CHAT, delta: (at) => PADDED[at % PADDED.length]! };

/** A third of the deltas is text, the others are the arguments of a tool call. */
const TOOL_FROM = 100;
const chunkOf = (delta: object, finish: string | null = null): string =>
  chunked(
    `data: ${JSON.stringify({
      id: "chatcmpl-bench",
      object: "chat.completion.chunk",
      created: 1_763_000_000,
      model: "bench-model",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    })}\n\n`,
  );
const argumentsChunk = (text: string): string =>
  chunkOf({ tool_calls: [{ index: 0, function: { arguments: text } }] });
const CALL = { id: "call_bench", type: "function", function: { name: "edit_file", arguments: '{"text":"' } };
const CHAT_CALL = chunkOf({ tool_calls: [{ index: 0, ...CALL }] });
const CHAT_ARGUMENTS = argumentsChunk(" token");
const CHAT_TOOLS: Story = {
  begin: "",
  delta: (at) => (at < TOOL_FROM ? DELTA_CHUNK : at === TOOL_FROM ? CHAT_CALL : CHAT_ARGUMENTS),
  end: (deltas) =>
    argumentsChunk('"}') + chunkOf({}, "tool_calls") + chunked(usageOf(deltas)) + chunked("data: [DONE]\n\n"),
};

const typed = (type: string, members: object): string =>
  chunked(`event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`);

const MESSAGE = { id: "msg_bench", type: "message", role: "assistant", model: "bench-model", content: [] };
const MESSAGES_DELTA = typed("content_block_delta", {
  index: 0,
  delta: { type: "text_delta", text: " token" },
});

const MESSAGES: Story = {
  begin:
    typed("message_start", { message: { ...MESSAGE, usage: { input_tokens: 10, output_tokens: 1 } } }) +
    typed("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  delta: () => MESSAGES_DELTA,
  end: (deltas) =>
    typed("content_block_stop", { index: 0 }) +
    typed("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: deltas } }) +
    typed("message_stop", {}),
};

const MESSAGES_CALL =
  typed("content_block_stop", { index: 0 }) +
  typed("content_block_start", {
    index: 1,
    content_block: { type: "tool_use", id: "toolu_bench", name: "edit_file", input: {} },
  }) +
  typed("content_block_delta", { index: 1, delta: { type: "input_json_delta", partial_json: '{"text":"' } });
const jsonDelta = (text: string): string =>
  typed("content_block_delta", { index: 1, delta: { type: "input_json_delta", partial_json: text } });
const MESSAGES_ARGUMENTS = jsonDelta(" token");
const MESSAGES_TOOLS: Story = {
  begin: MESSAGES.begin,
  delta: (at) => (at < TOOL_FROM ? MESSAGES_DELTA : at === TOOL_FROM ? MESSAGES_CALL : MESSAGES_ARGUMENTS),
  end: (deltas) =>
    jsonDelta('"}') +
    typed("content_block_stop", { index: 1 }) +
    typed("message_delta", { delta: { stop_reason: "tool_use" }, usage: { output_tokens: deltas } }) +
    typed("message_stop", {}),
};

const RESPONSE = { id: "resp_bench", object: "response", created_at: 1_763_000_000, model: "bench-model" };
const ITEM = { id: "msg_bench", type: "message", role: "assistant" };
const PART = { type: "output_text", text: "", annotations: [], logprobs: [] };
const POSITION = { item_id: ITEM.id, output_index: 0, content_index: 0 };

const RESPONSES: Story = {
  begin:
    typed("response.created", {
      response: { ...RESPONSE, status: "in_progress", output: [] },
      sequence_number: 0,
    }) +
    typed("response.output_item.added", {
      output_index: 0,
      item: { ...ITEM, content: [] },
      sequence_number: 1,
    }) +
    typed("response.content_part.added", { ...POSITION, part: PART, sequence_number: 2 }),
  delta: (at) =>
    typed("response.output_text.delta", {
      ...POSITION,
      delta: " token",
      logprobs: [],
      sequence_number: 3 + at,
    }),
  end(deltas) {
    const part = { ...PART, text: " token".repeat(deltas) };
    const item = { ...ITEM, status: "completed", content: [part] };
    const usage = { input_tokens: 10, output_tokens: deltas, total_tokens: 10 + deltas };
    const response = { ...RESPONSE, status: "completed", output: [item], usage };
    return (
      typed("response.output_text.done", { ...POSITION, text: part.text, sequence_number: 3 + deltas }) +
      typed("response.content_part.done", { ...POSITION, part, sequence_number: 4 + deltas }) +
      typed("response.output_item.done", { output_index: 0, item, sequence_number: 5 + deltas }) +
      typed("response.completed", { response, sequence_number: 6 + deltas })
    );
  },
};

interface Connection {
  /** What arrived of the request so far. */
  readonly parts: Buffer[];
  bytes: number;
  /** Bytes of head and body; 0 while the head is incomplete. */
  needed: number;
  timer: Timer | null;
  /** The rest of an answer that the socket did not take yet. */
  unsent: Buffer | null;
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
        socket.data = { parts: [], bytes: 0, needed: 0, timer: null, unsent: null };
      },
      data(socket, bytes) {
        read(socket, bytes, pace);
      },
      drain(socket) {
        const { unsent } = socket.data;
        socket.data.unsent = null;
        if (unsent !== null) send(socket, unsent);
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
    const line = all.toString("latin1", at, all.indexOf("\r\n", at));
    const body = all.subarray(head + 4, end);
    answer(socket, line, isStreamed(body) ? modelIn(body) : null, pace);
    at = end;
  }
}

const lengthIn = (head: string): number => Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);

/** The benches put `model` and `stream` first; gateways may put them behind the prompt. */
const isStreamed = (body: Buffer): boolean =>
  /"stream": ?true/.test(body.toString("latin1", 0, FIRST_BYTES)) || body.includes('"stream":true');
const FIRST_BYTES = 4_096;

/** From the pace that a model is named for, if it is. */
function modelIn(body: Buffer): string {
  const at = body.indexOf("paced-");
  return at === -1 ? "" : body.toString("latin1", at, at + LONGEST_PACE);
}
const LONGEST_PACE = 64;

function send(socket: Socket<Connection>, answer: string | Buffer): void {
  const { data } = socket;
  const bytes = Buffer.from(answer as string);
  if (data.unsent !== null) {
    data.unsent = Buffer.concat([data.unsent, bytes]);
    return;
  }
  const taken = Math.max(0, socket.write(bytes));
  if (taken < bytes.length) data.unsent = bytes.subarray(taken);
}

/** A whole answer where no stream is asked for. */
function answer(socket: Socket<Connection>, line: string, streamed: string | null, pace: Pace): void {
  if (streamed === null) {
    send(socket, WHOLE);
    return;
  }
  const named = /paced-([\d.]+)-(\d+)-(\d+)(?:-(\w+))?"/.exec(streamed);
  const story = storyOf(line, named?.[4]);
  const requestedPace =
    named === null ? pace : { firstMs: +named[1]!, deltas: +named[2]!, everyMs: +named[3]! };
  stream(socket, requestedPace, story);
}

function storyOf(line: string, variant: string | undefined): Story {
  if (/^POST \S*\/messages/.test(line)) return variant === "tools" ? MESSAGES_TOOLS : MESSAGES;
  if (/^POST \S*\/responses/.test(line)) return RESPONSES;
  if (variant === "tools") return CHAT_TOOLS;
  return variant === "obfuscated" ? OBFUSCATED : CHAT;
}

function stream(
  socket: Socket<Connection>,
  { firstMs, deltas, everyMs }: Pace,
  { begin, delta, end }: Story,
): void {
  if (everyMs === 0 && firstMs === 0) {
    const all = Array.from({ length: deltas }, (_, at) => delta(at)).join("");
    send(socket, `${HEAD}${begin}${all}${end(deltas)}0\r\n\r\n`);
    return;
  }
  let sent = 0;
  const next = () => {
    send(socket, sent === 0 ? HEAD + begin + delta(0) : delta(sent));
    sent += 1;
    if (sent < deltas) return;
    clearInterval(socket.data.timer!);
    socket.data.timer = null;
    send(socket, `${end(deltas)}0\r\n\r\n`);
  };
  socket.data.timer = setTimeout(() => {
    next();
    if (sent < deltas) socket.data.timer = setInterval(next, everyMs);
  }, firstMs);
}
