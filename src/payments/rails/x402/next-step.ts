import { type EpochMs, epochMs } from "../../../units/clock.ts";
import { formatUsd, type NanoUsd } from "../../../units/usd.ts";
import type { Payment, PaymentChange } from "../../payment.ts";
import type { PaymentPace } from "../payment-pace.ts";
import type { Authorization } from "./authorization.ts";
import type { ChainHead, Movement } from "./chain.ts";
import { worthOf } from "./network.ts";
import type { OfferedNetwork, PaymentRequirements } from "./offer.ts";

/** What a payment has to be carried out and found again by: the whole of it, before anybody is asked. */
export interface X402Order extends Pick<PaymentRequirements, "network" | "asset" | "payTo"> {
  readonly authorization: Authorization;
  readonly signature: `0x${string}`;
  /** No earlier block can hold the transfer. */
  readonly fromBlock: number;
  /** When it was last asked for; left out before the first time. */
  readonly sentAt?: EpochMs;
  /** Transactions that its settler named, the latest last. Left out of payments from before they were kept. */
  readonly sent?: readonly string[];
  /** The settler was asked for the transfer, and what it did is not known. */
  readonly isAnswerLost?: boolean;
  /** Transactions for it that are in a block, and did not use the authorization. */
  readonly failures?: number;
  /** Code decides about its payer's signature. */
  readonly isContract?: true;
  /** The payer who presented it stands for the balance's owner. */
  readonly isOwners?: true;
  /** The customer has received the answer that it is credited. */
  readonly isAnswered?: true;
}

export const orderOf = ({ order }: Pick<Payment, "order">): X402Order => JSON.parse(order);

/** What the chain shows at one moment. */
export interface Sight {
  readonly head: ChainHead;
  readonly movement: Movement;
  /** Whether this store had the transfer carried out. Null: that cannot be found out now. */
  readonly isOurs: boolean | null;
  /** Nobody had used the authorization in the last final block. */
  readonly isUnusedAtFinality: boolean;
  readonly now: EpochMs;
}

/** `send`: have the transfer carried out, again; `begin`: screen and submit first; `take back`: it will never move. */
export type Step =
  | { readonly kind: "write"; readonly change: PaymentChange }
  | { readonly kind: "send" }
  | { readonly kind: "begin" }
  | { readonly kind: "take back"; readonly reason: string };

/** What is to be done about a payment: it follows from its state and from what the chain shows, and from nothing else. */
export function nextStep(payment: Payment, network: OfferedNetwork, sight: Sight, pace: PaymentPace): Step {
  const { movement, now } = sight;
  const later = epochMs(now + pace.watchMs);
  if (payment.state === "rejected") return rejected(payment, network, sight, later);
  switch (movement.kind) {
    case "unseen":
      return unseen(payment, sight, later);
    case "canceled":
      return payment.state === "credited"
        ? { kind: "take back", reason: "The payer canceled the authorization." }
        : failed("The payer canceled the authorization.");
    case "moved":
      return moved(payment, network, sight, movement, later);
    default:
      return unused(payment, sight, later, pace);
  }
}

/** Nobody is asked to move it, but its payer may have that done by themselves until it runs out. */
function rejected(
  payment: Payment,
  { token }: OfferedNetwork,
  { head, movement, isUnusedAtFinality }: Sight,
  later: EpochMs,
): Step {
  const { payTo } = orderOf(payment);
  const { kind } = movement;
  if (kind === "moved" && movement.to === payTo) {
    const { transaction, value } = movement;
    const reason = `${payment.reason} They sent it by hand.`;
    const amount = worthOf(value, token);
    return write({ state: "held", amount, transaction, reason, nextPollAt: null });
  }
  const isOver =
    kind === "moved" ? movement.block <= head.finalized : kind === "canceled" || isUnusedAtFinality;
  return write({ nextPollAt: isOver ? null : later });
}

