import type { EpochMs } from "../units/clock.ts";

/** An account that pays for gas, on its chain. */
export interface GasAccountId {
  readonly chainId: number;
  readonly address: string;
}

/** One nonce of a gas account, and what was signed for it. */
export interface GasNonce {
  readonly nonce: number;
  /** External name of the payment that it carries out; null where a transaction only has to fill it. */
  readonly payment: string | null;
  /** Transactions, each ready to be broadcast and paying more than the one before. */
  readonly signed: readonly `0x${string}`[];
  readonly createdAt: EpochMs;
  /** When the latest was signed. */
  readonly signedAt: EpochMs;
}

/**
 * The nonces of gas accounts, shared by all processes that hold the key. A chain carries an account's transactions out in
 * the order of their nonces, so one that is lost stops all behind it: each is durable before it is broadcast, and kept until
 * its block is final.
 */
export interface GasLineStore {
  /** Adds the row if its nonce is the lowest free one from `mined` on: decided and written in one atomic step. */
  take(account: GasAccountId, row: GasNonce, mined: number): Promise<TakenNonce>;
  /** All that are kept, lowest first. */
  line(account: GasAccountId): Promise<readonly GasNonce[]>;
  /** Writes `next`; false where another process has changed the row since `present` was read. */
  replace(account: GasAccountId, present: GasNonce, next: GasNonce): Promise<boolean>;
  /** Drops the nonces below. */
  forget(account: GasAccountId, below: number): Promise<void>;
}

/** `known`: the payment has a nonce that is not mined yet. `full`: too many wait already. */
export type TakenNonce =
  | { readonly kind: "taken" }
  | { readonly kind: "known"; readonly row: GasNonce }
  | { readonly kind: "another"; readonly nonce: number }
  | { readonly kind: "full" };

/** Nonces of an account that may wait for a block at a time: nodes keep few transactions of one sender. */
export const MAX_QUEUED = 64;
