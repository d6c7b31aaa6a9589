import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SURFACE_NAMES } from "../../src/catalog/catalog.ts";
import {
  fundedKey,
  type GatewaySettings,
  hostRow,
  modelRow,
  startGateway,
  targetOf,
} from "../gateway-process.ts";
import type { Measured } from "../processes.ts";
import { hostPrefix } from "./kinds.ts";
import { PACES, PATHS, type Peer } from "./peer.ts";

/** As it is shipped: ledger, journal and receipts on, a real key with every limit set. */
export const gateway: Peer = {
  name: "gateway",
  async install() {
    const { version } = (await Bun.file(`${ROOT}/package.json`).json()) as { version: string };
    return {
      version: `${version}, bun ${Bun.version}`,
      settings: "one process; key, ledger, every limit, durable journal and receipts on",
      async start(hostPort, folder) {
        const process_ = await startGateway(folder, hostPort, settingsOf(hostPort));
        const key = await keptKey(process_, join(folder, "key"));
        return {
          process: process_,
          target: targetOf(process_, key),
          stranger: targetOf(process_, "or-live-123456789ABCDEFGHJKLMNPQRSTUVWXY"),
          prefix: "bench/",
          refusesLarge: true,
          reaches: (client) => targetOf(process_, key, PATHS[client]),
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

const NARROW = 128_000;

const settingsOf = (hostPort: number): GatewaySettings => ({
  hosts: SURFACE_NAMES.map((one) => hostRow(one, hostPort, one)).join("\n"),
  models: SURFACE_NAMES.flatMap((host) =>
    Object.values(PACES).map((pace) =>
      modelRow(`bench/${hostPrefix(host)}${pace}`, host, pace, pace === PACES.narrow ? NARROW : undefined),
    ),
  ).join("\n"),
  limits: "rpm_limit: 1000000000, tpm_limit: null, daily_limit_usd: 100000, monthly_limit_usd: 100000",
});
