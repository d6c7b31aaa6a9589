import { assert } from "../../../units/assert.ts";
import { MAX_NANO_USD, NANO_PER_USD, type NanoUsd } from "../../../units/usd.ts";

/** A token on a chain in which credit is paid, and who moves it there. */
export interface X402Network {
  /** CAIP-2: `eip155:` and the chain's id. */
  readonly network: `eip155:${string}`;
  readonly asset: Address;
  readonly payTo: Address;
  /** A node of the operator's own: nothing is credited that it does not show. */
  readonly rpc: string;
  /** Either sends the transfer: a service, or an account of the gateway that holds nothing but gas. */
  readonly settledBy: { readonly facilitator: string } | { readonly gasKey: `0x${string}` };
  readonly confirmations: number;
  /** From this amount on, a payment is credited once its block is final. */
  readonly finalizedAbove: NanoUsd;
  /** How much gas of the gas account transfers that fail may use an hour before contract wallets are refused. */
  readonly wastedGasPerHour: number;
  /** How long a request waits for its payment. */
  readonly waitMs: number;
}

/** In lower case, so that equal ones are equal. */
export type Address = `0x${string}`;

export const chainIdOf = ({ network }: Pick<X402Network, "network">): number =>
  Number(network.slice("eip155:".length));

/** The token as its contract describes itself: what a wallet signs for. */
export interface Token {
  readonly name: string;
  readonly version: string;
  readonly decimals: number;
  readonly form: TransferForm;
}

/** How a token takes the signature of a transfer: whole, or of a plain account in three parts. */
export type TransferForm = "bytes" | "vrs";

/** Units of the token that are worth as much; amounts are whole cents, so none is lost. */
export function unitsOf(amount: NanoUsd, { decimals }: Token): string {
  const units = BigInt(amount) * 10n ** BigInt(decimals);
  assert(units % BigInt(NANO_PER_USD) === 0n, `${amount} nano-dollars are no whole units of the token`);
  return String(units / BigInt(NANO_PER_USD));
}

/** What so many units are worth, in whole nano-dollars; no more than is counted exactly. */
export function worthOf(units: string, { decimals }: Token): NanoUsd {
  const nano = (BigInt(units) * BigInt(NANO_PER_USD)) / 10n ** BigInt(decimals);
  return Math.min(Number(nano), MAX_NANO_USD) as NanoUsd;
}

/** Null where it is no whole number of nano-dollars, or more than is counted exactly. */
export function amountOf(units: string, { decimals }: Token): NanoUsd | null {
  const nano = BigInt(units) * BigInt(NANO_PER_USD);
  const one = 10n ** BigInt(decimals);
  if (nano % one !== 0n || nano / one > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  return Number(nano / one) as NanoUsd;
}
