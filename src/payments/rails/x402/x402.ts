import { type EpochMs, epochMs } from "../../../units/clock.ts";
import { type Refusal, refuse } from "../../../units/errors/refusal.ts";
import { suspension } from "../../../units/errors/suspension-refusal.ts";
import type { Figure } from "../../../units/figure.ts";
import { type BalanceId, type KeyId, newId } from "../../../units/id.ts";
import type { RandomBytes } from "../../../units/random.ts";
import { SingleFlight } from "../../../units/single-flight.ts";
import type { NanoUsd } from "../../../units/usd.ts";
import { JUST_CREATED, type Payment } from "../../payment.ts";
import type { AmountCap, CountCap, PaymentCap } from "../../payment-store.ts";
import { capReached, gasRefusal, usedKey } from "../../refusals.ts";
import { externalOf, mismatch, type SignedPayment } from "./authorization.ts";
import type { ChainHead } from "./chain.ts";
import { type GasRisk, gasAtRisk, riskCaps } from "./gas-risk.ts";
import { amountOf, type X402Network } from "./network.ts";
import { orderOf, RAN_OUT, type X402Order } from "./next-step.ts";
import type { OfferedNetwork, PaymentRequirements } from "./offer.ts";
import { OpenNetwork, type ReadyNetwork } from "./open-network.ts";
import type { OpenParts } from "./redacted-parts.ts";
import { isDecided, type TransferDeps, UNDER_WAY, X402Transfers } from "./transfers.ts";

/**
 * Payments by x402: a payer signs a transfer, somebody carries it out, and the chain says whether that happened. Nobody
 * else is believed.
 */
export class X402Rail {
  readonly name = "x402";
  private readonly networks: readonly OpenNetwork[];
  private readonly transfers: X402Transfers;
  /** Presented at this moment, however often: what is asked of the chain about each. */
  private readonly checking = new SingleFlight<string, Checked>();
  private readonly taking = new SingleFlight<string, Taken>();
  private readonly awaiting = new SingleFlight<Payment["id"], Payment>();
  private queuedNonces = 0;
  private oldestSubmittedAt: EpochMs | null = null;

  constructor(private readonly deps: X402Deps) {
    this.networks = deps.networks.map((network) => new OpenNetwork(network, deps.open));
    this.transfers = new X402Transfers(deps);
  }

  /** Networks whose nodes have answered; the others are asked again. */
  offered(): OfferedNetwork[] {
    return this.networks.flatMap(({ ready }) => ready ?? []);
  }

  /** Asks the nodes that have not answered yet. */
  async prepare(): Promise<void> {
    await Promise.all([...this.networks.map((one) => one.prepare()), this.deps.sanctions.refresh()]);
    this.queuedNonces = Math.max(0, ...(await Promise.all(this.networks.map((one) => this.tend(one)))));
    this.oldestSubmittedAt = await this.deps.store.oldestSubmitted(RAN_OUT);
  }

  /** For the operator's metrics, as of the last round. */
  figures(): Figure[] {
    const { oldestSubmittedAt: at, queuedNonces, deps } = this;
    return [
      {
        name: "gateway_payments_oldest_submitted_seconds",
        help: "Age of the oldest payment that was sent and is in no block yet; 0 without one.",
        value: at === null ? 0 : Math.max(0, deps.clock.now() - at) / 1_000,
        together: "mean",
      },
      {
        name: "gateway_gas_queued_nonces",
        help: "Transactions of the gas account that are in no block yet; of several accounts, the most of one.",
        value: queuedNonces,
        together: "mean",
      },
    ];
  }

  /** A payment into the balance of which nobody knows yet whether it moves, whichever process works on it. */
  async pending(balanceId: BalanceId): Promise<Payment["id"] | null> {
    const recent = await this.recent(balanceId, null);
    return recent.find((payment) => !isDecided(payment))?.id ?? null;
  }

