import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { EpochMs } from "../../../units/clock.ts";
import type { Address } from "./network.ts";
import { type PaymentRequirements, VALID_S } from "./offer.ts";

/**
 * A transfer that its payer has signed (EIP-3009): its holder can have it carried out, once, until it runs out.
 * Numbers are decimal, as x402 sends them.
 */
export interface Authorization {
  readonly from: Address;
  readonly to: Address;
  readonly value: string;
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: `0x${string}`;
}

/** The header `payment-signature`, of x402 version 2, scheme `exact`. */
export interface SignedPayment {
  readonly accepted: PaymentRequirements;
  readonly authorization: Authorization;
  readonly signature: `0x${string}`;
}

/** The payment in a header; a sentence where it is none that anybody could have been offered. */
export function readPayment(header: string): SignedPayment | string {
  const read = header.length > MAX_HEADER ? null : decoded(header);
  if (!Value.Check(Payload, read)) return NO_PAYMENT;
  const { accepted, payload } = read;
  const { authorization, signature } = payload;
  return {
    accepted: {
      scheme: "exact",
      network: accepted.network as PaymentRequirements["network"],
      amount: accepted.amount,
      asset: lower(accepted.asset),
      payTo: lower(accepted.payTo),
    },
    authorization: {
      from: lower(authorization.from),
      to: lower(authorization.to),
      value: authorization.value,
      validAfter: authorization.validAfter,
      validBefore: authorization.validBefore,
      nonce: lower(authorization.nonce),
    },
    signature: withRecoveryId(signature as `0x${string}`),
  };
}

/**
 * Hardware ends a signature in 0 or 1, tokens want 27 or 28. A contract wallet's signature of the same length begins
 * with an address, and its last byte has another meaning.
 */
function withRecoveryId(signature: `0x${string}`): `0x${string}` {
  const isPlain = signature.length === PLAIN_SIGNATURE && !signature.startsWith(ADDRESS_PADDING);
  const last = Number.parseInt(signature.slice(-2), 16);
  return isPlain && last < 2 ? `0x${signature.slice(2, -2)}${(27 + last).toString(16)}` : signature;
}

/** 65 bytes in hexadecimal. */
export const PLAIN_SIGNATURE = 2 + 65 * 2;
const ADDRESS_PADDING = `0x${"00".repeat(12)}`;

/** Why the authorization does not pay what was accepted; null where it does. */
export function mismatch({ accepted, authorization }: SignedPayment, now: EpochMs): string | null {
  if (authorization.to !== accepted.payTo)
    return "The authorization pays another address than the offer names.";
  if (authorization.value !== accepted.amount)
    return "The authorization is for another amount than the offer's.";
  const leftMs = Number(authorization.validBefore) * 1_000 - now;
  if (leftMs < MIN_LEFT_MS) return "The authorization has run out, or is about to.";
  if (leftMs > MAX_LEFT_MS) return "The authorization is valid for longer than the offer allows.";
  return null;
}

/** What the payment is known by: a token takes a payer's nonce once. */
export const externalOf = ({ accepted, authorization }: SignedPayment): string =>
  [accepted.network, accepted.asset, authorization.from, authorization.nonce].join("/");

/** To get it into a block. */
const MIN_LEFT_MS = 20_000;
/** Clocks differ. */
const MAX_LEFT_MS = VALID_S * 1_000 + 600_000;

/** A wallet's signature may be some kilobytes, where a contract checks it. */
const MAX_HEADER = 16_384;

const NO_PAYMENT =
  "`payment-signature` is no payment of x402 version 2, scheme `exact`, by EIP-3009, for what the header `payment-required` offers.";

/** Written in one way: the chain's numbers are compared with it. */
const decimal = Type.String({ pattern: "^(0|[1-9][0-9]{0,39})$" });
const address = Type.String({ pattern: "^0x[0-9a-fA-F]{40}$" });

const Payload = Type.Object({
  x402Version: Type.Literal(2),
  accepted: Type.Object({
    scheme: Type.Literal("exact"),
    network: Type.String({ pattern: "^eip155:[0-9]+$" }),
    amount: decimal,
    asset: address,
    payTo: address,
  }),
  payload: Type.Object({
    authorization: Type.Object({
      from: address,
      to: address,
      value: decimal,
      validAfter: decimal,
      validBefore: decimal,
      nonce: Type.String({ pattern: "^0x[0-9a-fA-F]{64}$" }),
    }),
    signature: Type.String({ pattern: "^0x([0-9a-fA-F]{2})+$" }),
  }),
});

function decoded(header: string): unknown {
  try {
    return JSON.parse(Buffer.from(header, "base64").toString("utf8"));
  } catch {
    return null;
  }
}

const lower = (hex: string): Address => hex.toLowerCase() as Address;
