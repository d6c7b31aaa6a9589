import type { EpochMs } from "../units/clock.ts";
import type { BalanceId, KeyId, PaymentId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { Payment, PaymentChange, PaymentState, RailName } from "./payment.ts";

/** Persists payments. What a promise resolves with is durable. */
export interface PaymentStore {
  /** Adds it, unless it is known or a cap is in the way: looked at and written in one atomic step. */
  add<Cap extends PaymentCap>(payment: Payment, caps: readonly Cap[]): Promise<Added<Cap>>;
  find(id: PaymentId): Promise<Payment | null>;
  byExternal(rail: RailName, external: string): Promise<Payment | null>;
  /**
   * Decides on the payment as it is, and writes what becomes of it together with the credit, in one atomic step; the
   * ledger counts the credit in the same turn. Resolves with the payment as it then is. `decide` may be run more than
   * once; null, or a change to a state that cannot be reached any more, leaves the payment as it is. A credit that the
   * balance cannot hold makes it `held`.
   */
  change(id: PaymentId, decide: (payment: Payment) => PaymentChange | null): Promise<Payment>;
  /** Payments that are due; the caller has them until `until`. */
  claim(now: EpochMs, until: EpochMs, limit: number): Promise<readonly Payment[]>;
  /** When the oldest payment was made that may have been sent and was not seen to move; null without one. */
  oldestSubmitted(butOfReason: string): Promise<EpochMs | null>;
  /** Newest first. */
  list(filter: PaymentFilter, limit: number, before: PaymentId | null): Promise<readonly Payment[]>;
}

/** The books against the payments. */
export interface PaymentAudit {
  /**
   * Payments whose `credited` is not what their entries in a balance's credit come to, or with `lost` not what it should
   * be. A debit of the last minute may not be noted yet.
   */
  drifts(): Promise<readonly PaymentDrift[]>;
}

interface PaymentDrift {
  readonly payment: string;
  readonly driftNano: bigint;
}

/** `known` has the same external name, or the same idempotency key on the same balance. */
export type Added<Cap extends PaymentCap> =
  | { readonly kind: "added"; readonly payment: Payment }
  | { readonly kind: "known"; readonly payment: Payment }
  | { readonly kind: "capped"; readonly cap: Cap };

export type PaymentCap = AmountCap | CountCap | GasCap;

/** Caps on what payments may cost the gateway's gas account. */
export type GasCap = PayerGasCap | NetworkGasCap;

/** The most that may be paid since a moment: into a balance, or by requests of a key for answers. */
export interface AmountCap {
  readonly of: "balance" | "key";
  readonly limit: NanoUsd;
  readonly since: EpochMs;
}

/**
 * The most payments at a time: of one payer that may still fail, or of one balance that are watched although unused, or
 * wait for a card.
 */
export interface CountCap {
  readonly of: "payer" | "unused" | "page";
  readonly most: number;
}

/** A payer of whom a transfer has wasted gas since then. */
interface PayerGasCap {
  readonly of: "payer gas";
  readonly since: EpochMs;
}

/** Gas on a network that was wasted since then, with what payments under way may still waste, this one among them. */
export interface NetworkGasCap {
  readonly of: "network gas";
  /** CAIP-2, with which the external names of its payments begin. */
  readonly network: string;
  readonly most: number;
  readonly since: EpochMs;
}

export interface PaymentFilter {
  readonly balanceId: BalanceId | null;
  readonly keyId: KeyId | null;
  readonly state: PaymentState | null;
}