  /**
   * The payment for the same order, if the answer that it is credited has not been given yet. A client that repeats a call
   * whose answer was lost sends no payment with it, and would pay for another offer.
   */
  async unanswered(order: OrderTerms): Promise<Payment | null> {
    const recent = await this.recent(order.balanceId, order.keyId);
    const since = this.repeatsSince();
    const payment = recent.find((one) => isSameOrder(one, order) && isUnanswered(one, since));
    if (payment === undefined) return null;
    const network = this.networkOf(orderOf(payment))?.ready;
    return network == null ? payment : this.followed(payment, network);
  }

  /** Its customer knows that it is credited: the same order again is another one. */
  async answered(payment: Payment): Promise<void> {
    const isNews = payment.state === "credited" && isUnanswered(payment, this.repeatsSince());
    if (payment.rail !== this.name || payment.isInline || !isNews) return;
    await this.deps.store.change(payment.id, (present) => ({
      order: JSON.stringify({ ...orderOf(present), isAnswered: true } satisfies X402Order),
    }));
  }

  /** What the payment is worth where it is one that could have been offered; a sentence where it is not. */
  amountOf(signed: SignedPayment): NanoUsd | string {
    const found = this.networkOf(signed.accepted)?.ready;
    const amount = found == null ? null : amountOf(signed.accepted.amount, found.token);
    if (found == null || amount === null)
      return "The payment is on a network, in a token or to an address that is not offered.";
    return mismatch(signed, this.deps.clock.now()) ?? amount;
  }

  /**
   * Records the payment, has it carried out and credits it, as far as that happens in time. Nothing moves before it is
   * durable that it may. The same authorization again is the same payment.
   */
  take(signed: SignedPayment, order: TakeOrder): Promise<Taken> {
    const external = externalOf(signed);
    // What is presented many times at once is looked up once.
    return this.taking.do(JSON.stringify([signed, order]), () => this.takeOnce(signed, order, external));
  }

  private async takeOnce(signed: SignedPayment, order: TakeOrder, external: string): Promise<Taken> {
    const known = await this.deps.store.byExternal(this.name, external);
    if (known !== null) return this.again(known, order);
    const network = this.networkOf(signed.accepted)!.ready!;
    const checked = await this.check(signed, network).catch((error: unknown) => ({ error }));
    if ("head" in checked && checked.refusal === null) {
      const payment = this.newPayment(signed, order, external, checked.head.finalized, checked.risk);
      const caps = [...order.caps, ...riskCaps(network.network, checked.risk, this.deps.clock.now())];
      return this.record(payment, order, caps, async () => {
        const ended = await this.transfers.carryOut(payment, network);
        return ended.state === "rejected" ? rejected(ended) : paid(ended);
      });
    }
    // It may have been recorded meanwhile, and carried out.
    const recorded = await this.deps.store.byExternal(this.name, external);
    if (recorded !== null) return this.again(recorded, order);
    if ("error" in checked) throw checked.error;
    const fromBlock = Math.max(0, checked.head.finalized - EARLIER_BLOCKS);
    if (!(await this.mayBeHere(signed, fromBlock, network)))
      return { kind: "refused", why: `The payment would not be carried out: ${checked.refusal}.` };
    const payment = this.newPayment(signed, order, external, fromBlock, checked.risk);
    return this.record(payment, order, NO_CAPS, async () =>
      paid(await this.transfers.findOut(payment, network)),
    );
  }

  /** Whether somebody else has had the transfer carried out: its money is at our address, whatever is credited. */
  private async mayBeHere(
    { authorization, accepted }: SignedPayment,
    fromBlock: number,
    { chain }: ReadyNetwork,
  ): Promise<boolean> {
    const movement = await chain.movement(authorization, fromBlock);
    return movement.kind === "unseen" || (movement.kind === "moved" && movement.to === accepted.payTo);
  }

  private async record(
    payment: Payment,
    order: TakeOrder,
    caps: readonly PaymentCap[],
    then: () => Promise<Taken>,
  ): Promise<Taken> {
    const added = await this.deps.store.add(payment, caps);
    if (added.kind === "capped") {
      const { cap } = added;
      if (cap.of === "payer gas" || cap.of === "network gas")
        return { kind: "refused", why: gasRefusal(cap) };
      return { kind: "capped", cap };
    }
    if (added.payment.rail !== this.name) return { kind: "used key" };
    if (added.kind === "known") return this.again(added.payment, order);
    return then();
  }

