import net from "node:net";

/**
 * The wire between one node and PostgreSQL, which can be cut as a network is: what was sent into it is
 * swallowed, nothing is said to either end, and connections neither open nor close.
 */
export class PostgresWire {
  private isCut = false;
  private readonly links = new Set<Link>();

  private constructor(
    private readonly server: net.Server,
    private to: number,
  ) {}

  static async start(to: number): Promise<PostgresWire> {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const wire = new PostgresWire(server, to);
    server.on("connection", (near) => wire.join(near));
    return wire;
  }

  get port(): number {
    return (this.server.address() as net.AddressInfo).port;
  }

  /** Connections of before never speak again, not even when the wire is whole. */
  cut(): void {
    this.isCut = true;
    for (const link of this.links) link.isDead = true;
  }

  heal(): void {
    this.isCut = false;
  }

  /** Where connections lead that are made from now on; those that stand stay where they are. */
  leadTo(port: number): void {
    this.to = port;
  }

  close(): void {
    this.server.close();
    for (const { near, far } of this.links) for (const end of [near, far]) end?.destroy();
  }

  private join(near: net.Socket): void {
    const link: Link = { near, far: null, isDead: this.isCut };
    this.links.add(link);
    near.on("error", () => {});
    if (link.isDead) return void near.resume();
    const far = net.connect(this.to, "127.0.0.1");
    link.far = far;
    far.on("error", () => near.destroy());
    for (const [from, into] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (bytes) => {
        if (!link.isDead) into.write(bytes);
      });
      from.on("close", () => {
        if (!link.isDead) into.end();
      });
    }
  }
}

interface Link {
  readonly near: net.Socket;
  far: net.Socket | null;
  isDead: boolean;
}
