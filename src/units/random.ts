/**
 * Fills the array with random bytes. Secrets need a cryptographic one; the simulator hands in a seeded one.
 */
export type RandomBytes = (into: Uint8Array) => Uint8Array;

export const systemRandom: RandomBytes = (into) => crypto.getRandomValues(into as Uint8Array<ArrayBuffer>);

/** Numbers from 0, below 1, with 32 bits of chance each; randomness is fetched for many of them at once. */
export function chanceOf(random: RandomBytes): () => number {
  const drawn = new Uint32Array(DRAWN_AT_ONCE);
  let next = DRAWN_AT_ONCE;
  return () => {
    if (next === DRAWN_AT_ONCE) {
      random(new Uint8Array(drawn.buffer));
      next = 0;
    }
    return drawn[next++]! / 2 ** 32;
  };
}

const DRAWN_AT_ONCE = 256;
