import type { RandomBytes } from "../../units/random.ts";
import { type BookkeepingParts, journalOptions } from "../books/bookkeeping.ts";
import { journalBooks } from "../books/bookkeeping-node.ts";
import { openWorkerFolder, workerFolderPath, workerNumbers } from "../data-folder.ts";
import { openDatabase } from "../database/sqlite.ts";
import { SqliteDatabase } from "../database/sqlite-database.ts";
import { JournalBooks } from "../journal/books.ts";
import { folderDisk } from "../journal/disk.ts";
import { journalFiles } from "../journal/journal.ts";
import { SqliteLedgerStore } from "../ledger/sqlite-ledger-store.ts";
import { type Keeper, openKeeper } from "./keeper.ts";

/** Books what a life with one process left in the journal of the data folder, before workers begin theirs. */
export async function bookJournalOfOne(parts: BookkeepingParts): Promise<void> {
  const { path, databasePath } = parts.folder;
  if (journalFiles(folderDisk(path)).length === 0) return;
  const db = openDatabase(databasePath);
  const store = new SqliteLedgerStore(new SqliteDatabase(db)).endsOf(null);
  const books = await JournalBooks.open({ ...journalOptions(parts, path), store });
  const { currentFile } = books.journal;
  if (await books.close()) {
    // Everything is booked: the next start need not read it again.
    if (await store.checkpoint()) {
      await books.journal.forgetBefore(currentFile);
      await store.forgetReachedBefore(currentFile);
    }
  }
  db.close();
}

/** Books what workers left in their journals that are not started any more, as by a start with one process. */
export async function bookJournalsOfWorkers(
  parts: BookkeepingParts & { readonly random: RandomBytes },
  { operations: keeper, ledger }: Keeper,
  workers: number,
): Promise<void> {
  const open = new Set((await keeper.list()).flatMap(({ name, state }) => (state === "left" ? [] : [name])));
  for (const number of workerNumbers(parts.folder.path)) {
    if (number <= workers) continue;
    const folder = openWorkerFolder(
      workerFolderPath(parts.folder.path, number),
      parts.folder.adminToken,
      parts.random,
    );
    const name = folder.nodeName();
    if (open.has(name)) {
      const epoch = await ledger.lastEpoch(name);
      const books = await journalBooks({ ...parts, folder }, ledger.endsOf(name));
      if ((await books.close()) && epoch !== null) await keeper.leave(name, epoch);
      parts.log("worker's journal booked", { worker: number });
    }
    folder.release();
  }
}

/** The same for a start with one process, which has no keeper. */
export async function bookAllWorkers(
  parts: BookkeepingParts & { readonly random: RandomBytes },
): Promise<void> {
  const { folder, clock, log, onLost } = parts;
  if (workerNumbers(folder.path).length === 0) return;
  const onFault = (error: unknown) => log("books", { error: String(error) });
  const keeper = openKeeper({ database: folder.databasePath, clock, onFault, onLost, announce() {} });
  try {
    await bookJournalsOfWorkers(parts, keeper, 0);
  } finally {
    await keeper.stop();
  }
}
