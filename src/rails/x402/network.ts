import type { NanoUsd } from "../../units/usd.ts";

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
  /** How long a request waits for its payment. */
  readonly waitMs: number;
}

/** In lower case, so that equal ones are equal. */
export type Address = `0x${string}`;
