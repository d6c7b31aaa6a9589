import type { Price } from "../catalog/catalog.ts";
import { lineFemto, type NanoUsd, sumLines } from "../units/usd.ts";

/**
 * Tokens by kind, as priced: disjoint but for `audioInput` and `audioOutput`, the parts of `input` and
 * `output` that are sound, `cacheWrite1h`, the part of `cacheWrite` that is kept for an hour, and
 * `reasoning`, which is a part of `output`.
 */
export interface Tokens {
  readonly input: number;
  readonly audioInput?: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly cacheWrite1h?: number;
  readonly output: number;
  readonly audioOutput?: number;
  readonly reasoning: number;
}

export const NO_TOKENS: Tokens = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** What the tokens cost: exact products, one rounding, up to the next nano-dollar. */
export function costOf(tokens: Tokens, price: Price): NanoUsd {
  const { audioInput = 0, audioOutput = 0, cacheWrite1h = 0 } = tokens;
  return sumLines(
    lineFemto(tokens.input - audioInput, price.input),
    lineFemto(audioInput, price.audioInput ?? price.input),
    lineFemto(tokens.cacheRead, price.cacheRead),
    lineFemto(tokens.cacheWrite - cacheWrite1h, price.cacheWrite),
    lineFemto(cacheWrite1h, price.cacheWrite1h ?? price.cacheWrite),
    lineFemto(tokens.output - audioOutput, price.output),
    lineFemto(audioOutput, price.audioOutput ?? price.output),
  );
}

/**
 * The tokens, or as many of them as cost no more than `most`: less of the answer first, because that was made
 * last. A receipt shows what was charged for, and its cost is always that at its price.
 */
export function within(tokens: Tokens, price: Price, most: NanoUsd): Tokens {
  let left = tokens;
  for (const kind of LAST_FIRST) {
    if (costOf(left, price) <= most) break;
    const whole = left;
    let fits = 0;
    let tooMany = whole[kind];
    left = only(whole, kind, 0);
    if (costOf(left, price) > most) continue;
    while (tooMany - fits > 1) {
      const middle = Math.floor((fits + tooMany) / 2);
      if (costOf(only(whole, kind, middle), price) <= most) fits = middle;
      else tooMany = middle;
    }
    left = only(whole, kind, fits);
  }
  return left;
}

const LAST_FIRST = ["output", "input", "cacheWrite", "cacheRead"] as const;

/** Only so many of a kind; the parts of it that have names of their own are not more. */
function only(tokens: Tokens, kind: (typeof LAST_FIRST)[number], count: number): Tokens {
  const fewer = { ...tokens, [kind]: count };
  const { audioInput, audioOutput, cacheWrite1h } = fewer;
  return {
    ...fewer,
    reasoning: Math.min(fewer.reasoning, fewer.output),
    ...(audioInput === undefined ? {} : { audioInput: Math.min(audioInput, fewer.input) }),
    ...(audioOutput === undefined ? {} : { audioOutput: Math.min(audioOutput, fewer.output) }),
    ...(cacheWrite1h === undefined ? {} : { cacheWrite1h: Math.min(cacheWrite1h, fewer.cacheWrite) }),
  };
}

/**
 * What the price of a prompt depends on: a bound on its tokens, and whether some may be cached for an hour or
 * be audio.
 */
export interface PromptCharge {
  readonly bound: number;
  readonly cachedFor1h: boolean;
  readonly hasAudio: boolean;
}

export const NO_PROMPT: PromptCharge = { bound: 0, cachedFor1h: false, hasAudio: false };

/** The most that such a prompt and `outputCeiling` tokens of answer can cost at this price. */
export function worstCase(prompt: PromptCharge, outputCeiling: number, price: Price): NanoUsd {
  return sumLines(promptFemto(prompt, price), lineFemto(outputCeiling, price.output));
}

/**
 * A price that bounds all of these, kind by kind. Holds are taken before it is known which host will serve.
 */
export function dearest(prices: readonly Price[]): Price {
  return prices.reduce((bound, price) => ({
    input: max(bound.input, price.input),
    output: max(bound.output, price.output),
    cacheRead: max(bound.cacheRead, price.cacheRead),
    cacheWrite: max(bound.cacheWrite, price.cacheWrite),
    cacheWrite1h: max(bound.cacheWrite1h ?? bound.cacheWrite, price.cacheWrite1h ?? price.cacheWrite),
    audioInput: max(bound.audioInput ?? bound.input, price.audioInput ?? price.input),
    audioOutput: max(bound.audioOutput ?? bound.output, price.audioOutput ?? price.output),
  }));
}

/** The price to hold at, where any token of the answer may be sound. */
export const withAudioAnswer = (price: Price): Price => {
  const { output, audioOutput = output } = price;
  return audioOutput > output ? { ...price, output: audioOutput } : price;
};

/** The largest output ceiling whose worst case stays within `available`; 0 when not even the prompt does. */
export function affordableOutput(
  available: NanoUsd,
  prompt: PromptCharge,
  choices: number,
  price: Price,
): number {
  const leftFemto = BigInt(available) * FEMTO_PER_NANO - BigInt(promptFemto(prompt, price));
  if (leftFemto < 0) return 0;
  if (price.output === 0) return Number.MAX_SAFE_INTEGER;
  return Number(leftFemto / (BigInt(price.output) * BigInt(choices)));
}

function promptFemto({ bound, cachedFor1h, hasAudio }: PromptCharge, price: Price): number | bigint {
  const { input, cacheRead, cacheWrite, cacheWrite1h = cacheWrite, audioInput = input } = price;
  const read = max(max(input, cacheRead), hasAudio ? audioInput : input);
  return lineFemto(bound, max(read, max(cacheWrite, cachedFor1h ? cacheWrite1h : cacheWrite)));
}

const FEMTO_PER_NANO = 1_000_000n;
const max = <N extends number>(a: N, b: N): N => (a > b ? a : b);
