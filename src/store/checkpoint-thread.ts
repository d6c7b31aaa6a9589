import { Database } from "bun:sqlite";

/** Copies the database's write-ahead log into the database, off the event loop: see checkpointer.ts. */
declare const self: Worker;

let db: Database | null = null;

self.onmessage = ({ data: path }: MessageEvent<string>) => {
  try {
    db ??= new Database(path, { readwrite: true });
    db.run("PRAGMA busy_timeout = 0");
    db.run("PRAGMA wal_checkpoint(PASSIVE)");
    self.postMessage(null);
  } catch (error) {
    // The log only grows until the next round.
    self.postMessage(String(error));
  }
};
