import { expect } from "bun:test";

/** Lists of one model at 1 and 10 USD; which factors they have changes with each round. */
export const listsAt = (round: number): string => `
price_lists:
  one: [{ model: "*", factor: ${round % 2 === 0 ? 0.5 : 0.7} }]
  two: [{ model: "new/*", factor: ${round % 2 === 0 ? 3 : 5} }]
`;
const FACTORS: Readonly<Record<string, readonly number[]>> = { none: [1], one: [0.5, 0.7], two: [3, 5] };

/** The list that a customer has in each round. */
export const listIn = (round: number): string | null => [null, "one", "two"][round % 3]!;

interface ListedReceipt {
  readonly price: { readonly version: string; readonly input: number; readonly output: number };
  readonly price_list?: string;
  readonly tokens: { readonly input: number; readonly output: number };
  readonly cost_usd: number;
}

/** Derives every charge again from list, version and tokens; returns their sum in nano-dollars. */
export function sumOfListed(receipts: readonly ListedReceipt[]): number {
  const versions = new Map<string, object>();
  let sumNano = 0;
  for (const { price, price_list = "none", tokens, cost_usd } of receipts) {
    const factor = FACTORS[price_list]!.find((one) => price.input === one && price.output === 10 * one)!;
    const sold = { price_list, factor };
    // A version is one list's, at one price.
    expect(versions.get(price.version) ?? sold).toEqual(sold);
    versions.set(price.version, sold);
    const nano = Math.ceil(Math.round((tokens.input + 10 * tokens.output) * factor * 1e6) / 1e3);
    expect(Math.round(cost_usd * 1e9)).toBe(nano);
    sumNano += nano;
  }
  // The models' own prices have one version, and each list two.
  expect(versions.size).toBe(5);
  return sumNano;
}
