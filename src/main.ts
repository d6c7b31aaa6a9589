import { resolve } from "node:path";
import { banner } from "./config/banner.ts";
import { ConfigError, type Gateway, type Log, openGateway } from "./gateway.ts";
import { DataFolderError } from "./store/data-folder.ts";
import { StoreUnreachable } from "./store/postgres.ts";
import { isoTime, systemClock } from "./units/clock.ts";

/** `bun run start`: contract, section 1. */
const log: Log = (event, fields = {}) =>
  console.error(JSON.stringify({ at: isoTime(systemClock.now()), event, ...fields }));

const PARENT_CHECK_MS = 50;

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

// `npm start` and `bun run start` put a process between the operator and this one. When it is killed, this one must not
// live on unseen, holding the port and the data folder; being crash-safe, it may end as abruptly.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
  }, PARENT_CHECK_MS).unref();
}

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
    return await openGateway({
      env: process.env,
      cwd: process.cwd(),
      log,
      onLost(error) {
        log("lost", { error: error.message });
        process.exit(1);
      },
    });
  } catch (error) {
    const expected = [ConfigError, DataFolderError, StoreUnreachable].some((kind) => error instanceof kind);
    console.error(expected ? `The gateway did not start: ${(error as Error).message}` : error);
    process.exit(1);
  }
}
