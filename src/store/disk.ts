import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

/** One folder, as the journal uses it. The simulator's disk tears writes and forgets what was not synced. */
export interface Disk {
  list(): string[];
  read(name: string): Uint8Array;
  /** Creates the file where it does not exist; its name is durable on return. */
  open(name: string): DiskFile;
  remove(name: string): void;
}

export interface DiskFile {
  /** Writes all of it, or throws. */
  write(bytes: Uint8Array, at: number): void;
  /** What was written is durable when this returns, or when its promise resolves. */
  sync(): void | Promise<void>;
  truncate(size: number): void;
  close(): void;
}

export function folderDisk(folder: string, syncing: "inline" | "off-loop"): Disk {
  return {
    list: () => readdirSync(folder),
    read: (name) => readFileSync(join(folder, name)),
    open(name) {
      const file = openFile(join(folder, name), syncing);
      syncFolder(folder);
      return file;
    },
    remove: (name) => unlinkSync(join(folder, name)),
  };
}

/** Where a sync takes longer than this, it would stall every stream; it then goes to a thread of Bun's pool. */
const INLINE_SYNC_MS = 0.5;
const PROBE_ROUNDS = 20;

/**
 * Measures the folder's `fdatasync` with small appends: the choice between syncing on the event loop, which costs half
 * the CPU, and off it, which never blocks. The third-slowest of the rounds decides.
 */
export function probeSync(folder: string): { syncing: "inline" | "off-loop"; slowMs: number } {
  const path = join(folder, `probe-${process.pid}`);
  const fd = openSync(path, "w", 0o600);
  const took: number[] = [];
  try {
    const line = new Uint8Array(512);
    for (let round = 0; round < PROBE_ROUNDS; round++) {
      const start = performance.now();
      writeSync(fd, line);
      fdatasyncSync(fd);
      took.push(performance.now() - start);
    }
  } finally {
    closeSync(fd);
    unlinkSync(path);
  }
  const slowMs = took.sort((a, b) => b - a)[2]!;
  return { syncing: slowMs <= INLINE_SYNC_MS ? "inline" : "off-loop", slowMs };
}

function openFile(path: string, syncing: "inline" | "off-loop"): DiskFile {
  const fd = openSync(path, "a+", 0o600);
  closeSync(fd);
  // Not in append mode: Linux would then ignore the position of each write, and a torn tail could not be overwritten.
  const file = openSync(path, "r+", 0o600);
  return {
    write(bytes, at) {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(file, bytes, done, bytes.length - done, at + done);
      }
    },
    sync() {
      if (syncing === "inline") return fdatasyncSync(file);
      return new Promise((resolve, reject) =>
        fdatasync(file, (error) => (error ? reject(error) : resolve())),
      );
    },
    truncate: (size) => ftruncateSync(file, size),
    close: () => closeSync(file),
  };
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
