import type { NanoUsd } from "../../../units/usd.ts";
import { type Address, type Token, unitsOf, type X402Network } from "./network.ts";

/** What one offer asks for, as x402 calls it. */
export interface PaymentRequirements {
  readonly scheme: "exact";
  readonly network: X402Network["network"];
  /** Units of the token. */
  readonly amount: string;
  readonly asset: Address;
  readonly payTo: Address;
}

/** A network whose node has reported its token. */
export interface OfferedNetwork {
  readonly network: X402Network;
  readonly token: Token;
}

/**
 * The header `payment-required`: every amount on every network, in this order, because clients take the first that they
 * may pay. Null where nothing can be offered.
 */
export function paymentRequired(
  amounts: readonly NanoUsd[],
  networks: readonly OfferedNetwork[],
  { url, error }: { readonly url: string; readonly error: string },
): string | null {
  const accepts = amounts.flatMap((amount) =>
    networks.map(({ network, token }) => ({
      ...requirements(amount, network, token),
      maxTimeoutSeconds: VALID_S,
      extra: { name: token.name, version: token.version },
    })),
  );
  if (accepts.length === 0) return null;
  const resource = {
    url,
    description: "Prepaid credit for the balance of the API key",
    mimeType: "application/json",
  };
  return base64({ x402Version: 2, error, resource, accepts });
}

/** Payers sign for this long. */
export const VALID_S = 300;

const requirements = (amount: NanoUsd, network: X402Network, token: Token): PaymentRequirements => ({
  scheme: "exact",
  network: network.network,
  amount: unitsOf(amount, token),
  asset: network.asset,
  payTo: network.payTo,
});

/** The header `payment-response`. */
export const paymentResponse = (paid: {
  readonly transaction: string;
  readonly network: string;
  readonly payer: string;
}): string => base64({ success: true, ...paid });

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
