import type { ByRetention } from "./price.ts";

/**
 * Tokens by kind, as priced. `input`, `cacheRead` and `cacheWrite` are disjoint and sum to the prompt; `reasoning` is a part of
 * `output`.
 */
export interface Tokens {
  readonly input: number;
  /** The part of `input` that is audio; absent where that is not known. */
  readonly audioInput?: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The parts of `cacheWrite` whose retention is known. */
  readonly cacheWrites?: ByRetention<number>;
  readonly output: number;
  /** The part of `output` that is audio; absent where that is not known. */
  readonly audioOutput?: number;
  readonly reasoning: number;
  /** The longest prompt, if the host read several one after the other; absent: there was one. */
  readonly longestPrompt?: number;
}

export const NO_TOKENS: Tokens = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** All tokens of the prompt. */
export const promptOf = ({
  input,
  cacheRead,
  cacheWrite,
}: Pick<Tokens, "input" | "cacheRead" | "cacheWrite">): number => input + cacheRead + cacheWrite;
