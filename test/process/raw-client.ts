/** An HTTP client that shows what happens to its one connection. */
export class RawClient {
  private received = "";
  private closed = false;
  private arrived = Promise.withResolvers<void>();

  private constructor(private readonly socket: Bun.Socket<RawClient | null>) {}

  static async connect(url: string): Promise<RawClient> {
    const { hostname, port } = new URL(url);
    const socket = await Bun.connect<RawClient | null>({
      hostname,
      port: Number(port),
      data: null,
      socket: {
        data: ({ data: client }, bytes) => client?.take(new TextDecoder().decode(bytes)),
        close: ({ data: client }) => client?.end(),
        end: (ended) => void ended.end(),
      },
    });
    const client = new RawClient(socket);
    socket.data = client;
    return client;
  }

  chat(key: string, body: object): { head: string; body: string } {
    const text = JSON.stringify(body);
    return {
      head: `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\ncontent-length: ${text.length}\r\n\r\n`,
      body: text,
    };
  }

  write(text: string): void {
    this.socket.write(text);
  }

  get(path: string): Promise<RawAnswer> {
    this.write(`GET ${path} HTTP/1.1\r\nhost: gateway\r\n\r\n`);
    return this.answer();
  }

  post(key: string, body: object): Promise<RawAnswer> {
    const request = this.chat(key, body);
    this.write(request.head + request.body);
    return this.answer();
  }

  close(): void {
    this.socket.end();
  }

  /** The next one, whole; rejects when the connection is closed before. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const answer = this.next();
      if (answer !== null) return answer;
      if (this.closed) throw new Error(`closed after ${JSON.stringify(this.received)}`);
      await this.arrived.promise;
    }
  }

  /** Resolves once so much has come of an answer, whole or not. */
  async sees(text: string): Promise<void> {
    while (!this.received.includes(text)) {
      if (this.closed) throw new Error(`closed after ${JSON.stringify(this.received)}`);
      await this.arrived.promise;
    }
  }

  /** Resolves when the other side has closed the connection. */
  async closing(): Promise<void> {
    while (!this.closed) await this.arrived.promise;
  }

  private next(): RawAnswer | null {
    const end = this.received.indexOf("\r\n\r\n");
    if (end < 0) return null;
    const head = this.received.slice(0, end);
    const rest = this.received.slice(end + 4);
    const length = /^content-length: (\d+)/im.exec(head);
    const bodyEnd = length === null ? rest.indexOf("\r\n0\r\n\r\n") + 7 : Number(length[1]);
    if (bodyEnd < 7 && length === null) return null;
    if (rest.length < bodyEnd) return null;
    this.received = rest.slice(bodyEnd);
    return {
      status: Number(head.split(" ")[1]),
      closes: /^connection: close/im.test(head),
      body: rest.slice(0, bodyEnd),
    };
  }

  private take(text: string): void {
    this.received += text;
    this.wake();
  }

  private end(): void {
    this.closed = true;
    this.wake();
  }

  private wake(): void {
    this.arrived.resolve();
    this.arrived = Promise.withResolvers<void>();
  }
}

export interface RawAnswer {
  readonly status: number;
  /** Whether it says that the connection is closed after it. */
  readonly closes: boolean;
  readonly body: string;
}
