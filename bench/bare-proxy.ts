/**
 * The least that a proxy on Bun does: `Bun.serve` in front, our transport behind, and nothing in between but
 * bytes. No keys, ledger, limits or receipts. What the gateway costs above it is the gateway's own; what it
 * costs itself is Bun's. Prints its port.
 *
 *     bun run bench/bare-proxy.ts <port of the host>
 */
import type { Host } from "../src/catalog/catalog.ts";
import type { Sink } from "../src/generation/answer.ts";
import { Http1Transport } from "../src/hosts/http1/transport.ts";
import { type HostBytes, HostFault, type Read } from "../src/hosts/transport.ts";
import { answerResponse } from "../src/http/streaming.ts";
import { systemClock } from "../src/units/clock.ts";

const transport = new Http1Transport({ clock: systemClock, onFault: console.error });
const host = { id: "host", baseUrl: `http://127.0.0.1:${process.argv[2]}/v1` } as Host;
const headers = { "content-type": "application/json" };
const NO_TURNS = { gatewaysTurn() {}, clientsTurn() {} };

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 255,
  async fetch(request) {
    const body = new Uint8Array(await request.arrayBuffer());
    const path = request.url.slice(request.url.indexOf("/v1/") + "/v1".length);
    const to = { host, method: "POST", path, headers } as const;
    const exchange = transport.open({ to, headers: {}, body: [body] });
    const reply = await exchange.reply;
    if (reply instanceof HostFault) return new Response(reply.message, { status: 502 });
    const { status } = reply;
    const type = reply.headers.get("content-type") ?? "application/octet-stream";
    const answer = { status, headers: { "content-type": type } };
    if (reply.headers.has("content-length")) {
      const whole = await reply.read();
      return new Response(whole instanceof Uint8Array ? (whole as Uint8Array<ArrayBuffer>) : null, answer);
    }
    return answerResponse(
      {
        kind: "stream",
        ...answer,
        run: (sink) => relayed(reply.takeBody(), sink).finally(() => exchange.cancel()),
      },
      NO_TURNS,
    );
  },
});
console.log(String(server.port));

/** Resolves at the end of either. */
function relayed(source: HostBytes, sink: Sink): Promise<void> {
  return new Promise((ended) => new Relayed(source, sink, ended).readOn());
}

class Relayed {
  constructor(
    private readonly source: HostBytes,
    private readonly sink: Sink,
    private readonly ended: () => void,
  ) {}

  arrived(read: Read): void {
    if (this.take(read)) this.readOn();
  }

  readOn(): void {
    for (;;) {
      const read = this.source.next(this);
      if (read === undefined || !this.take(read)) return;
    }
  }

  private take(read: Read): boolean {
    const taken = read instanceof Uint8Array && this.sink.write(read);
    if (typeof taken !== "boolean") {
      void taken.then((isTaken) => (isTaken ? this.readOn() : this.end()));
      return false;
    }
    if (!taken) this.end();
    return taken;
  }

  private end(): void {
    this.sink.close();
    this.ended();
  }
}
