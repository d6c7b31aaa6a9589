import type { SignedPayment } from "./authorization.ts";
import type { Address, Token } from "./network.ts";

/** Has a signed transfer carried out. What it answers is a hint, and what it does not answer says nothing. */
export interface Settler {
  settle(payment: SignedPayment, token: Token): Promise<SettleHint>;
  /**
   * Whether a transaction that this account sent may be the settler's for a payment that it was asked for. `isAnswerLost`:
   * it was asked, and what it did is not known. Null while that cannot be found out.
   */
  hasSent(sender: Address, isAnswerLost: boolean): Promise<boolean | null>;
  /** How the next transfer is sent; absent where another service sends it and pays for its gas. */
  terms?(): Promise<GasTerms>;
  /** Moves on what waits for a block, and resolves with how much does; absent where another service does that. */
  tend?(): Promise<number>;
}

/** Whose transaction carries a transfer out, and what that pays: a contract can make its answer depend on each of these. */
export type GasTerms = { readonly account: Address; readonly gas: bigint } & (
  | { readonly gasPrice: bigint }
  | { readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
);

/** By which transaction; why it may not get there, as far as that is known. */
export interface SettleHint {
  readonly transaction?: string;
  readonly problem?: string;
  /** It may have been carried out all the same. */
  readonly isAnswerLost?: true;
}
