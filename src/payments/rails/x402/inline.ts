import type { Balance, Key } from "../../../customers/keys/key.ts";
import type { Clock } from "../../../units/clock.ts";
import { internalError, type Refusal, refuse, refused, retryAfter } from "../../../units/errors/refusal.ts";
import type { KeyId } from "../../../units/id.ts";
import { TurnLines } from "../../../units/turn-lines.ts";
import { formatUsd, type NanoUsd } from "../../../units/usd.ts";
import { dayCap, hourCap, offeredAmounts, type PaymentAmounts } from "../../amounts.ts";
import type { Payment } from "../../payment.ts";
import { ON_ITS_WAY_S } from "../../refusals.ts";
import { readPayment, type SignedPayment } from "./authorization.ts";
import { paymentRequired, paymentResponse } from "./offer.ts";
import { paymentOf, type TakeOrder, type X402Rail } from "./x402.ts";

/**
 * What a refusal for want of credit offers, and requests for answers that pay. They pay one at a time for each balance,
 * and only if admission still says then that it is short: of ten requests that were offered the same, one pays.
 */
export class InlinePayments {
  private readonly turns = new TurnLines(MAX_IN_LINE);

  constructor(private readonly deps: InlineDeps) {}

  /** Balances whose requests pay, or wait for their turn to. */
  get balancesInLine(): number {
    return this.turns.size;
  }

  /** The refusal with what can be paid; or another, where a payment is on its way already. */
  async offered(refusal: Refusal, balance: Balance, lacking: NanoUsd): Promise<Refusal> {
    if (needsSaving(balance)) return saveFirst(refusal);
    const pending = await this.stuck(balance);
    return pending === null ? this.offer(refusal, lacking) : onItsWay(pending);
  }

  /** The refusal with what can be paid. */
  offer(refusal: Refusal, lacking: NanoUsd, why = PAY): Refusal {
    const { rail, amounts, baseUrl } = this.deps;
    const offer = paymentRequired(offeredAmounts(lacking, amounts), rail.offered(), {
      url: `${baseUrl()}/v1/credits`,
      error: why,
    });
    return offer === null ? refusal : withOffer(refusal, why, offer);
  }

  /**
   * Takes the request's place in the line of its balance, once what it sends could pay for what is lacking. A request that has
   * it must `end` it.
   */
  async begin(
    header: string,
    refusal: Refusal,
    payer: InlinePayer,
    lacking: NanoUsd,
  ): Promise<InlinePayment | Refusal> {
    const { rail } = this.deps;
    const { balance } = payer;
    if (needsSaving(balance)) return saveFirst(refusal);
    const pending = await this.stuck(balance);
    if (pending !== null) return onItsWay(pending);
    if (this.deps.perHour === null) return this.offer(refusal, lacking);
    const signed = readPayment(header);
    const amount = typeof signed === "string" ? signed : rail.amountOf(signed);
    if (typeof signed === "string" || typeof amount === "string")
      return this.offer(refusal, lacking, amount as string);
    const why = this.tooLittle(amount, lacking);
    if (why !== null) return this.offer(refusal, lacking, why);
    const leave = await this.turns.take(balance.id);
    if (leave === null) return lineIsFull();
    return new InlinePayment(signed, payer, this.order(payer, amount), this.deps, this, leave);
  }

  /** A payment that nobody waits for any more. Who comes while somebody does stands in line: it may be there in a moment. */
  private async stuck({ id }: Balance): Promise<Payment["id"] | null> {
    return this.turns.has(id) ? null : this.deps.rail.pending(id);
  }

  /** Why the amount is none that would help. */
  tooLittle(amount: NanoUsd, lacking: NanoUsd): string | null {
    const { amounts } = this.deps;
    const [least] = offeredAmounts(lacking, amounts).slice(-1);
    if (least !== undefined && amount >= least && amount <= amounts.max) return null;
    return `The payment of ${formatUsd(amount)} is not one that is offered: it must cover what is lacking.`;
  }

  private order({ balance, key }: InlinePayer, amount: NanoUsd): TakeOrder {
    const { amounts, perHour, clock } = this.deps;
    const now = clock.now();
    return {
      balanceId: balance.id,
      keyId: key.rotationId,
      amount,
      isInline: true,
      idempotencyKey: null,
      isOwners: standsForOwner(balance, key.rotationId),
      caps: [dayCap(amounts, now), hourCap(perHour!, now)],
    };
  }
}

/** One request's payment, from its turn on. */
export class InlinePayment {
  /** The header `payment-response`, once it is credited. */
  response: string | null = null;
  private isTried = false;
  private isOver = false;

  constructor(
    private readonly signed: SignedPayment,
    private readonly payer: InlinePayer,
    private readonly order: TakeOrder,
    private readonly deps: InlineDeps,
    private readonly all: InlinePayments,
    private readonly leave: () => void,
  ) {}