  /**
   * Records a payment that was not needed after all. Its payer could still send it, so it is watched until it runs out.
   * One that its payer has not signed is nobody's, and null: recorded, it would take the credit of the payer who does sign it
   * elsewhere. Neither is one recorded where as many of the balance are watched already.
   */
  async noteUnused(signed: SignedPayment, order: TakeOrder): Promise<Payment | null> {
    const { head, refusal, risk } = await this.check(signed, this.networkOf(signed.accepted)!.ready!);
    if (refusal !== null) return null;
    const created = this.newPayment(signed, order, externalOf(signed), head.finalized, risk);
    const reason = "The balance covered the request when its turn came.";
    const payment: Payment = { ...created, state: "unused", reason, nextPollAt: this.transfers.later() };
    const added = await this.deps.store.add(payment, [WATCHED_UNUSED]);
    return added.kind === "capped" ? null : payment;
  }

  /** Finds out what has become of the payment, and does what is next. */
  async poll(payment: Payment): Promise<Payment> {
    const network = await this.networkOf(orderOf(payment))?.prepare();
    // The operator took it out, or its node is away: it is looked at until it is there again.
    if (network == null)
      return this.transfers.change(payment, () => ({ nextPollAt: this.transfers.later() }));
    return this.transfers.advance(payment, network);
  }

  private newPayment(
    signed: SignedPayment,
    order: TakeOrder,
    external: string,
    fromBlock: number,
    risk: GasRisk,
  ): Payment {
    const now = this.deps.clock.now();
    const { authorization, accepted, signature } = signed;
    const { network, asset, payTo } = accepted;
    const { balanceId, keyId, amount, idempotencyKey, isInline } = order;
    return {
      ...JUST_CREATED,
      ...{ balanceId, keyId, amount, idempotencyKey, isInline },
      id: newId("pay", this.deps.random),
      rail: this.name,
      external,
      payer: authorization.from,
      order: JSON.stringify({
        network,
        asset,
        payTo,
        authorization,
        signature,
        // Later ones may still be replaced, also by fewer.
        fromBlock,
        sent: [],
        ...(risk.isContract ? { isContract: true } : {}),
        ...(order.isOwners ? { isOwners: true } : {}),
      } satisfies X402Order),
      gas: gasAtRisk(risk),
      createdAt: now,
      changedAt: now,
      nextPollAt: epochMs(now + this.deps.pace.leaseMs),
    };
  }

  /** A payment that is known: of somebody else, on its way, or one that was not needed. */
  private async again(known: Payment, { balanceId }: TakeOrder): Promise<Taken> {
    if (known.balanceId !== balanceId)
      return { kind: "refused", why: "The authorization was presented for another balance before." };
    if (known.state === "rejected") return rejected(known);
    if (known.state === "failed") return { kind: "refused", why: known.reason ?? "The payment has failed." };
    // No cap was looked at for it.
    if (known.state === "unused")
      return {
        kind: "refused",
        why: "The payment was not needed when it was first presented: sign another.",
      };
    const network = this.networkOf(orderOf(known))?.ready;
    if (network == null) return paid(known);
    return paid(await this.followed(known, network));
  }

  private followed(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    return this.awaiting.do(payment.id, () => this.transfers.whenDecided(payment, network));
  }

  private recent(balanceId: BalanceId, keyId: KeyId | null): Promise<readonly Payment[]> {
    return this.deps.store.list({ balanceId, keyId, state: null }, MAX_RECENT, null);
  }

  private check(signed: SignedPayment, { chain, settler, token }: ReadyNetwork): Promise<Checked> {
    return this.checking.do(JSON.stringify(signed), async () => {
      const terms = (await settler.terms?.()) ?? null;
      const [head, refusal, isContract] = await Promise.all([
        chain.head(),
        chain.refusal(signed, token, terms),
        terms !== null && chain.isContract(signed.authorization.from),
      ]);
      return { head, refusal, risk: { terms, isContract } };
    });
  }

