import { until } from "../../fakes/until.ts";
import { Cluster } from "../../postgres/cluster.ts";
import { Folder, GatewayProcess } from "../../process/gateway.ts";
import { isWhole, victimsOf } from "../../process/storm.ts";

/** Gateways that share a store. */
export interface SetUp {
  /** One of those that run; a process may end at any moment. */
  any(): GatewayProcess;
  /** Kills processes, others each time, and resolves once all run again. */
  kill(turn: number): Promise<void>;
  end(): Promise<void>;
}

/** `config` is asked for each gateway by itself. */
export type Config = (index: number) => string;

/** What Bun runs instead of the product; null: the product. */
export type Command = readonly string[] | null;

export const SET_UPS = {
  sqlite: (config: Config, command: Command) => together([config(0)], command, [[0]]),
  workers: withWorkers,
  postgres: onPostgres,
};

export type SetUpName = keyof typeof SET_UPS;

async function onPostgres(config: Config, command: Command): Promise<SetUp> {
  const cluster = await Cluster.start();
  const store = `store: "${await cluster.database()}"\n`;
  const victims = [[0], [1], [0, 1]];
  const setUp = await together([config(0) + store, config(1) + store], command, victims);
  const end = async () => {
    await setUp.end();
    await cluster.stop();
  };
  return { ...setUp, end };
}

/** `victims` take turns. */
async function together(
  configs: readonly string[],
  command: Command,
  victims: readonly (readonly number[])[],
): Promise<SetUp> {
  const folders = configs.map((config) => new Folder(config));
  const start = (folder: Folder) => started(folder, command);
  const running: GatewayProcess[] = [];
  for (const folder of folders) running.push(await start(folder));
  let calls = 0;
  return {
    any: () => running[calls++ % running.length]!,
    async kill(turn) {
      const chosen = victims[turn % victims.length]!;
      await Promise.all(chosen.map((index) => running[index]!.kill()));
      await Promise.all(
        chosen.map(async (index) => {
          running[index] = await start(folders[index]!);
        }),
      );
    },
    async end() {
      await Promise.all(running.map((gateway) => gateway.kill()));
      for (const folder of folders) folder.remove();
    },
  };
}

/** As a process manager does it: on a busy machine, workers of a supervisor that was killed hold their folders for some time. */
async function started(
  folder: Folder,
  command: Command,
  triesLeft = MAX_STARTS - 1,
): Promise<GatewayProcess> {
  try {
    return await GatewayProcess.start(folder, {}, command);
  } catch (error) {
    if (triesLeft === 0) throw error;
    return started(folder, command, triesLeft - 1);
  }
}

async function withWorkers(config: Config, command: Command): Promise<SetUp> {
  const setUp = await together([`${config(0)}workers: ${WORKERS}\n`], command, [[0]]);
  return {
    ...setUp,
    async kill(turn) {
      const { pid } = setUp.any();
      const victims = victimsOf(pid, turn);
      if (victims.length === 0) return setUp.kill(turn);
      for (const victim of victims) process.kill(victim, "SIGKILL");
      await until(() => isWhole(pid, WORKERS, victims));
    },
  };
}

const WORKERS = 2;
const MAX_STARTS = 5;
