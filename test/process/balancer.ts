import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * A load balancer for connections: each new one goes to the next gateway whose `/readyz` is 200. It repeats
 * nothing, so a connection to a gateway that does not serve is an error that its client sees.
 */
export class Balancer {
  private readonly ready = new Set<string>();
  private readonly server: Server = createServer((client) => this.forward(client));
  private next = 0;
  private stopped = false;

  static async start(gateways: readonly string[]): Promise<Balancer> {
    const balancer = new Balancer();
    for (const gateway of gateways) void balancer.watch(gateway);
    await new Promise<void>((listening) => balancer.server.listen(0, "127.0.0.1", listening));
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as { port: number }).port}`;
  }

  /** Gateways that new connections go to. */
  get serving(): readonly string[] {
    return [...this.ready];
  }

  stop(): void {
    this.stopped = true;
    this.server.close();
  }

  private async watch(gateway: string): Promise<void> {
    while (!this.stopped) {
      const isReady = await fetch(`${gateway}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
      if (isReady) this.ready.add(gateway);
      else this.ready.delete(gateway);
      await Bun.sleep(CHECK_MS);
    }
  }

  private forward(client: Socket): void {
    const { serving } = this;
    const gateway = serving[this.next++ % serving.length];
    if (gateway === undefined) return void client.destroy();
    const { hostname, port } = new URL(gateway);
    const upstream = connect(Number(port), hostname);
    client.pipe(upstream).pipe(client);
    for (const [end, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      end.on("error", () => other.destroy());
    }
  }
}

const CHECK_MS = 50;
