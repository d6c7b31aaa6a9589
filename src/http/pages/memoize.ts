import type { Clock } from "../../units/clock.ts";

/**
 * The same answer for whoever asks within so many milliseconds: anybody may load a public page as often as they like, and
 * what takes milliseconds to make would be made for each. One that could not be made is not remembered.
 */
export function memoize<T>(
  make: () => Promise<T>,
  ms: number,
  clock: Pick<Clock, "elapsedMs">,
): () => Promise<T> {
  let made: { readonly atMs: number; readonly answer: Promise<T> } | null = null;
  return () => {
    const nowMs = clock.elapsedMs();
    if (made === null || nowMs - made.atMs >= ms) {
      const latest = { atMs: nowMs, answer: make() };
      latest.answer.catch(() => {
        if (made === latest) made = null;
      });
      made = latest;
    }
    return made.answer;
  };
}
