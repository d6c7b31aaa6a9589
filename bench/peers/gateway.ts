import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { fundedKey, startGateway } from "../gateway-process.ts";
import type { Measured } from "../processes.ts";
import { hostPrefix } from "./kinds.ts";
import { PACES, PATH, PATHS, type Peer } from "./peer.ts";

/** As it is shipped: ledger, journal and receipts on, a real key with every limit set. */
export const gateway: Peer = {
  name: "gateway",
  async install() {
    const { version } = (await Bun.file(`${ROOT}/package.json`).json()) as { version: string };
    return {
      version: `${version}, bun ${Bun.version}`,
      settings: "one process; key, ledger, every limit, durable journal and receipts on",
      async start(hostPort, folder) {
        const process_ = await startGateway(folder, configuration(hostPort));
        const key = await keptKey(process_, join(folder, "key"));
        const target = (secret: string) => ({
          port: process_.port,
          path: PATH,
          headers: { authorization: `Bearer ${secret}` },
        });
        return {
          process: process_,
          target: target(key),
          stranger: target("or-live-123456789ABCDEFGHJKLMNPQRSTUVWXY"),
          prefix: "bench/",
          refusesLarge: true,
          reaches: (client) => ({ ...target(key), path: PATHS[client] }),
          assembles: true,
        };
      },
    };
  },
};

const ROOT = join(import.meta.dir, "../..");

/** The key that is kept in `file`, or a new one with credit enough: a gateway that comes back knows it. */
async function keptKey(gateway: Measured, file: string): Promise<string> {
  if (existsSync(file)) return readFileSync(file, "utf8");
  const { key } = await fundedKey(gateway, 100_000);
  writeFileSync(file, key);
  return key;
}

const configuration = (hostPort: number): string => `
hosts:
${SURFACE_NAMES.map((one) => `  - { id: ${one}, base_url: "http://127.0.0.1:${hostPort}/v1", speaks: [${one}] }`).join("\n")}
models:
${SURFACE_NAMES.flatMap((host) => Object.values(PACES).map((pace) => model(host, pace))).join("")}
defaults:
  accountless: { rpm_limit: 1000000000, tpm_limit: null, daily_limit_usd: 100000, monthly_limit_usd: 100000 }
`;

/** A window wide enough for a body of 10 MB. */
const model = (host: SurfaceName, pace: string): string => `
  - id: bench/${hostPrefix(host)}${pace}
    name: Bench
    context_length: 20000000
    max_output_tokens: 4000
    price: { input: 0.001, output: 10 }
    routes: [{ host: ${host}, model: ${pace} }]
`;