  /** What waits for a block is moved on also where nobody looks at its payment any more. */
  private async tend({ ready }: OpenNetwork): Promise<number> {
    try {
      return (await ready?.settler.tend?.()) ?? 0;
    } catch (error) {
      this.deps.log("gas account", { error: String(error) });
      return this.queuedNonces;
    }
  }

  private networkOf(
    requirements: Pick<PaymentRequirements, "network" | "asset" | "payTo">,
  ): OpenNetwork | null {
    const matches = ({ network }: OpenNetwork) =>
      network.network === requirements.network &&
      network.asset === requirements.asset &&
      network.payTo === requirements.payTo;
    return this.networks.find(matches) ?? null;
  }

  private repeatsSince(): number {
    return this.deps.clock.now() - REPEATS_MS;
  }
}

export interface X402Deps extends TransferDeps {
  readonly networks: readonly X402Network[];
  /** Reaches a network's node and its settler. */
  open(network: X402Network): Promise<OpenParts>;
  readonly random: RandomBytes;
}

/** Who pays how much into what. */
export interface TakeOrder {
  readonly balanceId: BalanceId;
  readonly keyId: KeyId | null;
  readonly amount: NanoUsd;
  readonly isInline: boolean;
  readonly idempotencyKey: string | null;
  /** From `standsForOwner`: the balance is suspended if the payer is on a sanctions list. */
  readonly isOwners: boolean;
  readonly caps: readonly PaymentCap[];
}

/** What makes two orders the same. */
type OrderTerms = Pick<TakeOrder, "balanceId" | "keyId" | "amount" | "isInline" | "idempotencyKey">;

/** `refused`: nothing moved, and another payment may do. `paid`: as far as the payment has come. */
export type Taken =
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "capped"; readonly cap: AmountCap | CountCap }
  | { readonly kind: "rejected"; readonly isSuspended: boolean }
  | { readonly kind: "used key" }
  | { readonly kind: "paid"; readonly payment: Payment };

/** The payment; otherwise the refusal, an offer again where another payment may do. */
export function paymentOf(
  taken: Taken,
  offered: (why: string) => Refusal,
  contact: string | null,
): Payment | Refusal {
  switch (taken.kind) {
    case "refused":
      return offered(taken.why);
    case "capped":
      return capReached(taken.cap);
    case "rejected":
      return taken.isSuspended ? suspension("sanctions", contact) : listedPayer();
    case "used key":
      return usedKey();
    case "paid":
      return taken.payment;
  }
}

const paid = (payment: Payment): Taken => ({ kind: "paid", payment });

const rejected = (payment: Payment): Taken => ({
  kind: "rejected",
  isSuspended: orderOf(payment).isOwners === true,
});

const listedPayer = (): Refusal =>
  refuse(
    "invalid_request",
    "The wallet that signed the payment is on a sanctions list. The payment was refused, and nothing was moved.",
    { param: "payment-signature" },
  );

/** For a payment that is not recorded yet; `refusal` says why its transfer would not be carried out. */
interface Checked {
  readonly head: ChainHead;
  readonly refusal: string | null;
  readonly risk: GasRisk;
}

/** Before the last final one, in which a transfer is looked for that was made before it was presented. */
const EARLIER_BLOCKS = 2_000;
/** The money is here. */
const NO_CAPS: readonly PaymentCap[] = [];
const WATCHED_UNUSED: CountCap = { of: "unused", most: 16 };

/** Payments of a balance that are searched for one that was not answered, or is under way. */
const MAX_RECENT = 64;
/** After the last change of a payment, the same order again is taken for a repeated call for so long. */
const REPEATS_MS = 600_000;

const isSameOrder = (payment: Payment, order: OrderTerms): boolean =>
  payment.rail === "x402" &&
  payment.isInline === order.isInline &&
  payment.keyId === order.keyId &&
  payment.amount === order.amount &&
  payment.idempotencyKey === order.idempotencyKey;

const isUnanswered = (payment: Payment, since: number): boolean => {
  if (UNDER_WAY.has(payment.state)) return true;
  const isHere = payment.state === "held" || payment.state === "credited";
  return isHere && payment.changedAt > since && orderOf(payment).isAnswered !== true;
};
