import {
  type ByRetention,
  chargedWriteRate,
  highestWrite,
  type Price,
  type Rates,
  RETENTIONS,
  ratesAt,
  writesWithin,
} from "../catalog/price.ts";
import { promptOf, type Tokens } from "../catalog/tokens.ts";
import { lineFemto, type NanoUsd, sumLines } from "../units/usd.ts";

export const ratesFor = (price: Price, tokens: Tokens): Rates =>
  ratesAt(price, tokens.longestPrompt ?? promptOf(tokens));

/** What the tokens cost: exact products, one rounding, up to the next nano-dollar. */
export function costOf(tokens: Tokens, rates: Rates): NanoUsd {
  const { audioInput = 0, audioOutput = 0, cacheWrites } = tokens;
  const lines = [
    lineFemto(tokens.input - audioInput, rates.input),
    lineFemto(audioInput, rates.audioInput ?? rates.input),
    lineFemto(tokens.cacheRead, rates.cacheRead),
    lineFemto(tokens.output - audioOutput, rates.output),
    lineFemto(audioOutput, rates.audioOutput ?? rates.output),
  ];
  let plainWrites = tokens.cacheWrite;
  if (cacheWrites !== undefined)
    for (const retention of RETENTIONS) {
      const written = cacheWrites[retention] ?? 0;
      plainWrites -= written;
      if (written > 0) lines.push(lineFemto(written, chargedWriteRate(rates, retention)));
    }
  return sumLines(lineFemto(plainWrites, rates.cacheWrite), ...lines);
}

/**
 * As many of the tokens as cost at most `most`. The answer is cut first, because it was written last. So a receipt's cost is
 * always its tokens at its price.
 */
export function within(tokens: Tokens, rates: Rates, most: NanoUsd): Tokens {
  let left = tokens;
  for (const kind of LAST_FIRST) {
    if (costOf(left, rates) <= most) break;
    let fits = 0;
    let tooMany = left[kind];
    while (tooMany - fits > 1) {
      const middle = Math.floor((fits + tooMany) / 2);
      if (costOf(only(left, kind, middle), rates) <= most) fits = middle;
      else tooMany = middle;
    }
    left = only(left, kind, fits);
  }
  return left;
}

const LAST_FIRST = ["output", "input", "cacheWrite", "cacheRead"] as const;

/** The tokens with `count` of one kind, and parts of that kind cut to it. */
function only(tokens: Tokens, kind: (typeof LAST_FIRST)[number], count: number): Tokens {
  const fewer = { ...tokens, [kind]: count };
  const { audioInput, audioOutput, cacheWrites } = fewer;
  return {
    ...fewer,
    reasoning: Math.min(fewer.reasoning, fewer.output),
    ...(audioInput === undefined ? {} : { audioInput: Math.min(audioInput, fewer.input) }),
    ...(audioOutput === undefined ? {} : { audioOutput: Math.min(audioOutput, fewer.output) }),
    ...(cacheWrites === undefined ? {} : { cacheWrites: writesWithin(cacheWrites, fewer.cacheWrite) }),
  };
}

/** What a prompt's price depends on: a bound on its tokens, the cache retentions that it names, whether it may have audio. */
export interface PromptCharge {
  readonly bound: number;
  readonly retentions: ByRetention<unknown>;
  readonly hasAudio: boolean;
}

export const NO_PROMPT: PromptCharge = { bound: 0, retentions: {}, hasAudio: false };

/** The most that the prompt and `outputCeiling` tokens of answer can cost at these rates. */
export function worstCase(prompt: PromptCharge, outputCeiling: number, rates: Rates): NanoUsd {
  return sumLines(promptFemto(prompt, rates), lineFemto(outputCeiling, rates.output));
}

/** The price for holds if any token of the answer may be audio. */
export const withAudioAnswer = (price: Price): Price => {
  const { above } = price;
  return {
    ...price,
    output: spoken(price),
    above: above?.map((step) => ({ ...step, output: spoken(step) })),
  };
};

const spoken = ({ output, audioOutput = output }: Pick<Rates, "output" | "audioOutput">) =>
  max(output, audioOutput);

/** The largest output ceiling whose worst case is within `available`; 0 if not even the prompt is. */
export function affordableOutput(
  available: NanoUsd,
  prompt: PromptCharge,
  choices: number,
  rates: Rates,
): number {
  const leftFemto = BigInt(available) * FEMTO_PER_NANO - BigInt(promptFemto(prompt, rates));
  if (leftFemto < 0) return 0;
  if (rates.output === 0) return Number.MAX_SAFE_INTEGER;
  return Number(leftFemto / (BigInt(rates.output) * BigInt(choices)));
}

function promptFemto({ bound, retentions, hasAudio }: PromptCharge, rates: Rates): number | bigint {
  const { input, cacheRead, audioInput = input } = rates;
  const read = max(max(input, cacheRead), hasAudio ? audioInput : input);
  return lineFemto(bound, max(read, highestWrite(rates, retentions)));
}

const FEMTO_PER_NANO = 1_000_000n;
const max = <N extends number>(a: N, b: N): N => (a > b ? a : b);
