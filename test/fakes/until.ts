/**
 * Waits until `what` is true, for at most 45 s; an error counts as false. For what happens in other
 * processes, which nothing announces.
 */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    try {
      if (await what()) return;
    } catch {
      // Not yet.
    }
    await Bun.sleep(PAUSE_MS);
  }
  throw new Error(`it did not come about within ${(ROUNDS * PAUSE_MS) / 1_000} s`);
}

const ROUNDS = 450;
const PAUSE_MS = 100;
