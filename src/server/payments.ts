import { BY_GATEWAY, type SuspensionRecord } from "../customers/keys/key-store.ts";
import { checkedSignature } from "../http/authentication.ts";
import type { Throttles } from "../ledger/limits/address.ts";
import { PaymentCounts } from "../payments/rails/payment-counts.ts";
import { CardRail } from "../payments/rails/stripe/card-rail.ts";
import { openStripe } from "../payments/rails/stripe/stripe-api.ts";
import { openChain } from "../payments/rails/x402/chain.ts";
import { InlinePayments } from "../payments/rails/x402/inline.ts";
import { openSettler } from "../payments/rails/x402/open-settler.ts";
import { Sanctions } from "../payments/rails/x402/sanctions.ts";
import { X402Rail } from "../payments/rails/x402/x402.ts";
import type { BalanceId } from "../units/id.ts";
import type { GatewayParts } from "./gateway-parts.ts";

/** The ways to pay. Each is null where the configuration does not name it; then nothing of it is loaded. */
export function openPayments(
  { config: active, clock, random, books, paymentPace: pace, log }: GatewayParts,
  throttles: Throttles,
  onFault: (error: unknown) => void,
) {
  const { payments } = active.config;
  const sanctions = new Sanctions(payments?.sanctions ?? { list: null, oracle: false }, clock);
  const counts = new PaymentCounts(() => sanctions.figures());
  const shared = { store: counts.counted(books.payments), debit: books.debit, pace, clock, random };
  /** Suspends by the gateway itself, or lifts that; durable. */
  const decide =
    (decided: Pick<SuspensionRecord, "reason" | "lifted">) => async (subject: BalanceId, note: string) => {
      await books.keys.suspend({ subject, ...decided, at: clock.now(), by: BY_GATEWAY, note });
      books.keyring.forgetBalance(subject);
    };
  const x402 =
    payments === null || payments.x402.length === 0
      ? null
      : new X402Rail({
          ...shared,
          networks: payments.x402,
          open: async (network) => ({
            chain: await openChain(network),
            settler: await openSettler(network, { store: books.gasLine, clock, pace, log }),
          }),
          sanctions,
          suspend: decide({ reason: "sanctions", lifted: null }),
          log,
        });
  const stripe = payments?.stripe ?? null;
  const card =
    stripe === null
      ? null
      : new CardRail({
          ...shared,
          api: openStripe(stripe),
          fee: stripe.fee,
          suspend: decide({ reason: "chargeback", lifted: null }),
          lift: decide({ reason: null, lifted: "chargeback" }),
          returnUrl: (payment) => `${active.links.dashboardUrl}#/credit/${payment}`,
          onFault,
        });
  const inline =
    payments === null || x402 === null
      ? null
      : new InlinePayments({
          rail: x402,
          amounts: payments.amounts,
          perHour: payments.inlinePerHour,
          againstForging: (blocks, check) => checkedSignature(throttles.wrong_signatures, blocks, check),
          baseUrl: () => active.links.baseUrl,
          contact: () => active.links.contact,
          clock,
          onFault,
        });
  return {
    store: shared.store,
    x402,
    card,
    inline,
    /** What HTTP offers; null where nothing is sold. */
    methods: payments === null ? null : { amounts: payments.amounts, store: shared.store, x402, card },
    figures: () => [...(payments === null ? [] : counts.figures()), ...(x402?.figures() ?? [])],
  };
}
