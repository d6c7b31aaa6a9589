import type { Stripe } from "stripe";
import type { EpochMs } from "../../../units/clock.ts";
import type { PaymentId } from "../../../units/id.ts";

/** What an event is about: a payment, or a PaymentIntent that knows which one. */
export type Concern = { readonly payment: PaymentId } | { readonly intent: string } | "nothing of ours";

/**
 * Checks an event's signature by any of the secrets, and reads whom it concerns and no more: what became of it is
 * asked of Stripe. Null where it was not signed by Stripe, or too long ago.
 */
export async function readEvent(
  { body, signature }: SentEvent,
  secrets: readonly string[],
  webhooks: Stripe["webhooks"],
  now: EpochMs,
): Promise<Concern | null> {
  if (isFromTheFuture(signature, now)) return null;
  for (const secret of secrets) {
    try {
      // Its synchronous twin does not work in Bun.
      return concernOf(
        await webhooks.constructEventAsync(body, signature, secret, TOLERANCE_S, undefined, now),
      );
    } catch {
      // By another secret, perhaps.
    }
  }
  return null;
}

/** The package refuses what is too old only; with a time to come, anybody who has recorded an event could send it until then. */
const isFromTheFuture = (signature: string, now: EpochMs): boolean =>
  [...signature.matchAll(TIME)].some(([, timeS]) => Number(timeS) * 1_000 > now + TOLERANCE_S * 1_000);

const TIME = /(?<![^,])t=(\d+)/g;

export interface SentEvent {
  readonly body: string;
  /** The header `Stripe-Signature`. */
  readonly signature: string;
}

/** A recorded event cannot be sent for longer. */
const TOLERANCE_S = 300;

export function concernOf({ data }: Stripe.Event): Concern {
  const { metadata, payment_intent } = data.object as {
    readonly metadata?: Record<string, string> | null;
    readonly payment_intent?: string | { readonly id: string } | null;
  };
  const payment = paymentIn(metadata);
  if (payment !== null) return { payment };
  const intent = typeof payment_intent === "object" ? payment_intent?.id : payment_intent;
  return intent === undefined ? "nothing of ours" : { intent };
}

/** In the metadata of what is made here. */
export const PAYMENT = "payment_id";

/** The payment that one of Stripe's objects is for; null where it is for something else. */
export const paymentIn = (
  metadata: Readonly<Record<string, string>> | null | undefined,
): PaymentId | null => {
  const id = metadata?.[PAYMENT];
  return id?.startsWith("pay_") === true ? (id as PaymentId) : null;
};
