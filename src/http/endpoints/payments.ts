import { PAYMENTS, type PaymentAnswer, type PaymentOptions } from "../../api/payments.ts";
import type { Payment } from "../../payments/payment.ts";
import { needsSaving, SAVE_FIRST } from "../../payments/rails/x402/inline.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import type { PaymentId } from "../../units/id.ts";
import { idempotencyKeyOf } from "../../units/idempotency-key.ts";
import { usdFromNano } from "../../units/usd.ts";
import { againstForging, type Identity } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { readUsd, repeated } from "../fields.ts";
import { type OperationRequest, operation } from "../operation.ts";
import { created, JsonReply, ok, page } from "../reply.ts";
import { cardMethod, orderByCard } from "./card-orders.ts";
import { type CreditOrder, orderByX402 } from "./x402-orders.ts";

/** How credit is paid for, by keys and owners. Nothing of it answers where payments are not configured. */
export const paymentEndpoints = (): Endpoint[] => [
  operation("POST /v1/me/saved", PAYMENTS.saved, saved),
  operation("GET /v1/payments/options", PAYMENTS.options, ({ who }, deps) => ok(optionsOf(who, deps))),
  operation("POST /v1/credits", PAYMENTS.credit, order),
  operation("GET /v1/payments", PAYMENTS.list, async ({ who, query: { limit, before } }, { payments }) => {
    const of = { balanceId: who.balance.id, keyId: keyOf(who), state: null };
    return page(await payments!.store.list(of, limit + 1, before as PaymentId | null), limit, paymentView);
  }),
  operation("GET /v1/payments/:id", PAYMENTS.one, async ({ who, params: { id } }, { payments }) => {
    const payment = await payments!.store.find(id as PaymentId);
    const isTheirs =
      payment?.balanceId === who.balance.id && (who.kind === "owner" || payment.keyId === keyOf(who));
    if (!isTheirs) return noPayment(id);
    await payments!.x402?.answered(payment);
    return ok(paymentView(payment));
  }),
];

export const noPayment = (id: string): Refusal =>
  invalidField("id", `There is no payment \`${repeated(id)}\`.`);

/** Keys see the payments that they ordered, also before a rotation. */
const keyOf = (who: Identity) => (who.kind === "key" ? who.key.rotationId : null);

async function saved(
  { who, fields }: OperationRequest<string, typeof PAYMENTS.saved>,
  { keyDeps }: HttpDeps,
) {
  if (who.by !== "recovery")
    return refuse(
      "invalid_request",
      "Only the recovery secret, as the bearer token, shows that it is saved.",
    );
  const { id } = who.balance;
  const holder = await keyDeps.keyring.identify(fields.key, keyDeps.clock.now());
  if (holder?.balance.id !== id)
    return invalidField(
      "key",
      "`key` must be an API key of the balance that the recovery secret belongs to.",
    );
  const at = await keyDeps.store.secretsSaved(id, keyDeps.clock.now());
  keyDeps.keyring.forgetBalance(id);
  return ok({ balance_id: id, secrets_saved_at: isoTime(at) });
}

/** Never an address: who sees one sends money there, and nobody would know whose it is. */
function optionsOf(who: Identity, deps: HttpDeps): PaymentOptions {
  const { amounts, x402 } = deps.payments!;
  const limits = {
    min_usd: usdFromNano(amounts.min),
    max_usd: usdFromNano(amounts.max),
    suggested_usd: usdFromNano(amounts.suggested),
  };
  const offered = x402?.offered() ?? [];
  const networks = offered.map(({ network }) => network.network);
  const assets = offered.map(({ token }) => token.name);
  const card = cardMethod(who, deps);
  return {
    methods: [
      ...(offered.length === 0 ? [] : [{ rail: "x402" as const, networks, assets, ...limits }]),
      ...(card === null ? [] : [{ ...card, ...limits }]),
    ],
    needs: needsSaving(who.balance) ? ["secrets_saved" as const] : [],
  };
}

async function order(
  { who, fields, exchange }: OperationRequest<string, typeof PAYMENTS.credit>,
  deps: HttpDeps,
) {
  const { balance } = who;
  if (balance.suspended !== null) return suspension(balance.suspended, deps.config.settings.contact);
  const amount = readUsd("amount_usd", fields.amount_usd);
  if (refused(amount)) return amount;
  const idempotencyKey = idempotencyKeyOf(exchange.request.headers);
  if (idempotencyKey !== null && (idempotencyKey === "" || idempotencyKey.length > MAX_KEY))
    return invalidField("Idempotency-Key", `\`Idempotency-Key\` must have 1 to ${MAX_KEY} characters.`);
  if (needsSaving(balance)) return refuse("invalid_request", SAVE_FIRST);
  const { x402, card } = deps.payments!;
  const { rail = x402 === null ? "card" : "x402" } = fields;
  if ((rail === "x402" ? x402 : card) === null)
    return invalidField("rail", "`rail` must be one that GET /v1/payments/options names.");
  const creditOrder: CreditOrder = { balance, keyId: keyOf(who), amount, idempotencyKey };
  if (rail === "card") {
    const checkout = await orderByCard(creditOrder, who, exchange.receipt, deps);
    return refused(checkout) ? checkout : created(checkout);
  }
  const header = exchange.request.headers.get("payment-signature");
  const take = () => orderByX402(creditOrder, header, deps);
  const paid = await (header === null ? take() : againstForging(exchange, deps, take));
  if (refused(paid)) return paid;
  const { payment, response } = paid;
  if (payment.state !== "credited") {
    const location = { location: `/v1/payments/${payment.id}` };
    return new JsonReply(202, { id: payment.id, state: payment.state, reason: payment.reason }, location);
  }
  const { total } = await deps.ledger.balance(balance.id);
  // A client that has left sends its request again.
  if (!exchange.request.signal.aborted) await deps.payments!.x402!.answered(payment);
  return new JsonReply(
    201,
    {
      id: payment.id,
      state: payment.state,
      amount_usd: usdFromNano(payment.amount),
      balance_usd: usdFromNano(total),
    },
    { "payment-response": response },
  );
}

const MAX_KEY = 255;

export const paymentView = (payment: Payment): PaymentAnswer => ({
  id: payment.id,
  object: "payment",
  rail: payment.rail,
  state: payment.state,
  amount_usd: usdFromNano(payment.amount),
  credited_usd: usdFromNano(payment.credited),
  network: payment.rail === "x402" ? payment.external.split("/")[0]! : null,
  payer: payment.payer,
  transaction: payment.transaction,
  reason: payment.reason,
  created_at: isoTime(payment.createdAt),
  changed_at: isoTime(payment.changedAt),
});
