import type { Clock } from "../../units/clock.ts";

/**
 * The same answer for all who request it while it is made and within so many milliseconds: anybody may load a public page as
 * often as they like, and what takes milliseconds to make would be made for each. One that could not be made is not
 * remembered.
 */
export function memoize<T>(
  make: () => Promise<T>,
  ms: number,
  clock: Pick<Clock, "elapsedMs">,
): () => Promise<T> {
  let made: { readonly atMs: number; readonly answer: Promise<T> } | null = null;
  let isUnderWay = false;
  return () => {
    const nowMs = clock.elapsedMs();
    if (made !== null && (isUnderWay || nowMs - made.atMs < ms)) return made.answer;
    isUnderWay = true;
    const answer = make();
    made = { atMs: nowMs, answer };
    answer.then(
      () => {
        isUnderWay = false;
      },
      () => {
        isUnderWay = false;
        made = null;
      },
    );
    return answer;
  };
}
