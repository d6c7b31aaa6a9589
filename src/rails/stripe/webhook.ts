import type { Stripe } from "stripe";
import type { EpochMs } from "../../units/clock.ts";
import type { PaymentId } from "../../units/id.ts";
import { paymentIn } from "./metadata.ts";
import type { StripeConfig } from "./stripe-config.ts";

/** What an event is about: a payment, or a PaymentIntent that knows which one. */
export type Concern = { readonly payment: PaymentId } | { readonly intent: string } | "nothing of ours";

/**
 * Checks an event's signature by any of the secrets, and reads whom it concerns and no more: what became of it is
 * asked of Stripe. Null where it was not signed by Stripe, or too long ago.
 */
export async function readEvent(
  body: string,
  signature: string,
  { webhookSecrets }: Pick<StripeConfig, "webhookSecrets">,
  now: EpochMs,
): Promise<Concern | null> {
  const { Stripe } = await import("stripe");
  const { webhooks } = new Stripe("none");
  for (const secret of webhookSecrets) {
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

/** Whoever has recorded an event cannot send it for longer. */
const TOLERANCE_S = 300;

function concernOf({ data }: Stripe.Event): Concern {
  const { metadata, payment_intent } = data.object as {
    readonly metadata?: Record<string, string> | null;
    readonly payment_intent?: string | { readonly id: string } | null;
  };
  const payment = paymentIn(metadata);
  if (payment !== null) return { payment };
  const intent = typeof payment_intent === "object" ? payment_intent?.id : payment_intent;
  return intent === undefined ? "nothing of ours" : { intent };
}
