import { join } from "node:path";
import { freePort, startQuiet } from "../processes.ts";
import { filledOnce, run } from "./install.ts";
import { PATH, type Peer } from "./peer.ts";

const VERSION = "1.15.2";

/**
 * From 1.14 on, its dependency hands out the immutable headers of `fetch`, and every stream ends in a 500.
 */
const OVERRIDES = { "@hono/node-server": "1.13.8" };

export const portkey: Peer = {
  name: "Portkey",
  async install(cache) {
    if (Bun.which("node") === null) throw new Error("node is not installed");
    const folder = await filledOnce(join(cache, `portkey-${VERSION}`), async (draft) => {
      await Bun.write(join(draft, "package.json"), JSON.stringify({ private: true, overrides: OVERRIDES }));
      const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--save-exact"];
      await run(["npm", "install", ...quiet, `@portkey-ai/gateway@${VERSION}`], draft);
    });
    const node = await run(["node", "--version"], ".");
    return {
      version: `${VERSION}, node ${node}`,
      settings: "one process, `--headless`, NODE_ENV=production; neither keys nor limits nor records",
      async start(hostPort) {
        const port = freePort();
        const program = join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js");
        return {
          process: await startQuiet({
            command: ["node", program, "--headless", `--port=${port}`],
            port,
            env: { NODE_ENV: "production" },
            timeoutMs: 30_000,
          }),
          target: {
            port,
            path: PATH,
            headers: {
              authorization: "Bearer bench",
              "x-portkey-provider": "openai",
              "x-portkey-custom-host": `http://127.0.0.1:${hostPort}/v1`,
            },
          },
          prefix: "",
          refusesLarge: false,
        };
      },
    };
  },
};
