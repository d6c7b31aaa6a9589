import { Database } from "bun:sqlite";

/** Copies the database's write-ahead log into the database, off the event loop: see checkpointer.ts. */
declare const self: Worker;

let db: Database | null = null;

self.onmessage = ({ data: path }: MessageEvent<string>) => {
  try {
    db ??= open(path);
    let round = checkpoint(db);
    // While one is under way more is written. Only one that is overtaken by nothing lets the log begin anew, and the shorter
    // it is the likelier that is.
    for (let more = 0; more < MORE_ROUNDS; more++) round = checkpoint(db);
    self.postMessage({ through: round.busy === 0 && round.log === round.checkpointed });
  } catch (error) {
    // The log only grows until the next round.
    self.postMessage({ through: false, fault: String(error) });
  }
};

function open(path: string): Database {
  const db = new Database(path, { readwrite: true });
  db.run("PRAGMA busy_timeout = 0");
  return db;
}

/**
 * `log` are the pages that the log had as this began, and all that was committed before is among them; they are synced
 * before any is copied. `checkpointed` of them are in the database: fewer, where somebody still reads what was before.
 */
const checkpoint = (db: Database) =>
  db.query<{ busy: number; log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(PASSIVE)").get()!;

const MORE_ROUNDS = 2;
