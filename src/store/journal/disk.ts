import {
  closeSync,
  copyFileSync,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { rename, unlink } from "node:fs/promises";
import { join } from "node:path";

/** One folder, as the journal uses it. The simulator's disk tears writes and forgets what was not synced. */
export interface Disk {
  list(): string[];
  /** The whole file, which is durable on return, whichever process wrote it. */
  read(name: string): Uint8Array;
  /** Creates the file if it does not exist, or renames `from` to it; the name is durable on return. */
  open(name: string, from?: string): DiskFile;
  /** The same bytes under another name, which stays when the first one goes; durable on return. */
  keep(name: string, as: string): void;
  /** The rename is durable on return, or when the promise resolves. */
  rename(name: string, to: string): void | Promise<void>;
  /**
   * The removal is durable on return, or when the promise resolves; only then may what was known of the file
   * be forgotten.
   */
  remove(name: string): void | Promise<void>;
}

export interface DiskFile {
  /** Writes all of it, or throws. */
  write(bytes: Uint8Array, at: number): void;
  /**
   * What was written is durable when this returns, or when its promise resolves; `lines` of the journal wait
   * for it.
   */
  sync(lines: number): void | Promise<void>;
  truncate(size: number): void;
  close(): void;
}

/** `slowMs` is what `probeSync` found. */
export function folderDisk(folder: string, slowMs = 0): Disk {
  const policy = new SyncPolicy(slowMs, performance.now());
  return {
    list: () => readdirSync(folder),
    read(name) {
      const path = join(folder, name);
      // A process that was killed may have left it to the page cache, and what is read is acted upon.
      syncPath(path);
      return readFileSync(path);
    },
    open(name, from) {
      if (from !== undefined) renameSync(join(folder, from), join(folder, name));
      const file = openFile(join(folder, name), policy);
      syncPath(folder);
      return file;
    },
    keep(name, as) {
      if (existsSync(join(folder, as))) return;
      try {
        linkSync(join(folder, name), join(folder, as));
      } catch {
        // Not every file system has links.
        copyFileSync(join(folder, name), join(folder, as));
        syncPath(join(folder, as));
      }
      syncPath(folder);
    },
    async rename(name, to) {
      await rename(join(folder, name), join(folder, to));
      await syncOffLoop(folder);
    },
    // Off the loop: for a file of some megabytes it takes 20 ms.
    async remove(name) {
      await unlink(join(folder, name));
      await syncOffLoop(folder);
    },
  };
}

const PROBE_ROUNDS = 20;
/** However long they take. */
const ON_THE_LOOP = { onLoop: () => true, took() {} };

/**
 * Measures the folder's `fdatasync` with small appends: the third-slowest of several rounds, and where syncs
 * of a disk that slow are done at first.
 */
export function probeSync(folder: string): { slowMs: number; syncing: "inline" | "off-loop" } {
  const path = join(folder, `probe-${process.pid}`);
  const file = openFile(path, ON_THE_LOOP);
  const took: number[] = [];
  try {
    const line = new Uint8Array(512);
    for (let round = 0; round < PROBE_ROUNDS; round++) {
      const start = performance.now();
      file.write(line, round * line.length);
      void file.sync(1);
      took.push(performance.now() - start);
    }
  } finally {
    file.close();
    unlinkSync(path);
  }
  const slowMs = took.sort((a, b) => b - a)[2]!;
  return { slowMs, syncing: slowMs <= LOOP_MS ? "inline" : "off-loop" };
}

/**
 * Keeps the file longer than what is written by padding it with zeros, which no reader takes for a line. A
 * sync within a file that does not grow spares the file system's own journal; on ext4 that halves its time
 * and CPU.
 */
function openFile(path: string, policy: Pick<SyncPolicy, "onLoop" | "took">): DiskFile {
  const fd = openSync(path, "a+", 0o600);
  closeSync(fd);
  // Not in append mode: Linux would then ignore the position of each write, and a torn tail could not be
  // overwritten.
  const file = openSync(path, "r+", 0o600);
  let size = fstatSync(file).size;
  return {
    write(bytes, at) {
      writeAll(file, bytes, at);
      const end = at + bytes.length;
      if (end <= size) return;
      size = end;
      try {
        writeAll(file, AHEAD, end);
        size += AHEAD.length;
      } catch {
        // The disk had room for what was written, and no more.
      }
    },
    sync(lines) {
      const startMs = performance.now();
      if (policy.onLoop(lines, startMs)) {
        fdatasyncSync(file);
        const nowMs = performance.now();
        return policy.took(nowMs - startMs, nowMs);
      }
      return new Promise((resolve, reject) =>
        fdatasync(file, (error) => (error ? reject(error) : resolve())),
      );
    },
    truncate(to) {
      ftruncateSync(file, to);
      size = to;
    },
    close: () => closeSync(file),
  };
}

/** Longer padding stalls the sync that it goes with; shorter padding spares fewer. */
const AHEAD = new Uint8Array(256 * 1024);

function writeAll(file: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(file, bytes, done, bytes.length - done, at + done);
  }
}

