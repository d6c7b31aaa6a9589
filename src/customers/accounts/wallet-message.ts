import type { EpochMs } from "../../units/clock.ts";
import type { SecretHash } from "../../units/secret-hash.ts";

/** A message on its way to being signed, by its hash. */
export interface IssuedMessage {
  readonly hash: SecretHash;
  readonly address: HexAddress;
  readonly chainId: number;
  readonly expiresAt: EpochMs;
}

export interface SignedMessage {
  readonly message: string;
  readonly signature: `0x${string}`;
}

export type HexAddress = `0x${string}`;

/**
 * What an account knows its wallet by: the address of a key pair, which has one owner on every chain; or, for
 * a contract, `eip155:<chain>:<address>`, because another party may deploy to the same
 * address on another chain.
 */
export type WalletName = string & { readonly __unit: "WalletName" };
