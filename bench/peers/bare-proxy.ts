import { RUNTIME } from "../../src/server/runtime.ts";
import { start } from "../processes.ts";
import { PATH, type Peer, relays } from "./peer.ts";

/** What is Bun's in the gateway's figures. */
export const bareProxy: Peer = {
  name: "bare proxy on Bun",
  async install() {
    return {
      version: `bench/bare-proxy.ts, bun ${Bun.version}`,
      settings:
        "Bun.serve and the gateway's transport, no keys, ledger, limits or receipts: the floor of what Bun can",
      async start(hostPort) {
        const process_ = await start(
          [process.execPath, `${import.meta.dir}/../bare-proxy.ts`, String(hostPort)],
          { ...RUNTIME, ...process.env } as Record<string, string>,
        );
        return {
          process: process_,
          target: { port: process_.port, path: PATH, headers: {} },
          reaches: relays({ port: process_.port, path: PATH, headers: {} }),
          prefix: "",
          refusesLarge: false,
        };
      },
    };
  },
};
