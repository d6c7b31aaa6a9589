/** Fills the array with random bytes. Secrets need a cryptographic one; the simulator hands in a seeded one. */
export type RandomBytes = (into: Uint8Array) => Uint8Array;

export const systemRandom: RandomBytes = (into) => crypto.getRandomValues(into as Uint8Array<ArrayBuffer>);
