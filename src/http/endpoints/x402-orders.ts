import type { Balance } from "../../customers/keys/key.ts";
import { dayCap, whyNot } from "../../payments/amounts.ts";
import type { Payment } from "../../payments/payment.ts";
import { externalOf, readPayment } from "../../payments/rails/x402/authorization.ts";
import { standsForOwner } from "../../payments/rails/x402/inline.ts";
import { paymentRequired, paymentResponse } from "../../payments/rails/x402/offer.ts";
import { paymentOf } from "../../payments/rails/x402/x402.ts";
import { usedKey } from "../../payments/refusals.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import type { KeyId } from "../../units/id.ts";
import { formatUsd, type NanoUsd } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";

/** Credit that is ordered, before anybody knows how it is paid. */
export interface CreditOrder {
  readonly balance: Balance;
  readonly keyId: KeyId | null;
  readonly amount: NanoUsd;
  readonly idempotencyKey: string | null;
}

/** An order that a signed transfer pays; without one, what to sign. */
export async function orderByX402(
  { balance, keyId, amount, idempotencyKey }: CreditOrder,
  header: string | null,
  deps: HttpDeps,
): Promise<{ payment: Payment; response: string } | Refusal> {
  const { amounts, x402 } = deps.payments!;
  const why = whyNot(amount, amounts);
  if (why !== null) return invalidField("amount_usd", `\`amount_usd\` ${why}.`);
  const { baseUrl, contact } = deps.config.settings;
  const unpaid = (words: string): Refusal => {
    const offer = paymentRequired([amount], x402!.offered(), { url: `${baseUrl}/v1/credits`, error: words });
    return offer === null ? nodesAway() : refuse("insufficient_credit", words, { paymentRequired: offer });
  };
  const ordered = { balanceId: balance.id, keyId, amount, isInline: false, idempotencyKey };
  if (header === null) {
    const payment = await x402!.unanswered(ordered);
    return payment === null ? unpaid(signFor(amount)) : outcome(payment, unpaid);
  }
  const signed = readPayment(header);
  if (typeof signed === "string") return unpaid(signed);
  const worth = x402!.amountOf(signed);
  if (typeof worth === "string") return unpaid(worth);
  if (worth !== amount)
    return unpaid(`The payment is of ${formatUsd(worth)}, and ${formatUsd(amount)} is ordered.`);
  const caps = [dayCap(amounts, deps.clock.now())];
  const isOwners = standsForOwner(balance, keyId);
  const payment = paymentOf(await x402!.take(signed, { ...ordered, isOwners, caps }), unpaid, contact);
  if (refused(payment)) return payment;
  const isAnother = payment.external !== externalOf(signed) && payment.amount !== amount;
  return isAnother ? usedKey() : outcome(payment, unpaid);
}

function outcome(
  payment: Payment,
  unpaid: (words: string) => Refusal,
): { payment: Payment; response: string } | Refusal {
  if (payment.state === "failed") return unpaid(payment.reason ?? "The payment has failed.");
  const { transaction, payer, external } = payment;
  const network = external.split("/")[0]!;
  return { payment, response: paymentResponse({ transaction: transaction ?? "", payer: payer!, network }) };
}

const signFor = (amount: NanoUsd): string =>
  `Credit of ${formatUsd(amount)} is paid for by x402: sign an offer of the header \`payment-required\`, and send the request again with \`payment-signature\`.`;

const nodesAway = (): Refusal =>
  refuse(
    "internal_error",
    "No network on which credit could be paid for can be reached right now. Nothing was paid. Retry in 5 s.",
    { retryAfterS: 5 },
  );
