import type { BookkeepingAnswer, BookkeepingQuestion } from "./bookkeeper.ts";
import { type Disk, folderDisk } from "./disk.ts";
import { LedgerStore } from "./ledger-store.ts";
import { openDatabase } from "./sqlite.ts";

/** Reads the journal and writes the books, off the event loop: see bookkeeper.ts. */
declare const self: Worker;

let opened: { readonly disk: Disk; readonly store: LedgerStore } | null = null;

self.onmessage = ({ data: question }: MessageEvent<BookkeepingQuestion>) => {
  let answer: BookkeepingAnswer;
  try {
    answer = { result: done(question) };
  } catch (error) {
    answer = { problem: String(error) };
  }
  self.postMessage(answer);
};

function done({ folder, database, task }: BookkeepingQuestion): unknown {
  opened ??= {
    disk: folderDisk(folder),
    store: new LedgerStore(openDatabase(database, "NORMAL")),
  };
  const { disk, store } = opened;
  switch (task.kind) {
    case "apply":
      return store.applyThrough(disk, task.through);
    case "checkpoint":
      return store.checkpoint();
    case "forget":
      return store.forgetReachedBefore(task.file);
    case "fold":
      return store.fold(task.before);
  }
}
