import { resolve } from "node:path";
import { banner } from "./config/banner.ts";
import { ConfigError, type Gateway, type Log, openGateway } from "./gateway.ts";
import { DataFolderError } from "./store/data-folder.ts";
import { isoTime, systemClock } from "./units/clock.ts";

/** `bun run start`: contract, section 1. */
const log: Log = (event, fields = {}) =>
  console.error(JSON.stringify({ at: isoTime(systemClock.now()), event, ...fields }));

const gateway = await start();
console.log(
  banner({
    config: gateway.config,
    found: gateway.found,
    listening: gateway.url,
    adminTokenPath: gateway.folder.adminTokenPath,
    dataPath: resolve(gateway.folder.path),
  }).join("\n"),
);

process.on("SIGHUP", () => void gateway.reload());
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void end());

let ending = false;
async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  log("draining");
  await gateway.stop();
  log("stopped");
  process.exit(0);
}

async function start(): Promise<Gateway> {
  try {
    return await openGateway({ env: process.env, cwd: process.cwd(), log });
  } catch (error) {
    const expected = error instanceof ConfigError || error instanceof DataFolderError;
    console.error(expected ? `The gateway did not start: ${error.message}` : error);
    process.exit(1);
  }
}
