import { join } from "node:path";
import { freePort, startQuiet } from "../processes.ts";
import { filledOnce, run } from "./install.ts";
import { PATH, type Peer } from "./peer.ts";

const WRAPPER = "1.6.3";
const VERSION = "v1.3.9";

/**
 * Its npm package is a wrapper that fetches the program from its maker's own site; a `bifrost-http` on the
 * PATH is taken first. Configuration as its documentation has it ("config.json", file-based mode).
 */
export const bifrost: Peer = {
  name: "Bifrost",
  async install(cache) {
    const program = Bun.which("bifrost-http");
    const command = program === null ? await wrapped(cache) : [program];
    return {
      version: program === null ? VERSION : "of bifrost-http on the PATH",
      settings:
        "GOMAXPROCS=1, no configuration or log store, log level error: neither keys nor limits nor records",
      async start(hostPort, folder) {
        const port = freePort();
        await Bun.write(join(folder, "config.json"), JSON.stringify(configuration(hostPort)));
        const flags = ["-app-dir", folder, "-host", "127.0.0.1", "-port", `${port}`, "-log-level", "error"];
        return {
          process: await startQuiet({
            command: [...command, ...flags],
            port,
            env: { GOMAXPROCS: "1" },
            timeoutMs: 60_000,
          }),
          target: { port, path: PATH, headers: {} },
          prefix: "openai/",
          refusesLarge: false,
        };
      },
    };
  },
};

async function wrapped(cache: string): Promise<string[]> {
  if (Bun.which("node") === null) throw new Error("node is not installed");
  const folder = await filledOnce(join(cache, `bifrost-${WRAPPER}`), async (draft) => {
    await Bun.write(join(draft, "package.json"), '{"private":true}');
    await run(["npm", "install", "--no-audit", "--no-fund", `@maximhq/bifrost@${WRAPPER}`], draft);
  });
  const wrapper = join(folder, "node_modules/@maximhq/bifrost/bin.js");
  const command = ["node", wrapper, "--transport-version", VERSION];
  await run([...command, "-version"], folder).catch((error: Error) => {
    throw new Error(
      `its program is fetched from its maker's own site, which did not answer (${error.message})`,
    );
  });
  return command;
}

const configuration = (hostPort: number) => ({
  client: { enable_logging: false, drop_excess_requests: false, initial_pool_size: 5_000 },
  config_store: { enabled: false },
  logs_store: { enabled: false },
  providers: {
    openai: {
      keys: [{ name: "bench", value: "bench", models: ["*"], weight: 1 }],
      network_config: { base_url: `http://127.0.0.1:${hostPort}`, default_request_timeout_in_seconds: 600 },
      concurrency_and_buffer_size: { concurrency: 10_000, buffer_size: 20_000 },
    },
  },
});
