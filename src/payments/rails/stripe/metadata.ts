import type { PaymentId } from "../../../units/id.ts";

/** In the metadata of what is made here. */
export const PAYMENT = "payment_id";

/** The payment that one of Stripe's objects is for; null where it is for something else. */
export const paymentIn = (
  metadata: Readonly<Record<string, string>> | null | undefined,
): PaymentId | null => {
  const id = metadata?.[PAYMENT];
  return id?.startsWith("pay_") === true ? (id as PaymentId) : null;
};
