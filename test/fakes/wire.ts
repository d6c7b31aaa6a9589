import type net from "node:net";
import type { FakeRequest } from "./host.ts";

/** A connection as a behaviour sees it. */
export interface Wire {
  /** Resolves when the bytes have left, or the client is gone. */
  write(bytes: Uint8Array | string): Promise<void>;
  /** In order: what was written arrives first. */
  close(): void;
  /** RST: what is still on the way may be lost. */
  reset(): void;
  readonly gone: Promise<void>;
}

export interface ServedWire extends Wire {
  /** The next request, whole; null when the client left instead. Understands `content-length` only. */
  nextRequest(connection: number, gone: Promise<void>): Promise<FakeRequest | null>;
}

export function socketWire(socket: net.Socket): ServedWire {
  let held: Buffer = Buffer.alloc(0);
  const gone = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;

  /** Holds at least `bytes`; false when the client left before. */
  const hold = async (bytes: number): Promise<boolean> => {
    const parts: Buffer[] = [held];
    let length = held.length;
    while (length < bytes) {
      const next = await chunks.next().catch(() => ({ done: true as const, value: undefined }));
      if (next.done) return false;
      parts.push(next.value);
      length += next.value.length;
    }
    held = Buffer.concat(parts);
    return true;
  };

  return {
    gone,
    write: (bytes) => new Promise((left) => (socket.writable ? socket.write(bytes, () => left()) : left())),
    close: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    async nextRequest(connection, clientGone) {
      let end = held.indexOf("\r\n\r\n");
      for (; end < 0; end = held.indexOf("\r\n\r\n")) if (!(await hold(held.length + 1))) return null;
      const [requestLine, ...fields] = held.toString("latin1", 0, end).split("\r\n");
      const headers = Object.fromEntries(
        fields.map((field) => [
          field.split(":", 1)[0]!.toLowerCase(),
          field.slice(field.indexOf(":") + 1).trim(),
        ]),
      );
      const bodyFrom = end + 4;
      const bodyTo = bodyFrom + Number(headers["content-length"] ?? 0);
      if (!(await hold(bodyTo))) return null;
      const body = new Uint8Array(held.subarray(bodyFrom, bodyTo));
      held = held.subarray(bodyTo);
      const [method, path] = requestLine!.split(" ");
      const text = (): string => new TextDecoder().decode(body);
      return {
        method: method!,
        path: path!,
        headers,
        body,
        connection,
        gone: clientGone,
        text,
        json: () => JSON.parse(text()),
      };
    },
  };
}
