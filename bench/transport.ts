/**
 * What a call to a host costs this process: CPU µs for a small POST, and for each event of paced streams.
 * Ours beside `fetch`, and beside two floors that only count bytes: a bare Bun socket and a node:net one,
 * which parse nothing.
 *
 *     bun run bench/transport.ts
 *
 * The host is another process, so its CPU is not counted. Two noisy cores: read the numbers as ratios.
 */
import net from "node:net";
import type { Socket } from "bun";
import type { Host } from "../src/catalog/catalog.ts";
import { http1Transport } from "../src/hosts/http1/transport.ts";
import { type Destination, HostFault } from "../src/hosts/transport.ts";
import { systemClock } from "../src/units/clock.ts";
import { EVENT } from "./transport-mock.ts";

export interface TransportLoad {
  readonly rounds: number;
  readonly posts: number;
  readonly postsAtOnce: number;
  readonly streams: number;
  readonly eventsPerStream: number;
  readonly everyMs: number;
}

export interface TransportCost {
  readonly client: string;
  readonly usPerPost: number;
  readonly usPerEvent: number;
}

export async function benchTransport(load: TransportLoad): Promise<TransportCost[]> {
  const mock = Bun.spawn([process.execPath, `${import.meta.dir}/transport-mock.ts`], { stdout: "pipe" });
  try {
    const port = Number(await firstLine(mock.stdout));
    const clients = [ours(port), fetching(port), bareSocket(port), nodeSocket(port)];
    const best = clients.map(({ name: client }) => ({ client, usPerPost: Infinity, usPerEvent: Infinity }));
    // Rounds by turns, the best of each client: what another process does to this machine then meets them all
    // alike.
    for (let round = 0; round < load.rounds; round++) {
      for (const [n, client] of clients.entries()) {
        const cost = best[n]!;
        const usPerPost = (await cpuUs(() => posts(client, load))) / load.posts;
        const usPerEvent = (await cpuUs(() => streams(client, load))) / (load.streams * load.eventsPerStream);
        cost.usPerPost = Math.min(cost.usPerPost, usPerPost);
        cost.usPerEvent = Math.min(cost.usPerEvent, usPerEvent);
      }
    }
    for (const client of clients) client.close();
    return best;
  } finally {
    mock.kill();
  }
}

/** Answers with the number of body bytes that it saw. */
interface Client {
  readonly name: string;
  call(path: string): Promise<number>;
  close(): void;
}

const BODY = new TextEncoder().encode(
  JSON.stringify({ model: "bench", messages: [{ role: "user", content: "ping" }] }),
);
const HEADERS = { "content-type": "application/json", authorization: "Bearer bench-key-that-is-not-one" };

function ours(port: number): Client {
  const transport = http1Transport({ clock: systemClock, onFault: console.error });
  const host: Host = {
    id: "bench",
    baseUrl: `http://127.0.0.1:${port}`,
    speaks: ["chat.completions"],
    apiKey: null,
    auth: "bearer",
    headers: {},
    onDisconnect: "cancel",
    quirks: {},
  };
  const destinations = new Map<string, Destination>();
  return {
    name: "http1Transport",
    async call(path) {
      const to = destinations.get(path) ?? { host, method: "POST", path, headers: HEADERS };
      destinations.set(path, to);
      const reply = await transport.open({ to, headers: {}, body: BODY }).reply;
      if (reply instanceof HostFault) throw new Error(reply.message);
      let bytes = 0;
      for (;;) {
        const answer = reply.read();
        const next = answer instanceof Promise ? await answer : answer;
        if (next === null) return bytes;
        if (next instanceof HostFault) throw new Error(next.message);
        bytes += next.length;
      }
    },
    close: () => transport.close(),
  };
}

function fetching(port: number): Client {
  return {
    name: "fetch",
    async call(path) {
      const url = `http://127.0.0.1:${port}${path}`;
      const reply = await fetch(url, {
        method: "POST",
        headers: HEADERS,
        body: BODY,
        decompress: false,
        redirect: "manual",
      });
      let bytes = 0;
      const reader = reply.body!.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return bytes;
        bytes += value.length;
      }
    },
    close() {},
  };
}

/** One exchange of a floor: it looks for the end mark in the last bytes and for nothing else. */
interface Floor {
  bytes: number;
  done: (bytes: number) => void;
}

