/**
 * What a fake host can do with a request (see host.ts). Each returns a Behaviour; those that end well leave
 * the connection open for the next request, as a host with keep-alive does.
 */
import zlib from "node:zlib";
import type { Behaviour } from "./host.ts";
import { eventText, type SseEvent } from "./transcripts.ts";
import type { Wire } from "./wire.ts";

type Headers = Readonly<Record<string, string>>;

/** A whole JSON answer. */
export const json =
  (value: unknown, status = 200, headers: Headers = {}): Behaviour =>
  async (wire) => {
    const body = Buffer.from(JSON.stringify(value));
    await wire.write(
      head(status, { "content-type": "application/json", ...headers, "content-length": `${body.length}` }),
    );
    await wire.write(body);
  };

/** An error in OpenAI's form: 401, 403, 404, 408, 429, 500, 502, 503 … */
export const status = (code: number, headers: Headers = {}, message = `fake ${code}`): Behaviour =>
  json({ error: { message, type: "fake_error", param: null, code: null } }, code, headers);

/** 429 with `Retry-After`. */
export const rateLimited = (retryAfterS: number): Behaviour =>
  status(429, { "retry-after": `${retryAfterS}` });

export interface SseOptions {
  readonly headers?: Headers;
  /** Line ends; some hosts send CRLF. */
  readonly eol?: "\n" | "\r\n";
  readonly coding?: "gzip" | "deflate" | "br";
  /** Waited for before the nth event leaves; `events.length` stands for the end of the body. */
  readonly before?: (n: number) => unknown;
  /** How the body ends. The last three are failures. */
  readonly end?: "chunked" | "close" | "cut" | "cut inside a chunk" | "reset";
}

/** A stream of events, one chunk each. */
export const sse =
  (events: readonly SseEvent[], options: SseOptions = {}): Behaviour =>
  async (wire) => {
    const { eol = "\n", end = "chunked", coding, before } = options;
    const framed = end !== "close";
    await wire.write(
      head(200, {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        ...(framed ? { "transfer-encoding": "chunked" } : { connection: "close" }),
        ...(coding === undefined ? {} : { "content-encoding": coding }),
        ...options.headers,
      }),
    );
    const encode = encoder(coding);
    const send = async (bytes: Uint8Array): Promise<void> => {
      if (bytes.length > 0) await wire.write(framed ? chunk(bytes) : bytes);
    };
    for (const [n, event] of events.entries()) {
      await before?.(n);
      await send(await encode.event(eventText(event, eol)));
    }
    await before?.(events.length);
    if (end === "cut inside a chunk") await wire.write("40\r\ndata: half an event");
    if (end === "reset") return wire.reset();
    if (end === "cut" || end === "cut inside a chunk") return wire.close();
    await send(await encode.end());
    if (framed) await wire.write("0\r\n\r\n");
    else wire.close();
  };

/** The answer begins well and its only event is an error. */
export const sseError = (message = "The server had an error while processing your request."): Behaviour =>
  sse([{ data: JSON.stringify({ error: { message, type: "server_error", param: null, code: null } }) }]);

/** 200, no body at all. */
export const emptyOk = (): Behaviour => async (wire) => {
  await wire.write(head(200, { "content-type": "text/event-stream", "content-length": "0" }));
};

/** The connection stays open and nothing is ever said, until the client leaves. */
export const silence = (): Behaviour => (_wire, request) => request.gone;

/** The head of a stream, then nothing. */
export const headThenSilence = (): Behaviour => async (wire, request) => {
  await wire.write(head(200, { "content-type": "text/event-stream", "transfer-encoding": "chunked" }));
  await request.gone;
};

export const resetBeforeHead = (): Behaviour => (wire) => wire.reset();
export const closeBeforeHead = (): Behaviour => (wire) => wire.close();

export const closeInsideHead = (): Behaviour => async (wire) => {
  await wire.write("HTTP/1.1 200 OK\r\ncontent-type: text/ev");
  wire.close();
};

/** The head of a stream, then the connection closes. */
export const closeAfterHead = (): Behaviour => sse([], { end: "cut" });
export const resetAfterHead = (): Behaviour => sse([], { end: "reset" });

/** Declares a longer body than it sends. */
export const truncatedLength =
  (value: unknown, missingBytes = 10): Behaviour =>
  async (wire) => {
    const body = Buffer.from(JSON.stringify(value));
    await wire.write(head(200, { "content-type": "application/json", "content-length": `${body.length}` }));
    await wire.write(body.subarray(0, Math.max(0, body.length - missingBytes)));
    wire.close();
  };

/** These very bytes, then what `then` says. */
export const raw =
  (bytes: Uint8Array | string, then: "stay" | "close" | "reset" = "stay"): Behaviour =>
  async (wire) => {
    await wire.write(bytes);
    if (then === "close") wire.close();
    if (then === "reset") wire.reset();
  };

/** Every byte that `behaviour` sends in a packet of its own. */
export const drip =
  (behaviour: Behaviour): Behaviour =>
  (wire, request) =>
    behaviour({ ...wire, write: (bytes) => writeByteByByte(wire, bytes) }, request);

/** Waits for the gate before it does anything. */
export const after =
  (passed: Promise<unknown>, behaviour: Behaviour): Behaviour =>
  async (wire, request) => {
    await passed;
    await behaviour(wire, request);
  };

/** A response head; `content-length` or `transfer-encoding` is the caller's to give. */
export function head(code: number, headers: Headers): string {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${code} Fake\r\n${fields.join("")}\r\n`;
}

export function chunk(bytes: Uint8Array | string): Buffer {
  const payload = Buffer.from(bytes as string);
  return Buffer.concat([Buffer.from(`${payload.length.toString(16)}\r\n`), payload, Buffer.from("\r\n")]);
}

/** Compresses event by event, flushed so that each can be read as it arrives. */
function encoder(coding: SseOptions["coding"]): {
  event(text: string): Promise<Uint8Array>;
  end(): Promise<Uint8Array>;
} {
  if (coding === undefined) {
    return { event: async (text) => Buffer.from(text), end: async () => Buffer.alloc(0) };
  }
  const codec = { gzip: zlib.createGzip, deflate: zlib.createDeflate, br: zlib.createBrotliCompress }[
    coding
  ]();
  return {
    async event(text) {
      await new Promise<void>((flushed) => codec.write(text, () => codec.flush(flushed)));
      const parts: Buffer[] = [];
      for (let part = codec.read(); part !== null; part = codec.read()) parts.push(part);
      return Buffer.concat(parts);
    },
    async end() {
      codec.end();
      return Buffer.concat(await Array.fromAsync(codec as AsyncIterable<Buffer>));
    },
  };
}

async function writeByteByByte(wire: Wire, bytes: Uint8Array | string): Promise<void> {
  const buffer = Buffer.from(bytes as string);
  for (let at = 0; at < buffer.length; at++) await wire.write(buffer.subarray(at, at + 1));
}
