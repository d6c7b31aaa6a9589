/**
 * A load generator on raw sockets: it only looks for the end of each answer, so that it is not what is measured. Its own
 * ceiling, against the bare host, is part of every report.
 */
import type { Socket } from "bun";

export interface Target {
  readonly port: number;
  readonly path: string;
  readonly key: string | null;
}

export interface Timings {
  readonly count: number;
  readonly failures: number;
  readonly seconds: number;
  /** Sorted, ms. */
  readonly firstByteMs: readonly number[];
  readonly totalMs: readonly number[];
}

/** `total` requests over `connections` keep-alive connections, each sending its next once the last was answered. */
export function load(target: Target, body: string, connections: number, total: number): Promise<Timings> {
  const request = requestBytes(target, body);
  const firstByteMs: number[] = [];
  const totalMs: number[] = [];
  let [sent, failures, open] = [0, 0, 0];
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const finish = () => {
      if (firstByteMs.length + failures < total || open > 0) return;
      const seconds = (performance.now() - started) / 1_000;
      const sorted = (list: number[]) => list.sort((a, b) => a - b);
      resolve({
        count: totalMs.length,
        failures,
        seconds,
        firstByteMs: sorted(firstByteMs),
        totalMs: sorted(totalMs),
      });
    };
    const next = (socket: Socket<Exchange>) => {
      if (sent >= total) return socket.end();
      sent += 1;
      socket.data = { sentAt: performance.now(), first: 0, tail: "", length: -1, received: 0 };
      socket.write(request);
    };
    const handlers = {
      open(socket: Socket<Exchange>) {
        open += 1;
        next(socket);
      },
      data(socket: Socket<Exchange>, bytes: Buffer) {
        const done = take(socket.data, bytes);
        if (done === null) return;
        firstByteMs.push(socket.data.first - socket.data.sentAt);
        totalMs.push(performance.now() - socket.data.sentAt);
        if (!done) failures += 1;
        next(socket);
      },
      close() {
        open -= 1;
        finish();
      },
      error(_socket: Socket<Exchange>, error: Error) {
        reject(error);
      },
    };
    for (let index = 0; index < Math.min(connections, total); index++) {
      Bun.connect<Exchange>({ hostname: "127.0.0.1", port: target.port, socket: handlers }).catch(reject);
    }
  });
}

interface Exchange {
  sentAt: number;
  first: number;
  /** Enough of the end to recognise the last chunk. */
  tail: string;
  length: number;
  received: number;
}

/** Null while the answer is incomplete; then whether it was a 2xx. */
function take(exchange: Exchange, bytes: Buffer): boolean | null {
  if (exchange.first === 0) {
    exchange.first = performance.now();
    const head = bytes.toString("latin1", 0, Math.min(bytes.length, 2_048));
    const end = head.indexOf("\r\n\r\n");
    const length = /content-length: *(\d+)/i.exec(head.slice(0, end));
    exchange.length = length === null ? -1 : end + 4 + Number(length[1]);
    if (!head.startsWith("HTTP/1.1 2")) return bytes.length >= exchange.length ? false : null;
  }
  exchange.received += bytes.length;
  if (exchange.length >= 0) return exchange.received >= exchange.length ? true : null;
  exchange.tail = (exchange.tail + bytes.toString("latin1", Math.max(0, bytes.length - 8))).slice(-8);
  return exchange.tail.endsWith("0\r\n\r\n") ? true : null;
}

function requestBytes({ port, path, key }: Target, body: string): Uint8Array {
  const authorization = key === null ? "" : `authorization: Bearer ${key}\r\n`;
  return new TextEncoder().encode(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${authorization}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** The value below which `fraction` of the sorted list lies. */
export const percentile = (sorted: readonly number[], fraction: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
