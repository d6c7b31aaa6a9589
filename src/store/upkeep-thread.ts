import { LedgerStore } from "./ledger-store.ts";
import { openDatabase } from "./sqlite.ts";
import type { UpkeepAnswer, UpkeepQuestion } from "./upkeep.ts";

/** Keeps the database in shape, off the event loop: see upkeep.ts. */
declare const self: Worker;

let opened: ReturnType<typeof open> | null = null;

self.onmessage = ({ data: question }: MessageEvent<UpkeepQuestion>) => {
  let answer: UpkeepAnswer;
  try {
    answer = { result: done(question) };
  } catch (error) {
    answer = { problem: String(error) };
  }
  self.postMessage(answer);
};

function done({ database, task }: UpkeepQuestion): unknown {
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

function checkpointed(store: LedgerStore): boolean {
  let through = false;
  // While one is under way more is written. Only one that is overtaken by nothing lets the log begin anew, and the shorter it is
  // the likelier that is.
  for (let round = 0; round < ROUNDS; round++) through = store.checkpoint() || through;
  return through;
}

const ROUNDS = 3;

function open(database: string) {
  const db = openDatabase(database, "NORMAL", WAIT_MS);
  return { db, store: new LedgerStore(db) };
}

/** Nobody but those who asked waits with it. */
const WAIT_MS = 5_000;
