import { afterAll, afterEach } from "bun:test";
import { endAll } from "./at-end.ts";
import { RUN_MARK } from "./environment.ts";
import { endLeftovers } from "./runner/leftovers.ts";

// Hooks of a preloaded file run once, behind the last test of all files.
afterAll(endAll, 600_000);

/** The collector spares itself work as long as the machine has memory, which test processes next to each other share. */
const MAX_GROWTH_BYTES = 64 * 1024 * 1024;
let collectedBytes = process.memoryUsage.rss();
afterEach(() => {
  if (process.memoryUsage.rss() < collectedBytes + MAX_GROWTH_BYTES) return;
  Bun.gc(true);
  collectedBytes = process.memoryUsage.rss();
});

/** What the tests of a plain `bun test` leave running ends with it, as the runner ends it. */
if (process.env[RUN_MARK] === undefined) {
  const mark = crypto.randomUUID();
  process.env[RUN_MARK] = mark;
  afterAll(() => void endLeftovers(mark));
}
