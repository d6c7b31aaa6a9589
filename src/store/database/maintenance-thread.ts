import { SqliteLedgerStore } from "../ledger/sqlite-ledger-store.ts";
import { openDatabase } from "./sqlite.ts";
import { SqliteDatabase } from "./sqlite-database.ts";
import type { MaintenanceAnswer, MaintenanceQuestion } from "./sqlite-maintenance.ts";

/** Keeps the database in shape, off the event loop: see sqlite-maintenance.ts. */
declare const self: Worker;

let opened: ReturnType<typeof open> | null = null;

self.onmessage = async ({ data: question }: MessageEvent<MaintenanceQuestion>) => {
  let answer: MaintenanceAnswer;
  try {
    answer = { result: await done(question) };
  } catch (error) {
    answer = { problem: String(error) };
  }
  self.postMessage(answer);
};

async function done({ database, task }: MaintenanceQuestion): Promise<unknown> {
  opened ??= open(database);
  const { db, store } = opened;
  switch (task.kind) {
    case "checkpoint":
      return checkpointed(store);
    case "fold":
      return store.fold(task.before);
    case "close":
      return db.close();
  }
}

async function checkpointed(store: SqliteLedgerStore): Promise<boolean> {
  let through = false;
  // More is written while a checkpoint runs. The log can start over only after a checkpoint during which
  // nothing was written, and the shorter the checkpoint, the likelier that is.
  for (let round = 0; round < ROUNDS; round++) through = (await store.checkpoint()) || through;
  return through;
}

const ROUNDS = 3;

function open(database: string) {
  const db = openDatabase(database, "NORMAL", WAIT_MS);
  return { db, store: new SqliteLedgerStore(new SqliteDatabase(db)) };
}

/** Only those who asked wait for this thread. */
const WAIT_MS = 5_000;
