import net from "node:net";

/** A line between client and gateway on which every byte takes so long, and which counts what goes up. */
export class Line {
  up = 0;
  /** Requests that went up, as their first lines begin. */
  upgrades = 0;
  posts = 0;
  /** On the clock of `performance`: when the client was first refused, by a response or by an event. */
  refusedMs: number | null = null;
  private readonly sockets = new Set<net.Socket>();

  private constructor(private readonly server: net.Server) {}

  static async open(port: number, roundTripMs: number): Promise<Line> {
    const server = net.createServer();
    const line = new Line(server);
    server.on("connection", (client) => line.join(client, net.connect(port, "127.0.0.1"), roundTripMs / 2));
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return line;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as net.AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private join(client: net.Socket, gateway: net.Socket, ms: number): void {
    client.setNoDelay(true);
    gateway.setNoDelay(true);
    this.carry(client, gateway, ms, (bytes) => {
      this.up += bytes.length;
      if (bytes.subarray(0, 5).toString() === "GET /") this.upgrades += 1;
      if (bytes.subarray(0, 6).toString() === "POST /") this.posts += 1;
    });
    this.carry(gateway, client, ms, (bytes) => {
      if (this.refusedMs === null && REFUSAL.test(bytes.toString("latin1")))
        this.refusedMs = performance.now();
    });
  }

  private carry(from: net.Socket, to: net.Socket, ms: number, count: (bytes: Buffer) => void): void {
    this.sockets.add(from);
    const later = (what: () => void) => (ms === 0 ? what() : setTimeout(what, ms));
    from.on("data", (bytes: Buffer) => {
      count(bytes);
      later(() => to.write(bytes));
    });
    from.on("close", () => {
      this.sockets.delete(from);
      later(() => to.destroy());
    });
    from.on("error", () => {});
  }
}

/** 426 sends a client from its WebSocket to requests. */
const REFUSAL = /^HTTP\/1\.1 4(?!26)|"type": ?"error"/;
