import { assert } from "./assert.ts";

/**
 * Money is an integer count of nano-dollars (1 USD = 1,000,000,000). A JavaScript number holds integers
 * exactly up to 2^53, and amounts in USD with nine decimals up to $8,388,608, from which on two neighbouring numbers are
 * more than a nano-dollar apart: every balance, cap and charge is kept below `MAX_NANO_USD`. Sums over many balances use
 * bigint instead.
 */
export type NanoUsd = number & { readonly __unit: "NanoUsd" };

/** Nano-dollars per million tokens: $0.15 per million is 150,000,000. */
export type NanoPerMillion = number & { readonly __unit: "NanoPerMillion" };

export const NANO_PER_USD = 1_000_000_000;
export const MAX_NANO_USD = (8_000_000 * NANO_PER_USD) as NanoUsd;
export const ZERO_USD = 0 as NanoUsd;

export function nanoUsd(value: number): NanoUsd {
  assert(Number.isSafeInteger(value), `not an integer amount of nano-dollars: ${value}`);
  return value as NanoUsd;
}

/** Reads an amount in USD with at most nine decimals; null when it is not one, or out of range. */
export function nanoFromUsd(usd: number): NanoUsd | null {
  if (!Number.isFinite(usd)) return null;
  const nano = Math.round(usd * NANO_PER_USD);
  // What is not 0 must not become it: of a cap, that is another meaning.
  if (Math.abs(nano) > MAX_NANO_USD || (nano === 0 && usd !== 0) || !hasNineDecimals(usd, nano)) return null;
  return nano as NanoUsd;
}

/** The amount as a JSON number in USD. */
export const usdFromNano = (nano: NanoUsd): number => nano / NANO_PER_USD;

/** The same as text, which never has an exponent: "0.25", "0.000000001". */
export const decimalUsd = (nano: NanoUsd): string =>
  usdFromNano(nano)
    .toFixed(9)
    .replace(/\.?0+$/, "");

/** "$1.25", "-$0.0000075": at least cents, at most nine decimals, no exponent. Sums over balances are a bigint. */
export function formatUsd(nano: NanoUsd | bigint): string {
  const digits = String(nano).replace("-", "").padStart(10, "0");
  const decimals = digits.slice(-9).replace(/0{1,7}$/, "");
  return `${nano < 0 ? "-" : ""}$${digits.slice(0, -9)}.${decimals}`;
}

/** A price in USD per million tokens, as config files and catalogues write it; null when it cannot be one. */
export function pricePerMillion(usd: number): NanoPerMillion | null {
  if (!Number.isFinite(usd) || usd < 0 || usd > 1_000_000) return null;
  return Math.round(usd * NANO_PER_USD) as NanoPerMillion;
}

/**
 * tokens × price, in femto-dollars (1e-15 USD), unrounded, so that one rounding at the end serves a whole
 * charge. Returned as a number while the product is exact in one, which it is below $9 a line.
 */
export function lineFemto(tokens: number, price: NanoPerMillion): number | bigint {
  const product = tokens * price;
  return product <= Number.MAX_SAFE_INTEGER ? product : BigInt(tokens) * BigInt(price);
}

/**
 * Adds lines exactly and rounds once, up: a started nano-dollar is a nano-dollar. Never more than
 * `MAX_NANO_USD`, which no balance has either: the most expensive prices and the largest reports must not end a
 * request in an assertion.
 */
export function sumLines(...lines: (number | bigint)[]): NanoUsd {
  let total = 0;
  for (const line of lines) {
    if (typeof line === "bigint") return sumLarge(lines);
    total += line;
  }
  return total <= Number.MAX_SAFE_INTEGER ? (Math.ceil(total / 1_000_000) as NanoUsd) : sumLarge(lines);
}

function sumLarge(lines: (number | bigint)[]): NanoUsd {
  let total = 0n;
  for (const line of lines) total += BigInt(line);
  const nano = (total + 999_999n) / 1_000_000n;
  return nano < MAX_NANO_USD ? nanoUsd(Number(nano)) : MAX_NANO_USD;
}

function hasNineDecimals(usd: number, nano: number): boolean {
  return Math.abs(usd * NANO_PER_USD - nano) <= Math.max(1e-6, Math.abs(nano) * Number.EPSILON * 4);
}
