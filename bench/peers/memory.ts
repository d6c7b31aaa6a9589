import type { Socket } from "bun";
import { load, requestBytes } from "../load.ts";
import type { Subject } from "./peer.ts";
import type { Memory, OpenMemory } from "./result.ts";
import { bodyOf } from "./rounds.ts";

/** On a process that was just started: warm, then with more and more streams that stay open. */
export async function measureMemory(
  subject: Subject,
  sizes: readonly number[],
  settleMs: number,
): Promise<Memory> {
  await load(subject.target, { body: bodyOf(subject.prefix, "burst", true), connections: 16, requests: 200 });
  await Bun.sleep(settleMs);
  const idleBytes = subject.process.residentBytes();
  const held = new HeldStreams(subject);
  const open: OpenMemory[] = [];
  for (const streams of sizes) {
    const why = await held.grow(streams);
    if (why === null) await Bun.sleep(settleMs);
    open.push(
      why === null
        ? { streams, bytes: subject.process.residentBytes() }
        : { streams, bytes: null, why: `${held.open} open, then ${why}` },
    );
    if (why !== null) break;
  }
  held.close();
  return { idleBytes, open };
}

/** Streams of an event a second, kept open until `close`. */
class HeldStreams {
  readonly #request: Uint8Array;
  readonly #port: number;
  readonly #sockets: Socket[] = [];
  #broken: string | null = null;

  constructor({ target, prefix }: Subject) {
    this.#port = target.port;
    this.#request = requestBytes(target, bodyOf(prefix, "open", true));
  }

  get open(): number {
    return this.#sockets.length;
  }

  /** Null once `count` streams have had their first byte; otherwise what went wrong. */
  async grow(count: number): Promise<string | null> {
    while (this.#sockets.length < count && this.#broken === null) {
      const wave = Math.min(WAVE, count - this.#sockets.length);
      await Promise.all(Array.from({ length: wave }, () => this.#one()));
    }
    return this.#broken;
  }

  #one(): Promise<void> {
    return new Promise((resolve) => {
      const broke = (why: string) => {
        this.#broken ??= why;
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => broke(`none more within ${FIRST_BYTE_MS / 1_000} s`), FIRST_BYTE_MS);
      let answered = false;
      Bun.connect({
        hostname: "127.0.0.1",
        port: this.#port,
        socket: {
          open: (socket) => void socket.write(this.#request),
          data: (socket, bytes) => {
            if (answered) return;
            answered = true;
            const status = bytes.toString("latin1", 9, 12);
            if (status !== "200") return broke(`status ${status}`);
            this.#sockets.push(socket);
            clearTimeout(timer);
            resolve();
          },
          close: () => broke("a connection ended"),
          error: (_socket, error) => broke(error.message),
        },
      }).catch((error: Error) => broke(error.message));
    });
  }

  close(): void {
    this.#broken = "closed";
    for (const socket of this.#sockets.splice(0)) socket.terminate();
  }
}

const WAVE = 100;
const FIRST_BYTE_MS = 30_000;
