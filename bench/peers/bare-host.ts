import { startHost } from "../scene.ts";
import { PATH, type Peer, relays } from "./peer.ts";

/** Nothing in between: the speed of light, and what the load generator itself can do. */
export const bareHost: Peer = {
  name: "bare host",
  async install() {
    return {
      version: `bench/mock-host.ts, bun ${Bun.version}`,
      settings: "nothing in between: the ceiling of the load generator and of the host",
      async start() {
        const process_ = await startHost();
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
