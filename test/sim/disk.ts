import type { Disk, DiskFile } from "../../src/store/journal/disk.ts";
import type { Random } from "./random.ts";

/**
 * A disk with a page cache. What was written but not synced is at the disk's mercy when the machine stops: it
 * may be there, not be there, or be there up to some byte, later writes without earlier ones included. Files
 * whose creation was not synced with their folder are kept, because `open` promises that.
 */
export class SimulatedDisk implements Disk {
  private readonly files = new Map<string, SimulatedFile>();
  /** What the next writes and syncs do. */
  mood: "fine" | "full" | "read-only" = "fine";
  /** False: a sync never comes back with a result, as when the power goes during it. */
  syncing = true;
  /** Who answers syncs after a while; null where each is done on return. */
  syncsLater: ((done: () => void) => void) | null = null;

  list(): string[] {
    return [...this.files.keys()];
  }

  read(name: string): Uint8Array {
    return this.files.get(name)!.read();
  }

  open(name: string, from?: string): DiskFile {
    if (this.mood === "read-only") throw new Error("EROFS: read-only file system");
    if (from !== undefined) this.rename(from, name);
    const file = this.files.get(name) ?? new SimulatedFile(this);
    this.files.set(name, file);
    return file;
  }

  rename(name: string, to: string): void {
    this.files.set(to, this.files.get(name)!);
    this.files.delete(name);
  }

  keep(name: string, as: string): void {
    const kept = new SimulatedFile(this);
    kept.write(this.read(name), 0);
    this.files.set(as, kept);
  }

  remove(name: string): void {
    this.files.delete(name);
  }

  /**
   * The machine stops, and unsynced writes may be lost. A process that is killed leaves them in the page
   * cache.
   */
  crash(random: Random, kind: "process" | "power"): void {
    if (kind === "power") for (const file of this.files.values()) file.crash(random);
  }
}

class SimulatedFile implements DiskFile {
  private durable = new Uint8Array();
  private dirty: { bytes: Uint8Array; at: number }[] = [];

  constructor(private readonly disk: SimulatedDisk) {}

  write(bytes: Uint8Array, at: number): void {
    if (this.disk.mood === "read-only") throw new Error("EROFS: read-only file system");
    if (this.disk.mood === "full") {
      // A full disk takes what fits.
      this.dirty.push({ bytes: copied(bytes.subarray(0, bytes.length >> 1)), at });
      throw new Error("ENOSPC: no space left on device");
    }
    this.dirty.push({ bytes: copied(bytes), at });
  }

  sync(): void | Promise<void> {
    if (this.disk.mood !== "fine") throw new Error("EIO: sync failed");
    const { syncing, syncsLater } = this.disk;
    if (!syncing) return new Promise(() => {});
    if (syncsLater === null) return this.settle();
    return new Promise((resolve) =>
      syncsLater(() => {
        this.settle();
        resolve();
      }),
    );
  }

  private settle(): void {
    for (const write of this.dirty) this.durable = overlay(this.durable, write.bytes, write.at);
    this.dirty = [];
  }

  truncate(size: number): void {
    if (this.disk.mood === "read-only") throw new Error("EROFS: read-only file system");
    this.settle();
    this.durable = this.durable.slice(0, size);
  }

  close(): void {}

  read(): Uint8Array {
    this.settle();
    return this.durable.slice();
  }

  crash(random: Random): void {
    for (const { bytes, at } of this.dirty) {
      if (random.chance(0.7)) {
        for (const piece of survived(bytes, random))
          this.durable = overlay(this.durable, piece.bytes, at + piece.at);
      }
    }
    this.dirty = [];
  }
}

/** The journal writes from one buffer again and again, and a slice of a Buffer is a view of it. */
const copied = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);

/**
 * What of an unsynced write reached the disk: its beginning, or all of it but for some sectors, which stay as
 * they were.
 */
function survived(bytes: Uint8Array, random: Random): { bytes: Uint8Array; at: number }[] {
  const to = random.below(bytes.length + 1);
  const beginning = { bytes: bytes.slice(0, to), at: 0 };
  if (random.chance(0.5)) return [beginning];
  const from = to + 1 + random.below(SECTOR_BYTES);
  return [beginning, { bytes: bytes.slice(from), at: from }];
}

const SECTOR_BYTES = 512;

function overlay(content: Uint8Array, bytes: Uint8Array, at: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(Math.max(content.length, at + bytes.length));
  whole.set(content);
  whole.set(bytes, at);
  return whole;
}
