import { closeSync, fdatasync, openSync } from "node:fs";
import { dirname } from "node:path";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import { syncPath } from "../journal/disk.ts";

/**
 * Makes durable what a connection with `synchronous=NORMAL` has committed, off the event loop. Such a commit is
 * whole in SQLite's write-ahead log, without a sync; `FULL` would sync the log as well, within the commit, and
 * everybody would stand still for the 5 to 15 ms that many a disk takes. A commit while a sync is under
 * way shares the next one. What SQLite has copied from the log into the database before, it has synced there.
 */
export class LogSync {
  private file: number | null = null;
  private running: Promise<void> | null = null;
  private next: Promise<void> | null = null;
  /** A kernel that fails a sync may forget what it was about, and then call the next one done. */
  private failed: StoreUnreachable | null = null;

  /** `database` is the path of SQLite's file; `onFault` is called once, because only a restart fixes it. */
  constructor(
    private readonly database: string,
    private readonly onFault: (error: Error) => void,
    private readonly sync: SyncFile = fdatasync,
  ) {}

  /** Resolves once everything that was committed before this call survives a power cut. */
  durable(): Promise<void> {
    if (this.failed !== null) return Promise.reject(this.failed);
    this.next ??= this.syncNext();
    return this.next;
  }

  close(): void {
    if (this.file !== null) closeSync(this.file);
    this.file = null;
  }

  /** What runs may have started before this commit. Where nothing does, all that commit in this turn share a sync. */
  private async syncNext(): Promise<void> {
    await (this.running ?? new Promise<void>((resolve) => void setImmediate(resolve)));
    this.next = null;
    const run = this.run().finally(() => {
      this.running = null;
    });
    this.running = run;
    await run;
  }

  private run(): Promise<void> {
    return new Promise((resolve, reject) => {
      const file = (this.file ??= this.open());
      this.sync(file, (error) => {
        if (error === null) return resolve();
        this.failed = new StoreUnreachable(
          `the database's log could not be synced (${error.message}): keys and accounts do not change until the gateway is started again`,
          { cause: error },
        );
        this.onFault(this.failed);
        reject(this.failed);
      });
    });
  }

  private open(): number {
    const file = openSync(`${this.database}-wal`, "r+");
    // SQLite makes the log with its first write, and syncs its name with the first sync of its own.
    syncPath(dirname(this.database));
    return file;
  }
}

type SyncFile = (file: number, done: (error: Error | null) => void) => void;
