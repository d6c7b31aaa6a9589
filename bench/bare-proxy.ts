/**
 * The least that a proxy on Bun does: `Bun.serve` in front, our transport behind, and nothing in between but
 * bytes. No keys, ledger, limits or receipts. What the gateway costs above it is the gateway's own; what it
 * costs itself is Bun's. Prints its port.
 *
 *     bun run bench/bare-proxy.ts <port of the host>
 */
import type { Host } from "../src/catalog/catalog.ts";
import { http1Transport } from "../src/hosts/http1/transport.ts";
import { type HostBytes, HostFault } from "../src/hosts/transport.ts";
import { answerResponse } from "../src/http/streaming.ts";
import { systemClock } from "../src/units/clock.ts";

const transport = http1Transport({ clock: systemClock, onFault: console.error });
const host = { id: "host", baseUrl: `http://127.0.0.1:${process.argv[2]}/v1` } as Host;
const headers = { "content-type": "application/json" };
const to = { host, method: "POST", path: "/chat/completions", headers } as const;
const NO_TURNS = { gatewaysTurn() {}, clientsTurn() {} };

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 255,
  async fetch(request) {
    const body = new Uint8Array(await request.arrayBuffer());
    const exchange = transport.open({ to, headers: {}, body });
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

async function relayed(
  source: HostBytes,
  sink: { write(bytes: Uint8Array): boolean | Promise<boolean>; close(): void },
): Promise<void> {
  for (;;) {
    const bytes = await source.read();
    if (!(bytes instanceof Uint8Array) || !(await sink.write(bytes))) break;
  }
  sink.close();
}