/** A node that is behind shows what used the authorization soon; one that still does not in the end may have lost its logs. */
function unseen(payment: Payment, { head }: Sight, later: EpochMs): Step {
  const isOver = head.finalizedTime >= Number(orderOf(payment).authorization.validBefore);
  if (!isOver) return write({ nextPollAt: later });
  const reason = "The node says that the authorization was used, and does not show by which transaction.";
  const change = payment.state === "credited" ? {} : ({ state: "held", reason } as const);
  return write({ ...change, nextPollAt: null });
}

function moved(
  payment: Payment,
  { network, token }: OfferedNetwork,
  { head, isOurs }: Sight,
  movement: Moved,
  later: EpochMs,
): Step {
  const { authorization, payTo } = orderOf(payment);
  const { transaction, block, to, value } = movement;
  const isFinal = block <= head.finalized;
  const nextPollAt = isFinal ? null : later;
  if (to !== payTo || value !== authorization.value)
    return elsewhere(payment, to === payTo ? worthOf(value, token) : null, { transaction, nextPollAt });
  if (payment.state === "credited") return write({ transaction, nextPollAt });
  const isConfirmed =
    payment.amount >= network.finalizedAbove ? isFinal : head.latest - block + 1 >= network.confirmations;
  if (!isConfirmed || (isOurs === null && !isFinal))
    return write({ state: "confirming", transaction, reason: null, nextPollAt: later });
  if (isOurs !== true) return write({ state: "held", transaction, reason: NOT_OURS, nextPollAt: null });
  const credit = { amount: payment.amount };
  return write({
    state: "credited",
    transaction,
    reason: null,
    nextPollAt,
    credit,
    shouldBe: payment.amount,
  });
}

/** Its payer signed two transfers by the same nonce, and the other one was carried out. */
function elsewhere(payment: Payment, arrived: NanoUsd | null, change: PaymentChange): Step {
  const reason =
    arrived === null
      ? "The payer used the nonce for another transfer."
      : `The transfer that was made by this nonce is of ${formatUsd(arrived)}, and ${formatUsd(payment.amount)} were ordered.`;
  if (payment.state === "credited") return { kind: "take back", reason };
  const now =
    arrived === null ? ({ state: "failed" } as const) : ({ state: "held", amount: arrived } as const);
  return write({ ...change, ...now, reason, nextPollAt: null });
}

function unused(
  payment: Payment,
  { head, isUnusedAtFinality, now }: Sight,
  later: EpochMs,
  { resendMs }: PaymentPace,
): Step {
  const { authorization, sentAt } = orderOf(payment);
  const { state } = payment;
  const endS = Number(authorization.validBefore);
  if (head.finalizedTime >= endS && isUnusedAtFinality) {
    if (state === "unused") return write({ nextPollAt: null });
    if (state === "credited")
      return { kind: "take back", reason: "The chain was reorganised, and the transfer was not made again." };
    return failed("The authorization ran out before the transfer was made.");
  }
  // Until that is final, the transfer may still turn up in a block from before the end.
  if (head.time >= endS)
    return write({
      nextPollAt: later,
      ...(state === "unused" || state === "credited" ? {} : { reason: RAN_OUT }),
    });
  if (state === "created") {
    // The client that waited for it is gone. An order of credit still stands.
    return payment.isInline
      ? write({ state: "unused", reason: "The request that it was for was cut off.", nextPollAt: later })
      : { kind: "begin" };
  }
  if (state === "unused") return write({ nextPollAt: later });
  const isDue = sentAt === undefined || now - sentAt >= resendMs || state !== "submitted";
  return isDue ? { kind: "send" } : write({ nextPollAt: later });
}

type Moved = Extract<Movement, { kind: "moved" }>;

const write = (change: PaymentChange): Step => ({ kind: "write", change });
const failed = (reason: string): Step => write({ state: "failed", reason, nextPollAt: null });

/** Another store with the same address may have credited it. */
const NOT_OURS =
  "The transfer was made, but not by this gateway, so it may have been credited elsewhere. The operator decides.";

/** Nobody can have it carried out any more, though it may have been. */
export const RAN_OUT = "The authorization has run out; whether it was used before is not final yet.";
