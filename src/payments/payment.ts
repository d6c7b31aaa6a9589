import type { EpochMs } from "../units/clock.ts";
import type { BalanceId, KeyId, PaymentId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";

/** Ways in which money reaches the operator. */
export type RailName = "x402" | "card";

/**
 * `created`: durable, and nothing was sent yet. `submitted`: the order to move the money may have been sent.
 * `confirming`: it was seen to move. `held`: it is here, and the operator has to decide. `unused`: it was not needed any
 * more. `rejected`: turned down before anything was asked.
 */
export type PaymentState =
  | "created"
  | "submitted"
  | "confirming"
  | "credited"
  | "expired"
  | "failed"
  | "unused"
  | "rejected"
  | "held"
  | "refunded"
  | "disputed"
  | "charged_back";

/**
 * Where a payment may go from each state. News of it arrives late, twice and in any order, so whatever is not here is
 * left undone. Once a card's money was here, Stripe alone says what becomes of it. A state that stays is always allowed: it tells more of the same payment.
 */
const NEXT = {
  created: ["submitted", "confirming", "credited", "expired", "failed", "unused", "rejected", "held"],
  // Who signed it can still send it by themselves.
  unused: ["submitted", "confirming", "credited", "failed", "rejected", "held"],
  submitted: ["confirming", "credited", "failed", "held"],
  // Back, where the chain was reorganised.
  confirming: ["submitted", "credited", "failed", "held"],
  credited: ["refunded", "disputed", "failed", "charged_back", "held"],
  disputed: ["credited", "charged_back", "refunded", "held"],
  held: ["credited", "refunded", "disputed", "charged_back"],
  // A page that was left open is paid in the moment in which it ends.
  expired: ["confirming", "credited", "held"],
  failed: ["held"],
  rejected: ["held"],
  // By an appeal; or there is a further dispute of it.
  charged_back: ["credited", "disputed", "refunded", "held"],
  // It may be disputed all the same, and a refund may fail at the bank.
  refunded: ["credited", "disputed", "charged_back", "held"],
} as const satisfies Record<PaymentState, readonly PaymentState[]>;

export const PAYMENT_STATES = Object.keys(NEXT) as PaymentState[];

/** No money came of it, and it counts against no limit. */
export const CAME_TO_NOTHING = [
  "expired",
  "failed",
  "unused",
  "rejected",
] as const satisfies readonly PaymentState[];

/** Money that is to become credit, once, whatever happens on the way. */
export interface Payment {
  readonly id: PaymentId;
  readonly rail: RailName;
  /** What the rail knows it by; no two payments of a rail share it. */
  readonly external: string;
  readonly balanceId: BalanceId;
  /** First of the chain of rotations of the key that asked for it; null where the owner did. */
  readonly keyId: KeyId | null;
  readonly state: PaymentState;
  /** What was ordered; of one that is held, what arrived, as far as that is known. */
  readonly amount: NanoUsd;
  /** Who pays, in the rail's words: an address, a card's last digits. */
  readonly payer: string | null;
  readonly transaction: string | null;
  /** Why it is as it is, for the payer; null where the state says all. */
  readonly reason: string | null;
  /** What the rail needs to carry it out again, and to find it: JSON of its own. */
  readonly order: string;
  readonly idempotencyKey: string | null;
  /** A request for an answer paid it, not one for credit. */
  readonly isInline: boolean;
  /** Credited by it, less what was taken back because of it. */
  readonly credited: NanoUsd;
  /** What was to be taken back, and was spent. */
  readonly lost: NanoUsd;
  /** What `credited` without `lost` should be, as the rail last saw it; null before it knows. The audit compares them. */
  readonly shouldBe: NanoUsd | null;
  /** Gas of the gateway's account that its transfer may waste; from `wastedAt` on, what its failed transfers used. */
  readonly gas: number;
  /** When a transfer for it was last seen to have failed on the chain at the gateway's expense; null if none has. */
  readonly wastedAt: EpochMs | null;
  readonly createdAt: EpochMs;
  readonly changedAt: EpochMs;
  /** When the watch looks at it next; null for one that is final. A process that works on it puts it off. */
  readonly nextPollAt: EpochMs | null;
}

/** What a payment has while nothing has become of it. */
export const JUST_CREATED = {
  state: "created",
  transaction: null,
  reason: null,
  credited: ZERO_USD,
  lost: ZERO_USD,
  shouldBe: null,
  wastedAt: null,
} as const satisfies Partial<Payment>;

/** What is new of a payment. Members that are left out stay. */
export interface PaymentChange
  extends Partial<
    Pick<
      Payment,
      | "state"
      | "amount"
      | "payer"
      | "transaction"
      | "reason"
      | "order"
      | "shouldBe"
      | "gas"
      | "wastedAt"
      | "nextPollAt"
    >
  > {
  /** Enters the balance's credit in the same transaction. */
  readonly credit?: PaymentCredit;
  /** Was taken back, and is on the books already. */
  readonly debited?: NanoUsd;
  readonly lost?: NanoUsd;
}

interface PaymentCredit {
  readonly amount: NanoUsd;
  /** Distinguishes several credits of one payment. */
  readonly purpose?: PaymentEntry;
}

/** The payment with the change made; null where it cannot go there any more. */
export function advanced(payment: Payment, change: PaymentChange, at: EpochMs): Payment | null {
  const { credit, debited = ZERO_USD, lost = ZERO_USD, ...members } = change;
  const { state = payment.state } = members;
  if (state !== payment.state && !(NEXT[payment.state] as readonly PaymentState[]).includes(state))
    return null;
  return {
    ...payment,
    ...members,
    credited: (payment.credited + (credit?.amount ?? 0) - debited) as NanoUsd,
    lost: (payment.lost + lost) as NanoUsd,
    changedAt: at,
  };
}

/** Instead of crediting the payment, which the balance cannot hold: the operator needs to know whose money is where. */
export const heldInstead = ({ transaction, payer }: Payment): PaymentChange => ({
  state: "held",
  reason: TOO_MUCH,
  transaction,
  payer,
  nextPollAt: null,
});

export const TOO_MUCH = "The balance has been credited with as much as is counted exactly.";

/** What entries in a balance's credit a payment may make besides the one that credits it. */
export type PaymentEntry =
  | "refund"
  | "reorg"
  // A card's money may leave in parts, and come back; all of them are numbered.
  | `back:${number}`
  | `more:${number}`
  | `refund:${number}`;

/** Idempotency keys that begin so are the payments' own. */
export const PAYMENT_KEYS = "payment:";

/** The payment that an idempotency key is of; null where it is of none. */
export const paymentOfKey = (key: string): PaymentId | null =>
  key.startsWith(PAYMENT_KEYS) ? (key.split(":")[1] as PaymentId) : null;

export const paymentKey = (id: PaymentId, purpose?: PaymentEntry): string =>
  `${PAYMENT_KEYS}${id}${purpose === undefined ? "" : `:${purpose}`}`;
