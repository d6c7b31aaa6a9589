import type { InUse } from "../../src/server/in-use.ts";

/**
 * Waits until nothing is held, taken or waited for, and fails with what is left. Requests that nobody waits for may
 * still be ending, and a slow machine takes long for that; what leaks never ends.
 */
export async function untilNothingIsInUse(inUse: () => readonly InUse[]): Promise<void> {
  const giveUpMs = performance.now() + waitMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    const left = inUse().filter(([, count]) => count !== 0);
    if (left.length === 0) return;
    if (performance.now() > giveUpMs) {
      waitMs = SHORT_MS;
      throw new Error(sentence(left));
    }
    await Bun.sleep(pauseMs);
  }
}

const sentence = (left: readonly InUse[]): string =>
  `No request is open any more, and these were not given back: ${left
    .map(([what, count]) => `${what}: ${count}`)
    .join(", ")}.`;

const LONG_MS = 20_000;
/** After a first leak: others of its kind fail every test of a file. */
const SHORT_MS = 1_000;
let waitMs = LONG_MS;

const MAX_PAUSE_MS = 100;
