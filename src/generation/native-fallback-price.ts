import type { Price, Rates } from "../catalog/price.ts";
import { highestWrite } from "../catalog/price.ts";
import { type Candidate, ceilingAt } from "../routing/candidate.ts";
import { chainOf } from "../routing/native-fallbacks.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { NanoPerMillion } from "../units/usd.ts";
import { reachedRates } from "./billed-tokens.ts";

/**
 * What a request is held at whose host may run several models, one after the other, and bills each: a token of the
 * prompt costs what it costs at all of them, since each reads the prompt. A token of the answer costs what it costs at
 * all of them, since each may write up to its ceiling, and is read by those that come after who wrote it. The rates are
 * those of the step that the prompt can reach with the answer so far behind it.
 */
export function nativeFallbackPrice(
  candidate: Candidate,
  request: Pick<GenerationRequest, "maxOutputTokens" | "promptRetentions">,
  promptBound: number,
): Price {
  const chain = chainOf(candidate);
  let reached = promptBound;
  const rates = chain.map((one) => {
    const own = reachedRates(one.price, reached);
    const { maxOutputTokens } = one.model;
    reached += Math.min(ceilingAt(one, request) ?? maxOutputTokens, maxOutputTokens);
    return own;
  });
  const read = rates.map((one) => readRate(one, request));
  // A later model reads what each of those before it wrote.
  const reread = read.map((rate, position) => rate * position);
  const prompt = sumOf(read);
  return {
    input: prompt,
    cacheRead: prompt,
    cacheWrite: prompt,
    output: sumOf([...rates.map(({ output }) => output), ...reread]),
  };
}

/** The most expensive that a token of the prompt may be. */
const readRate = (
  rates: Rates,
  { promptRetentions }: Pick<GenerationRequest, "promptRetentions">,
): NanoPerMillion => {
  const { input, cacheRead, audioInput = input } = rates;
  return Math.max(input, audioInput, cacheRead, highestWrite(rates, promptRetentions)) as NanoPerMillion;
};

const sumOf = (rates: readonly number[]): NanoPerMillion =>
  rates.reduce((sum, rate) => sum + rate, 0) as NanoPerMillion;
