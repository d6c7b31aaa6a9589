/**
 * Loaded into a process before its own code (bench/allocations): writes what is on its heap, by type, into a
 * file. SIGUSR2 collects first; SIGUSR1 does not, so that what was allocated since is counted although nobody
 * holds it any more.
 */

import { fullGC, heapStats } from "bun:jsc";
import { renameSync, writeFileSync } from "node:fs";

function write(): void {
  const file = process.env.ALLOCATIONS_FILE!;
  writeFileSync(`${file}.new`, JSON.stringify(heapStats().objectTypeCounts));
  renameSync(`${file}.new`, file);
}

process.on("SIGUSR1", write);
process.on("SIGUSR2", () => {
  fullGC();
  write();
});
