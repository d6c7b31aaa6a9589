// biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
export type SocketEvent = Record<string, any>;

/** A client of the Responses API over WebSocket, which reads one event after another. */
export class SocketClient {
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  private readonly events: SocketEvent[] = [];
  private next: PromiseWithResolvers<void> = Promise.withResolvers();
  private isClosed = false;

  private constructor(private readonly socket: WebSocket) {
    const over = Promise.withResolvers<{ code: number; reason: string }>();
    this.closed = over.promise;
    socket.onmessage = ({ data }) => {
      this.events.push(JSON.parse(data));
      this.wake();
    };
    socket.onclose = ({ code, reason }) => {
      this.isClosed = true;
      over.resolve({ code, reason });
      this.wake();
    };
  }

  static async open(url: string, key: string, headers: Record<string, string> = {}): Promise<SocketClient> {
    const options = { headers: { authorization: `Bearer ${key}`, ...headers } };
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/responses`, options as never);
    const client = new SocketClient(socket);
    await new Promise<void>((opened, failed) => {
      socket.onopen = () => opened();
      socket.onerror = () => failed(new Error("the connection was not upgraded"));
    });
    return client;
  }

  send(event: object | string | Uint8Array): void {
    const isRaw = typeof event === "string" || event instanceof Uint8Array;
    this.socket.send(isRaw ? (event as string) : JSON.stringify(event));
  }

  create(more: object): void {
    this.send({ type: "response.create", ...more });
  }

  /** The next event that has not been read. */
  async event(): Promise<SocketEvent> {
    for (;;) {
      const event = this.events.shift();
      if (event !== undefined) return event;
      if (this.isClosed) throw new Error("the connection was closed");
      await this.next.promise;
    }
  }

  /** A turn's events up to its last. */
  async turn(more?: object): Promise<SocketEvent[]> {
    if (more !== undefined) this.create(more);
    const events: SocketEvent[] = [];
    for (;;) {
      const event = await this.event();
      events.push(event);
      if (TERMINAL.has(event.type)) return events;
    }
  }

  /** How a turn ended. */
  async end(more?: object): Promise<SocketEvent> {
    return (await this.turn(more)).at(-1)!;
  }

  close(code = 1000): void {
    this.socket.close(code);
  }

  terminate(): void {
    (this.socket as WebSocket & { terminate(): void }).terminate();
  }

  private wake(): void {
    this.next.resolve();
    this.next = Promise.withResolvers();
  }
}

const TERMINAL = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);
