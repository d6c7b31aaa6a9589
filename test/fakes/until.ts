/**
 * Waits until `what` is true, for at most two minutes; an error counts as false. For what happens in other
 * processes, which nothing announces.
 */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpMs = performance.now() + MAX_MS;
  for (let pauseMs = 1; performance.now() < giveUpMs; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      if (await what()) return;
    } catch {
      // Not yet.
    }
    await Bun.sleep(pauseMs);
  }
  throw new Error(`it did not come about within ${MAX_MS / 1_000} s`);
}

const MAX_MS = 120_000;
const MAX_PAUSE_MS = 100;