const END_OF_CHUNKS = "0\r\n\r\n";
const endsAnswer = (bytes: Uint8Array): boolean => {
  const last = bytes[bytes.length - 1];
  // The JSON body ends in a brace; a stream in its last chunk.
  return (
    last === 0x7d ||
    Buffer.from(bytes.buffer, bytes.byteOffset + bytes.length - 5, 5).toString() === END_OF_CHUNKS
  );
};

function requestBytes(port: number, path: string): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\nauthorization: ${HEADERS.authorization}\r\ncontent-length: ${BODY.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), BODY]);
}

function bareSocket(port: number): Client {
  const idle: Socket<Floor>[] = [];
  const socket = {
    binaryType: "uint8array" as "buffer",
    data(from: Socket<Floor>, bytes: Uint8Array): void {
      from.data.bytes += bytes.length;
      if (!endsAnswer(bytes)) return;
      idle.push(from);
      from.data.done(from.data.bytes);
    },
  };
  return {
    name: "floor: Bun socket",
    async call(path) {
      const { promise, resolve: done } = Promise.withResolvers<number>();
      const data = { bytes: 0, done };
      const open = idle.pop() ?? (await Bun.connect<Floor>({ hostname: "127.0.0.1", port, data, socket }));
      open.data = data;
      open.write(requestBytes(port, path));
      return promise;
    },
    close() {
      for (const open of idle) open.end();
    },
  };
}

function nodeSocket(port: number): Client {
  const idle: { socket: net.Socket; floor: Floor }[] = [];
  const dial = async (): Promise<(typeof idle)[number]> => {
    const one = { socket: net.connect(port, "127.0.0.1"), floor: { bytes: 0, done: (_bytes: number) => {} } };
    one.socket.setNoDelay(true);
    one.socket.on("data", (bytes: Buffer) => {
      one.floor.bytes += bytes.length;
      if (!endsAnswer(bytes)) return;
      idle.push(one);
      one.floor.done(one.floor.bytes);
    });
    await new Promise<void>((connected) => one.socket.once("connect", connected));
    return one;
  };
  return {
    name: "floor: node:net",
    async call(path) {
      const one = idle.pop() ?? (await dial());
      const { promise, resolve: done } = Promise.withResolvers<number>();
      one.floor = { bytes: 0, done };
      one.socket.write(requestBytes(port, path));
      return promise;
    },
    close() {
      for (const { socket } of idle) socket.destroy();
    },
  };
}

async function posts(client: Client, { posts, postsAtOnce }: TransportLoad): Promise<void> {
  let left = posts;
  const worker = async (): Promise<void> => {
    while (left-- > 0)
      if ((await client.call("/json")) < 100) throw new Error(`${client.name}: a short answer`);
  };
  await Promise.all(Array.from({ length: postsAtOnce }, worker));
}

async function streams(client: Client, { streams, eventsPerStream, everyMs }: TransportLoad): Promise<void> {
  const path = `/sse?events=${eventsPerStream}&everyMs=${everyMs}`;
  const lengths = await Promise.all(Array.from({ length: streams }, () => client.call(path)));
  const least = EVENT.length * eventsPerStream;
  if (lengths.some((length) => length < least)) throw new Error(`${client.name}: a stream was not whole`);
}

async function cpuUs(work: () => Promise<void>): Promise<number> {
  Bun.gc(true);
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  for await (const bytes of stream) return new TextDecoder().decode(bytes);
  throw new Error("the mock host said nothing");
}

if (import.meta.main) {
  const load = { rounds: 4, posts: 20_000, postsAtOnce: 50, streams: 100, eventsPerStream: 200, everyMs: 10 };
  const costs = await benchTransport(load);
  const fetchCost = costs.find(({ client }) => client === "fetch")!;
  console.table(
    costs.map(({ client, usPerPost, usPerEvent }) => ({
      client,
      "CPU µs/POST": usPerPost.toFixed(1),
      "of fetch": (usPerPost / fetchCost.usPerPost).toFixed(2),
      "CPU µs/event": usPerEvent.toFixed(1),
      "of fetch ": (usPerEvent / fetchCost.usPerEvent).toFixed(2),
    })),
  );
}
