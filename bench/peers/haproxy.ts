import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, startQuiet } from "../processes.ts";
import { debianProgram, run } from "./install.ts";
import { BODY_BYTES, PATH, type Peer, relays } from "./peer.ts";

const PACKAGES = ["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"];

export const haproxy: Peer = {
  name: "HAProxy",
  async install(cache) {
    const { program, env } = await debianProgram(cache, "haproxy", PACKAGES);
    return {
      version: /version (\S+)/.exec(await run([program, "-v"], ".", env))![1]!,
      settings: "one thread, `http-reuse always`, `option http-no-delay`, no log; relays only",
      async start(hostPort, folder) {
        const port = freePort();
        const file = join(folder, "haproxy.cfg");
        writeFileSync(file, configuration(port, hostPort));
        return {
          process: await startQuiet({ command: [program, "-db", "-f", file], port, env }),
          target: { port, path: PATH, headers: {} },
          reaches: relays({ port, path: PATH, headers: {} }),
          prefix: "",
          refusesLarge: true,
        };
      },
    };
  },
};

const configuration = (port: number, hostPort: number): string => `
global
  nbthread 1
  maxconn 9500
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  http-reuse always
frontend clients
  bind 127.0.0.1:${port} backlog 4096
  http-request deny deny_status 413 if { req.hdr_val(content-length) gt ${BODY_BYTES} }
  default_backend hosts
backend hosts
  server host 127.0.0.1:${hostPort} pool-max-conn -1
`;