  /** Null once the balance is credited; nothing is asked a second time. */
  async pay(refusal: Refusal, lacking: NanoUsd): Promise<Refusal | null> {
    const { rail, againstForging } = this.deps;
    const { balance, blocks } = this.payer;
    const offered = (why?: string) => this.all.offer(refusal, lacking, why);
    if (this.isTried) return this.all.offered(refusal, balance, lacking);
    const pending = await rail.pending(balance.id);
    if (pending !== null) return onItsWay(pending);
    const why = this.all.tooLittle(this.order.amount, lacking);
    if (why !== null) return offered(why);
    this.isTried = true;
    const paid = await againstForging(blocks(), () => this.take(offered));
    return refused(paid) ? paid : this.outcome(paid, offered);
  }

  /** Lets the next request have its turn. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.leave();
    if (!this.isTried) this.noteUnused().catch(this.deps.onFault);
  }

  private async noteUnused(): Promise<void> {
    const { rail, againstForging } = this.deps;
    await againstForging(
      this.payer.blocks(),
      async () => (await rail.noteUnused(this.signed, this.order)) ?? internalError(),
    );
  }

  private async take(offered: (why?: string) => Refusal): Promise<Payment | Refusal> {
    const { rail, contact, onFault } = this.deps;
    try {
      return paymentOf(await rail.take(this.signed, this.order), offered, contact());
    } catch (error) {
      onFault(error);
      return internalError();
    }
  }

  private outcome(payment: Payment, offered: (why?: string) => Refusal): Refusal | null {
    if (payment.state === "credited") {
      const { transaction, payer } = payment;
      const { network } = this.signed.accepted;
      this.response = paymentResponse({ transaction: transaction!, payer: payer!, network });
      return null;
    }
    const isNothing = payment.state === "failed" || payment.state === "unused";
    if (isNothing) return offered(payment.reason ?? undefined);
    return payment.state === "held" ? waitsForOperator(payment) : onItsWay(payment.id);
  }
}

export interface InlineDeps {
  readonly rail: X402Rail;
  readonly amounts: PaymentAmounts;
  /** The most that requests of one key may pay within an hour; null: they pay nothing. */
  readonly perHour: NanoUsd | null;
  /** Checks a signature, unless too many from these networks were wrong: each asks the node. */
  againstForging<Checked>(
    blocks: readonly string[],
    check: () => Promise<Checked | Refusal>,
  ): Promise<Checked | Refusal>;
  baseUrl(): string;
  contact(): string | null;
  readonly clock: Pick<Clock, "now">;
  onFault(error: unknown): void;
}

interface InlinePayer {
  readonly balance: Balance;
  readonly key: Key;
  /** The network blocks that the client is in, the narrowest first. */
  blocks(): readonly string[];
}

/** A balance without an account is lost with its secrets: nobody pays into one before both were shown to be saved. */
export const needsSaving = ({ accountId, secretsSavedAt }: Balance): boolean =>
  accountId === null && secretsSavedAt === null;

export const SAVE_FIRST =
  "Credit can be paid for here once both secrets of the balance are saved: show that with POST /v1/me/saved, the recovery secret as the bearer token and the API key as `key`.";

/** Nobody knows yet whether it moves. A wallet does not pay for a 500, and clients repeat it. */
const onItsWay = (payment: Payment["id"]): Refusal =>
  refuse(
    "internal_error",
    `Payment ${payment} into this balance is on its way and not final yet. Do not pay again: retry, or follow it with GET /v1/payments/${payment}.`,
    retryAfter(ON_ITS_WAY_S),
  );

const waitsForOperator = ({ id, reason }: Payment): Refusal =>
  refuse(
    "internal_error",
    `Payment ${id} into this balance is held for the operator. Do not pay it again. ${reason}`,
    retryAfter(HELD_S),
  );

/** The operator is a person. */
const HELD_S = 3_600;

/** Waiting requests of one balance; each is held in memory meanwhile. */
export const MAX_IN_LINE = 64;

const lineIsFull = (): Refusal =>
  refuse(
    "rate_limited",
    `${MAX_IN_LINE} requests of this balance wait to pay, one after another, which is the limit. Nothing was paid for this one. Retry in ${ON_ITS_WAY_S} s.`,
    { retryAfterS: ON_ITS_WAY_S },
  );

const PAY =
  "To pay now, sign an offer of the header `payment-required` (x402), and send the request again with `payment-signature`.";

/**
 * x402's clients throw at a 402 that they cannot pay, whatever it says, and the SDKs above them report a connection error;
 * a 400 they hand on.
 */
const saveFirst = ({ message }: Refusal): Refusal => refuse("invalid_request", `${message} ${SAVE_FIRST}`);

const withOffer = ({ code, message, details }: Refusal, sentence: string, offer: string): Refusal =>
  refuse(code, `${message} ${sentence}`, { ...details, paymentRequired: offer });

/**
 * Whether a payer on a sanctions list has the whole balance suspended. An owner's agent may be talked into presenting any
 * payment, and a leaked key is presented by anybody: with those, the payment is refused, and the owner goes on. Where there is
 * no account, the set-up key is all of the customer that there is.
 */
export const standsForOwner = ({ accountId, setUpKey }: Balance, keyId: KeyId | null): boolean =>
  keyId === null || (accountId === null && keyId === setUpKey);