async function syncOffLoop(path: string): Promise<void> {
  const fd = openSync(path, "r");
  try {
    await new Promise<void>((resolve, reject) => fsync(fd, (error) => (error ? reject(error) : resolve())));
  } finally {
    closeSync(fd);
  }
}

/** A file's bytes, or the names in a folder, are durable on return. */
export function syncPath(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Decides where to sync. On the event loop, a sync takes half the CPU and is done soonest, but everything
 * else stands still: right for a fast disk with few waiting. Otherwise it goes to a thread of Bun's pool. A
 * disk may become slow, and fast again, while the gateway runs, so every sync on the loop is measured. What is
 * measured also has the moments in which another process had the core: a few slow ones do not mean the disk.
 */
export class SyncPolicy {
  /** The last syncs on the loop, a bit each, 1 for a slow one. */
  private recent = 0;
  private awayMs = FIRST_AWAY_MS;
  private awayUntilMs: number;

  /** `slowMs` is how long a slow sync of this disk takes. Times are monotonic. */
  constructor(slowMs: number, nowMs: number) {
    this.awayUntilMs = nowMs;
    if (slowMs > LOOP_MS) this.leave(nowMs);
  }

  /** Whether a sync that `lines` of the journal wait for is to be done on the loop. */
  onLoop(lines: number, nowMs: number): boolean {
    return lines < MANY_LINES && nowMs >= this.awayUntilMs;
  }

  /** A sync on the loop took `ms`. */
  took(ms: number, nowMs: number): void {
    this.recent = ((this.recent << 1) | (ms > LOOP_MS ? 1 : 0)) & LAST_EIGHT;
    if (this.recent === 0) this.awayMs = FIRST_AWAY_MS;
    if (slowOnes(this.recent) >= MANY_SLOW) this.leave(nowMs);
  }

  private leave(nowMs: number): void {
    this.awayUntilMs = nowMs + this.awayMs;
    this.awayMs = Math.min(2 * this.awayMs, MAX_AWAY_MS);
    this.recent = BACK;
  }
}

/** Where a sync takes longer than this, it would stall every stream. */
const LOOP_MS = 0.5;
/** When this many lines wait, the loop has enough else to do in the meantime. */
const MANY_LINES = 16;
const LAST_EIGHT = 0xff;
/** Slow ones among the last eight. */
const MANY_SLOW = 4;
/** As if the last two had been slow: after a pause, two more are enough to leave again. */
const BACK = 0b11;
/** Then one is tried on the loop again; each pause is twice as long, until eight in a row were fast. */
const FIRST_AWAY_MS = 1_000;
const MAX_AWAY_MS = 60_000;

function slowOnes(recent: number): number {
  let count = 0;
  for (let left = recent; left > 0; left >>= 1) count += left & 1;
  return count;
}
