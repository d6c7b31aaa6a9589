import type { Price } from "../catalog/catalog.ts";
import { lineFemto, type NanoUsd, sumLines } from "../units/usd.ts";

/** Tokens by kind, as priced: disjoint but for `reasoning`, which is a part of `output`. */
export interface Tokens {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

export const NO_TOKENS: Tokens = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** What the tokens cost: exact products, one rounding, up to the next nano-dollar. */
export function costOf(tokens: Tokens, price: Price): NanoUsd {
  return sumLines(
    lineFemto(tokens.input, price.input),
    lineFemto(tokens.cacheRead, price.cacheRead),
    lineFemto(tokens.cacheWrite, price.cacheWrite),
    lineFemto(tokens.output, price.output),
  );
}

/** The most that a prompt of at most `promptBound` tokens and `outputCeiling` tokens of answer can cost at this price. */
export function worstCase(promptBound: number, outputCeiling: number, price: Price): NanoUsd {
  return sumLines(lineFemto(promptBound, dearestPrompt(price)), lineFemto(outputCeiling, price.output));
}

/** The price that bounds all of them, kind by kind: holds are taken before it is known which host will serve. */
export function dearest(prices: readonly Price[]): Price {
  return prices.reduce((bound, price) => ({
    input: max(bound.input, price.input),
    output: max(bound.output, price.output),
    cacheRead: max(bound.cacheRead, price.cacheRead),
    cacheWrite: max(bound.cacheWrite, price.cacheWrite),
  }));
}

/** The largest output ceiling whose worst case stays within `available`; 0 when not even the prompt does. */
export function affordableOutput(
  available: NanoUsd,
  promptBound: number,
  choices: number,
  price: Price,
): number {
  const left = available - sumLines(lineFemto(promptBound, dearestPrompt(price)));
  if (left <= 0) return 0;
  if (price.output === 0) return Number.MAX_SAFE_INTEGER;
  return Math.floor(Math.floor((left / price.output) * 1_000_000) / choices);
}

const dearestPrompt = (price: Price) => max(max(price.input, price.cacheRead), price.cacheWrite);
const max = <N extends number>(a: N, b: N): N => (a > b ? a : b);
