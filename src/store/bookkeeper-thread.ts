import type { BookkeepingAnswer, BookkeepingQuestion } from "./bookkeeper.ts";
import { folderDisk } from "./disk.ts";
import { LedgerStore } from "./ledger-store.ts";
import { openDatabase } from "./sqlite.ts";

/** Reads the journal and writes the books, off the event loop: see bookkeeper.ts. */
declare const self: Worker;

let opened: ReturnType<typeof open> | null = null;

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
  opened ??= open(folder, database);
  const { disk, db, store } = opened;
  switch (task.kind) {
    case "apply":
      return store.applyThrough(disk, task.through);
    case "checkpoint":
      return store.checkpoint();
    case "forget":
      return store.forgetReachedBefore(task.file);
    case "fold":
      return store.fold(task.before);
    case "close":
      return db.close();
  }
}

function open(folder: string, database: string) {
  const db = openDatabase(database, "NORMAL", WAIT_MS);
  return { disk: folderDisk(folder), db, store: new LedgerStore(db) };
}

/** Nobody but those who asked waits with it. */
const WAIT_MS = 5_000;
