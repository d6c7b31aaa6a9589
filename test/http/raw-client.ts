import net from "node:net";

/** A connection that sends exactly what the test says, and reads only when asked to. */
export class RawClient {
  private readonly socket: net.Socket;
  private readonly waiting = new Set<() => void>();
  private received = Buffer.alloc(0);
  closed = false;

  constructor(port: number) {
    this.socket = net.connect(port, "127.0.0.1");
    this.socket.on("data", (bytes: Buffer) => {
      this.received = Buffer.concat([this.received, bytes]);
      this.wake();
    });
    // A reset is one of the ways in which a connection ends here.
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.closed = true;
      this.wake();
    });
  }

  /** Resolves when the bytes have left; false when the connection ended before. */
  write(bytes: string | Uint8Array): Promise<boolean> {
    return new Promise((left) => {
      if (this.closed || !this.socket.writable) return left(false);
      const ended = () => left(false);
      this.socket.once("close", ended);
      this.socket.write(bytes, (error) => {
        this.socket.off("close", ended);
        left(!error);
      });
    });
  }

  /** One character a byte: chunks may be cut inside a character. */
  get text(): string {
    return this.received.toString("latin1");
  }

  /** Waits for what was received to satisfy the condition; throws when the connection ends before it does. */
  async until(seen: (text: string) => boolean): Promise<string> {
    while (!seen(this.text)) {
      if (this.closed)
        throw new Error(`the connection ended after ${JSON.stringify(this.text.slice(0, 500))}`);
      await new Promise<void>((wake) => this.waiting.add(wake));
    }
    return this.text;
  }

  async end(): Promise<string> {
    while (!this.closed) await new Promise<void>((wake) => this.waiting.add(wake));
    return this.text;
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  leave(): void {
    this.socket.destroy();
  }

  private wake(): void {
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }
}

/** A response that came whole: its status, its lower-case headers, its body as UTF-8 with chunks joined. */
export function readResponse(text: string) {
  const at = text.indexOf("\r\n\r\n");
  const [statusLine, ...fields] = text.slice(0, at).split("\r\n");
  const headers = Object.fromEntries(
    fields.map((field) => [
      field.slice(0, field.indexOf(":")).toLowerCase(),
      field.slice(field.indexOf(":") + 1).trim(),
    ]),
  );
  const rest = text.slice(at + 4);
  const body = headers["transfer-encoding"] === "chunked" ? joinChunks(rest) : rest;
  return { status: Number(statusLine!.split(" ")[1]), headers, body: Buffer.from(body, "latin1").toString() };
}

function joinChunks(text: string): string {
  let rest = text;
  let body = "";
  for (;;) {
    const end = rest.indexOf("\r\n");
    const size = Number.parseInt(rest.slice(0, end), 16);
    if (end < 0 || !(size > 0)) return body;
    body += rest.slice(end + 2, end + 2 + size);
    rest = rest.slice(end + 2 + size + 2);
  }
}

export const whole = (text: string): boolean => {
  if (!text.includes("\r\n\r\n")) return false;
  const { headers, body } = readResponse(text);
  return headers["transfer-encoding"] === "chunked"
    ? text.endsWith("0\r\n\r\n")
    : Buffer.byteLength(body) >= Number(headers["content-length"] ?? 0);
};
