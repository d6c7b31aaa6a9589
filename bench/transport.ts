/**
 * What a call to a host costs this process: CPU µs for a small POST, and for each event of paced streams.
 * Ours next to `fetch`, and next to two floors that only count bytes: a bare Bun socket and a node:net one,
 * which parse nothing.
 *
 *     bun run bench transport [--rounds 4] [--posts 20000] [--streams 100]
 *
 * The host is another process, so its CPU is not counted. Two noisy cores: read the numbers as ratios.
 */
import net from "node:net";
import type { Socket } from "bun";
import type { Host } from "../src/catalog/catalog.ts";
import { Http1Transport } from "../src/hosts/http1/transport.ts";
import { type Destination, HostFault } from "../src/hosts/transport.ts";
import { systemClock } from "../src/units/clock.ts";
import { table } from "./figures.ts";
import { chatBody } from "./gateway-process.ts";
import { requestBytes } from "./load.ts";
import { DELTA } from "./mock-host.ts";
import { numberOption } from "./options.ts";
import { inScene } from "./scene.ts";

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

export const benchTransport = (load: TransportLoad): Promise<TransportCost[]> =>
  inScene("transport", async ({ host: { port } }) => {
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
  });

/** Answers with the number of body bytes that it saw. */
interface Client {
  readonly name: string;
  call(body: Buffer): Promise<number>;
  close(): void;
}

const PATH = "/chat/completions";
const POST = Buffer.from(chatBody("ping"));
const HEADERS = { authorization: "Bearer bench-key-that-is-not-one" };

function ours(port: number): Client {
  const transport = new Http1Transport({ clock: systemClock, onFault: console.error });
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
  const to: Destination = { host, method: "POST", path: PATH, headers: HEADERS };
  return {
    name: "http1Transport",
    async call(body) {
      const reply = await transport.open({ to, headers: {}, body: [body] }).reply;
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
    async call(body) {
      const reply = await fetch(`http://127.0.0.1:${port}${PATH}`, {
        method: "POST",
        headers: HEADERS,
        body: body as Uint8Array<ArrayBuffer>,
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

function bareSocket(port: number): Client {
  const target = { port, path: PATH, headers: HEADERS };
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
    async call(body) {
      const { promise, resolve: done } = Promise.withResolvers<number>();
      const data = { bytes: 0, done };
      const open = idle.pop() ?? (await Bun.connect<Floor>({ hostname: "127.0.0.1", port, data, socket }));
      open.data = data;
      open.write(requestBytes(target, String(body)));
      return promise;
    },
    close() {
      for (const open of idle) open.end();
    },
  };
}

function nodeSocket(port: number): Client {
  const target = { port, path: PATH, headers: HEADERS };
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
    async call(body) {
      const one = idle.pop() ?? (await dial());
      const { promise, resolve: done } = Promise.withResolvers<number>();
      one.floor = { bytes: 0, done };
      one.socket.write(requestBytes(target, String(body)));
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
    while (left-- > 0) if ((await client.call(POST)) < 100) throw new Error(`${client.name}: a short answer`);
  };
  await Promise.all(Array.from({ length: postsAtOnce }, worker));
}

async function streams(client: Client, { streams, eventsPerStream, everyMs }: TransportLoad): Promise<void> {
  const pace = { model: `paced-0-${eventsPerStream}-${everyMs}`, stream: true };
  const body = Buffer.from(chatBody("ping", pace));
  const lengths = await Promise.all(Array.from({ length: streams }, () => client.call(body)));
  const least = DELTA.length * eventsPerStream;
  if (lengths.some((length) => length < least)) throw new Error(`${client.name}: a stream was not whole`);
}

async function cpuUs(work: () => Promise<void>): Promise<number> {
  Bun.gc(true);
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

if (import.meta.main) {
  const load = {
    rounds: numberOption("rounds", 4),
    posts: numberOption("posts", 20_000),
    postsAtOnce: 50,
    streams: numberOption("streams", 100),
    eventsPerStream: 200,
    everyMs: 10,
  };
  const costs = await benchTransport(load);
  const { usPerPost: post, usPerEvent: event } = costs.find(({ client }) => client === "fetch")!;
  console.log(
    table(
      ["client", "CPU µs/POST", "of fetch", "CPU µs/event", "of fetch"],
      costs.map(({ client, usPerPost, usPerEvent }) => [
        client,
        usPerPost,
        usPerPost / post,
        usPerEvent,
        usPerEvent / event,
      ]),
    ),
  );
}
