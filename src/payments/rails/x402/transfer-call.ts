import { type Authorization, PLAIN_SIGNATURE, type SignedPayment } from "./authorization.ts";
import type { TransferForm } from "./network.ts";

/** Most of what the package weighs is loaded only where payments by x402 are taken. */
export type Viem = typeof import("viem");

/** `transferWithAuthorization` as tokens declare it. Tokens from before contracts could sign know only the second. */
const TRANSFER_FORMS = {
  bytes:
    "function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, bytes signature)",
  vrs: "function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, uint8 v, bytes32 r, bytes32 s)",
} as const satisfies Record<TransferForm, string>;

/**
 * The call that carries a payment out: what is simulated and what is sent are both made here. Null where the token's form
 * has no room for the signature.
 */
export function transferCall(
  viem: Viem,
  form: TransferForm,
  { authorization, signature }: AuthorizedTransfer,
) {
  if (form === "vrs" && signature.length !== PLAIN_SIGNATURE) return null;
  return {
    abi: viem.parseAbi([TRANSFER_FORMS[form]]) as import("viem").Abi,
    functionName: "transferWithAuthorization",
    args: [...transferOf(authorization), ...(form === "bytes" ? [signature] : parts(signature))],
  };
}

/** In what nodes answer where a call used all of its gas, which some of them do not call a revert. */
export const OUT_OF_GAS = /out ?of ?gas/i;

export type AuthorizedTransfer = Pick<SignedPayment, "authorization" | "signature">;

const transferOf = ({ from, to, value, validAfter, validBefore, nonce }: Authorization) =>
  [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce] as const;

/** v, r and s of a signature of 65 bytes. */
const parts = (signature: string) => [
  Number.parseInt(signature.slice(130), 16),
  `0x${signature.slice(2, 66)}`,
  `0x${signature.slice(66, 130)}`,
];
