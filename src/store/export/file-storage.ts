import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HOUR_MS } from "../../units/clock.ts";
import type { ExportStorage } from "./export-target.ts";

/** A folder. A file is under its name once it is whole and on the disk. */
export class FileStorage implements ExportStorage {
  private readonly partial: string;
  private files = 0;
  private isTidy = false;

  constructor(private readonly folder: string) {
    this.partial = join(folder, PARTIAL);
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.folder, name);
    await mkdir(this.partial, { recursive: true, mode: PRIVATE_FOLDER });
    await this.removeLeft();
    const created = await mkdir(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
    const writing = join(this.partial, `${process.pid}-${this.files++}`);
    const file = await open(writing, "w", PRIVATE);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(writing, path);
    const top = created === undefined ? dirname(path) : dirname(created);
    for (let folder = dirname(path); folder.length >= top.length; folder = dirname(folder))
      await syncFolder(folder);
  }

  /** What processes that died were writing. */
  private async removeLeft(): Promise<void> {
    if (this.isTidy) return;
    this.isTidy = true;
    for (const name of await readdir(this.partial)) {
      const path = join(this.partial, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
      if (mtimeMs < Date.now() - HOUR_MS) await rm(path, { force: true });
    }
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const PARTIAL = ".partial";
const PRIVATE_FOLDER = 0o750;
const PRIVATE = 0o640;
