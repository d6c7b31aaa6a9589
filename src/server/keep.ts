import type { BookkeepingParts, BooksConfig } from "../store/books/bookkeeping.ts";
import { dataFolderPath, keeperSocketPath, openDataFolder } from "../store/data-folder.ts";
import { openKeeper } from "../store/nodes/keeper.ts";
import { KeeperSocket } from "../store/nodes/keeper-link.ts";
import { bookJournalOfOne, bookJournalsOfWorkers } from "../store/nodes/orphaned-journals.ts";
import { systemClock } from "../units/clock.ts";
import type { Log } from "../units/log.ts";
import { systemRandom } from "../units/random.ts";

/**
 * The process next to workers that keeps their SQLite database. It holds the data folder's lock, books what others
 * left in journals that nobody will read, and serves the workers until they have ended.
 */
export async function keep({
  env,
  cwd,
  config,
  workers,
  log,
  onLost,
}: KeepOptions): Promise<{ stop(): Promise<void> }> {
  const path = dataFolderPath(env.GATEWAY_DATA, cwd);
  const folder = openDataFolder(path, env.GATEWAY_ADMIN_TOKEN, systemRandom);
  const parts: BookkeepingParts = { config, folder, clock: systemClock, log, onLost };
  const onFault = (error: unknown) => log("keeper", { error: String(error) });
  await bookJournalOfOne(parts);
  let socket: KeeperSocket | null = null;
  const keeper = openKeeper({
    database: folder.databasePath,
    clock: systemClock,
    onFault,
    onLost,
    announce: (announcement) => socket?.announce(announcement),
  });
  await bookJournalsOfWorkers({ ...parts, random: systemRandom }, keeper, workers);
  socket = await KeeperSocket.listen(keeperSocketPath(path), keeper.operations, onFault);
  return {
    async stop() {
      socket?.stop();
      await keeper.stop();
      folder.release();
    },
  };
}

interface KeepOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly config: BooksConfig;
  /** How many of them there are. */
  readonly workers: number;
  readonly log: Log;
  readonly onLost: (error: Error) => void;
}
