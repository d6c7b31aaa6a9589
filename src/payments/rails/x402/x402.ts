import { type Credit, type Debit, type TooMuch, tookBack } from "../../../ledger/credit.ts";
import { type Clock, type EpochMs, epochMs, pause } from "../../../units/clock.ts";
import { type Refusal, refuse } from "../../../units/errors/refusal.ts";
import { suspension } from "../../../units/errors/suspension-refusal.ts";
import type { Figure } from "../../../units/figure.ts";
import { type BalanceId, type KeyId, newId } from "../../../units/id.ts";
import type { Log } from "../../../units/log.ts";
import type { RandomBytes } from "../../../units/random.ts";
import { SingleFlight } from "../../../units/single-flight.ts";
import { type NanoUsd, ZERO_USD } from "../../../units/usd.ts";
import { type Payment, type PaymentChange, type PaymentState, paymentKey } from "../../payment.ts";
import type { AmountCap, CountCap, PaymentCap, PaymentStore } from "../../payment-store.ts";
import { capReached, gasRefusal, usedKey } from "../../refusals.ts";
import type { PaymentPace } from "../payment-pace.ts";
import { externalOf, mismatch, type SignedPayment } from "./authorization.ts";
import type { ChainHead, Movement } from "./chain.ts";
import { failureChange, type GasRisk, gasAtRisk, isGivenUp, riskCaps, wasteChange } from "./gas-risk.ts";
import { amountOf, type X402Network } from "./network.ts";
import { nextStep, orderOf, RAN_OUT, type Step, type X402Order } from "./next-step.ts";
import type { OfferedNetwork, PaymentRequirements } from "./offer.ts";
import { OpenNetwork, type ReadyNetwork } from "./open-network.ts";
import type { OpenParts } from "./redacted-parts.ts";
import type { Sanctions } from "./sanctions.ts";

/**
 * Payments by x402: a payer signs a transfer, somebody carries it out, and the chain says whether that happened. Nobody
 * else is believed. What is to be done next follows from the payment's state and from the chain alone, so any process that polls
 * at it, after whichever interruption, does the same.
 */
export class X402Rail {
  readonly name = "x402";
  private readonly networks: readonly OpenNetwork[];
  /** Balances with a payment that may have been sent, in this process; bounded by the payments under way. */
  private readonly underWay = new Map<BalanceId, Payment["id"]>();
  /** Presented at this moment, however often: what is asked of the chain about each. */
  private readonly checking = new SingleFlight<string, Checked>();
  private readonly taking = new SingleFlight<string, Taken>();
  private readonly awaiting = new SingleFlight<Payment["id"], Payment>();
  private queuedNonces = 0;
  private oldestSubmittedAt: EpochMs | null = null;

  constructor(private readonly deps: X402Deps) {
    this.networks = deps.networks.map((network) => new OpenNetwork(network, deps.open));
  }

  /** Networks whose nodes have answered; the others are asked again. */
  offered(): OfferedNetwork[] {
    return this.networks.flatMap(({ ready }) => ready ?? []);
  }

  /** Asks the nodes that have not answered yet, and what other gateways have found out. */
  async prepare(): Promise<void> {
    await Promise.all([...this.networks.map((one) => one.prepare()), this.deps.sanctions.refresh()]);
    for (const id of [...this.underWay.values()]) this.note((await this.deps.store.find(id))!);
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

  /**
   * A payment into the balance of which nobody knows yet whether it moves. The store is asked too: another process may
   * work on it, or the one that did has ended.
   */
  async pending(balanceId: BalanceId): Promise<Payment["id"] | null> {
    const known = this.underWay.get(balanceId);
    if (known !== undefined) return known;
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
      return this.record(payment, order, caps, () => this.carryOut(payment, network));
    }
    // It may have been recorded meanwhile, and carried out.
    const recorded = await this.deps.store.byExternal(this.name, external);
    if (recorded !== null) return this.again(recorded, order);
    if ("error" in checked) throw checked.error;
    const fromBlock = Math.max(0, checked.head.finalized - EARLIER_BLOCKS);
    if (!(await this.mayBeHere(signed, fromBlock, network)))
      return { kind: "refused", why: `The payment would not be carried out: ${checked.refusal}.` };
    const payment = this.newPayment(signed, order, external, fromBlock, checked.risk);
    return this.record(payment, order, NO_CAPS, () => this.findOut(payment, network));
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
    this.note(payment);
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
    const payment: Payment = { ...created, state: "unused", reason, nextPollAt: this.later() };
    const added = await this.deps.store.add(payment, [WATCHED_UNUSED]);
    return added.kind === "capped" ? null : payment;
  }

  /** Finds out what has become of the payment, and does what is next. */
  async poll(payment: Payment): Promise<Payment> {
    const order = orderOf(payment);
    const network = await this.networkOf(order)?.prepare();
    // The operator took it out, or its node is away: it is looked at until it is there again.
    if (network == null) return this.change(payment, () => ({ nextPollAt: this.later() }));
    const { chain } = network;
    const [head, movement] = await Promise.all([
      chain.head(),
      chain.movement(order.authorization, order.fromBlock),
    ]);
    const mayBeOver =
      movement.kind === "unused" && head.finalizedTime >= Number(order.authorization.validBefore);
    const isUnusedAtFinality = mayBeOver && (await chain.unusedAt(order.authorization, head.finalized));
    const isOurs = movement.kind === "moved" && (await this.carriedOut(payment, movement, network));
    const sight = { head, movement, isOurs, isUnusedAtFinality, now: this.deps.clock.now() };
    return this.do(payment, nextStep(payment, network, sight, this.deps.pace), network);
  }

  /**
   * Whether this store had the transfer carried out. That it is on the chain does not say so: the signature is public, and
   * another store with the same address would credit it too.
   */
  private async carriedOut(
    payment: Payment,
    { transaction, sender }: MovedTransfer,
    { settler }: ReadyNetwork,
  ): Promise<boolean | null> {
    const { sent = [payment.transaction], isAnswerLost = false } = orderOf(payment);
    return sent.includes(transaction) || settler.hasSent(sender, isAnswerLost);
  }

  private async do(payment: Payment, step: Step, network: ReadyNetwork): Promise<Payment> {
    switch (step.kind) {
      case "write":
        if (IS_MOVED.has(step.change.state) && !IS_SCREENED.has(payment.state)) {
          const { transaction = payment.transaction } = step.change;
          const held = await this.turnedDown(
            payment,
            { state: "held", transaction, nextPollAt: null },
            network,
          );
          if (held !== null) return held;
        }
        return step.change.state === "failed"
          ? this.fail(payment, step.change, network)
          : this.stillChange(payment, step.change);
      case "begin":
        return this.begin(payment, network);
      case "send":
        return this.send(payment, network);
      case "take back":
        return this.takeBack(payment, step.reason);
    }
  }

  /** The debit is on the books first, under a key of its own: a retry finds it made. */
  private async takeBack({ id, balanceId, credited }: Payment, reason: string): Promise<Payment> {
    const { debit, store, clock } = this.deps;
    const idempotencyKey = paymentKey(id, "reorg");
    const done = await debit({
      balanceId,
      amount: { upTo: credited },
      idempotencyKey,
      note: reason,
      at: clock.now(),
    });
    const debited = tookBack(done);
    const lost = (credited - debited) as NanoUsd;
    return store.change(id, ({ state }) =>
      state === "credited"
        ? { state: "failed", reason, nextPollAt: null, debited, lost, shouldBe: ZERO_USD }
        : null,
    );
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
    return {
      id: newId("pay", this.deps.random),
      rail: this.name,
      external,
      balanceId: order.balanceId,
      keyId: order.keyId,
      state: "created",
      amount: order.amount,
      payer: authorization.from,
      transaction: null,
      reason: null,
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
      idempotencyKey: order.idempotencyKey,
      isInline: order.isInline,
      credited: ZERO_USD,
      lost: ZERO_USD,
      shouldBe: null,
      gas: gasAtRisk(risk),
      wastedAt: null,
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
    if (network == null) return { kind: "paid", payment: known };
    return { kind: "paid", payment: await this.followed(known, network) };
  }

  private followed(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    return this.awaiting.do(payment.id, () => this.await(payment, network));
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

  /** The payment is durable: whatever fails from here on, the answer is the payment, and never another offer. */
  private async carryOut(payment: Payment, network: ReadyNetwork): Promise<Taken> {
    const started = await this.begin(payment, network).catch((error) => this.interrupted(payment, error));
    return started.state === "rejected"
      ? rejected(started)
      : { kind: "paid", payment: await this.await(started, network) };
  }

  /** What has become of a payment that nobody is asked to carry out. */
  private async findOut(payment: Payment, network: ReadyNetwork): Promise<Taken> {
    const found = await this.poll(payment).catch((error) => this.interrupted(payment, error));
    return { kind: "paid", payment: await this.await(found, network) };
  }

  /** Gives up the lease, so that the watch goes on with it. */
  private async interrupted(payment: Payment, error: unknown): Promise<Payment> {
    this.deps.log("payment", { id: payment.id, error: String(error) });
    const soon = ({ nextPollAt }: Payment) => (nextPollAt === null ? null : { nextPollAt: this.later() });
    // Where the store is what failed, the lease ends it.
    return this.change(payment, soon).catch(() => payment);
  }

  /** Screens the payer, and asks for the transfer once it is durable that this may happen. */
  private async begin(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    const { transaction } = payment;
    const change = { state: "rejected", transaction, nextPollAt: this.later() } as const;
    const rejected = await this.turnedDown(payment, change, network);
    if (rejected !== null) return rejected;
    const nextPollAt = epochMs(this.deps.clock.now() + this.deps.pace.leaseMs);
    const submitted = await this.stillChange(payment, { state: "submitted", reason: null, nextPollAt });
    // Else it was decided by somebody else meanwhile.
    return submitted.state === "submitted" ? this.send(submitted, network) : submitted;
  }

  /**
   * Null where the payer may pay. Money that they have moved by themselves is held: it is here. While they still can,
   * the payment is looked at.
   */
  private async turnedDown(
    payment: Payment,
    change: Pick<Payment, "state" | "transaction" | "nextPollAt">,
    { network, chain }: ReadyNetwork,
  ): Promise<Payment | null> {
    const { authorization, isOwners } = orderOf(payment);
    if (!(await this.deps.sanctions.isHit(authorization.from, network, chain))) return null;
    // First: nobody decides about the payment again.
    if (isOwners === true) await this.deps.suspend(payment.balanceId, `payment ${payment.id}`);
    const reason = isOwners === true ? LISTED : `${LISTED} ${NOT_SUSPENDED}`;
    return this.change(payment, () => ({ ...change, reason }));
  }

  private async send(sought: Payment, network: ReadyNetwork): Promise<Payment> {
    const nextPollAt = this.later();
    const fate = sought.transaction === null ? "unknown" : await network.chain.fate(sought.transaction);
    if (fate === "waiting") return this.stillChange(sought, { nextPollAt });
    const payment = fate === "mined" ? await this.failedOnce(sought, network) : sought;
    // Else it was decided by somebody else meanwhile.
    return payment.state === sought.state ? this.sendNow(payment, network) : payment;
  }

  /** Counts the payment's transaction, which is in a block and did nothing, once. */
  private async failedOnce(payment: Payment, { chain, settler }: ReadyNetwork): Promise<Payment> {
    const { state, transaction } = payment;
    const gas =
      settler.terms === undefined ? null : await chain.wastedBy(transaction!, orderOf(payment).authorization);
    return this.change(payment, (present) =>
      present.state === state && present.transaction === transaction
        ? failureChange(present, gas, this.deps.clock.now())
        : null,
    );
  }

  /** An authorization may run out before it was time to send it again, which is when failures are counted. */
  private async fail(
    payment: Payment,
    change: PaymentChange,
    { chain, settler }: ReadyNetwork,
  ): Promise<Payment> {
    const { state, transaction } = payment;
    const isOurs = transaction !== null && settler.terms !== undefined;
    const isMined = isOurs && (await chain.fate(transaction)) === "mined";
    const gas = isMined ? await chain.wastedBy(transaction, orderOf(payment).authorization) : 0;
    return this.change(payment, (present) => {
      if (present.state !== state) return null;
      const isCounted = present.transaction !== transaction;
      return { ...wasteChange(present, isCounted ? 0 : gas, this.deps.clock.now()), ...change };
    });
  }

  private async sendNow(payment: Payment, { chain, settler, token }: ReadyNetwork): Promise<Payment> {
    const order = orderOf(payment);
    const { authorization, signature, network, asset, payTo, failures } = order;
    const nextPollAt = this.later();
    const still = (change: PaymentChange) => this.stillChange(payment, change);
    if (isGivenUp(order))
      return still({ nextPollAt, reason: `The transfer failed on the chain. Attempts: ${failures}.` });
    const refusal = await chain.refusal(order, token, (await settler.terms?.()) ?? null);
    if (refusal !== null) return still({ reason: `The transfer would fail: ${refusal}.`, nextPollAt });
    const accepted = { scheme: "exact", network, asset, payTo, amount: authorization.value } as const;
    // Durable first: where this process ends before the answer, nobody knows what it was.
    const marked = await still({
      order: JSON.stringify({ ...order, isAnswerLost: true } satisfies X402Order),
    });
    if (marked.state !== payment.state) return marked;
    const hint = await settler.settle({ accepted, authorization, signature }, token);
    const named = hint.transaction === undefined ? [] : [hint.transaction.toLowerCase()];
    const answered = {
      ...order,
      sentAt: this.deps.clock.now(),
      sent: [...(order.sent ?? []), ...named].slice(-MAX_SENT),
      isAnswerLost: order.isAnswerLost === true || hint.isAnswerLost === true,
    } satisfies X402Order;
    return still({
      order: JSON.stringify(answered),
      nextPollAt,
      ...(payment.state === "confirming" ? { state: "submitted" } : {}),
      ...(hint.transaction === undefined ? {} : { transaction: hint.transaction }),
      ...(hint.problem === undefined ? {} : { reason: `The facilitator says: ${hint.problem}.` }),
    });
  }

  /** Looks again and again until the payment is credited, or has taken as long as a request waits. */
  private async await(payment: Payment, { network }: Pick<ReadyNetwork, "network">): Promise<Payment> {
    const { clock } = this.deps;
    const untilMs = clock.elapsedMs() + network.waitMs;
    let present = payment;
    for (
      let pauseMs = FIRST_PAUSE_MS;
      !isDecided(present);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    ) {
      const looking = isBeingSent(present) ? this.reread(present) : this.poll(present);
      present = await looking.catch((error) => {
        this.deps.log("payment", { id: present.id, error: String(error) });
        return present;
      });
      const leftMs = untilMs - clock.elapsedMs();
      if (isDecided(present) || leftMs <= 0) break;
      await pause(clock, Math.min(pauseMs, leftMs));
    }
    return present;
  }

  private async reread({ id }: Payment): Promise<Payment> {
    return (await this.deps.store.find(id))!;
  }

  private async change(
    payment: Payment,
    decide: (payment: Payment) => PaymentChange | null,
  ): Promise<Payment> {
    return this.note(await this.deps.store.change(payment.id, decide));
  }

  /** Decided again on what is written: what somebody else has found out meanwhile stands. */
  private stillChange(payment: Payment, change: PaymentChange): Promise<Payment> {
    return this.change(payment, ({ state }) => (state === payment.state ? change : null));
  }

  private note(payment: Payment): Payment {
    const { balanceId, id } = payment;
    if (!isDecided(payment)) this.underWay.set(balanceId, id);
    else if (this.underWay.get(balanceId) === id) this.underWay.delete(balanceId);
    return payment;
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

  private later(): EpochMs {
    return epochMs(this.deps.clock.now() + this.deps.pace.watchMs);
  }
}

export interface X402Deps {
  readonly store: PaymentStore;
  /** As the books'. */
  debit(debit: Debit): Promise<Credit | TooMuch>;
  readonly networks: readonly X402Network[];
  /** Reaches a network's node and its settler. */
  open(network: X402Network): Promise<OpenParts>;
  readonly sanctions: Pick<Sanctions, "isHit" | "refresh">;
  /** For `sanctions`, by the gateway itself. */
  suspend(balance: BalanceId, note: string): Promise<void>;
  readonly pace: PaymentPace;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly log: Log;
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

const LISTED = "The payer is on a sanctions list.";
const NOT_SUSPENDED =
  "The key that presented the payment does not stand for the owner, so the balance was not suspended.";

type MovedTransfer = Extract<Movement, { kind: "moved" }>;

/** For a payment that is not recorded yet; `refusal` says why its transfer would not be carried out. */
interface Checked {
  readonly head: ChainHead;
  readonly refusal: string | null;
  readonly risk: GasRisk;
}

/** Named by settlers for one payment, of which the latest are kept: one in ten seconds for five minutes, twice over. */
const MAX_SENT = 64;
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

const UNDER_WAY: ReadonlySet<PaymentState> = new Set(["created", "submitted", "confirming"]);

const IS_MOVED: ReadonlySet<PaymentState | undefined> = new Set(["confirming", "credited", "held"]);
const IS_SCREENED: ReadonlySet<PaymentState> = new Set(["submitted", "confirming", "credited", "rejected"]);

const isDecided = ({ rail, state, reason }: Payment): boolean =>
  rail !== "x402" || !UNDER_WAY.has(state) || reason === RAN_OUT;

/** Somebody else is at it, who has a lease: were that over, the watch would be. */
const isBeingSent = (payment: Payment): boolean =>
  payment.state === "created" || (payment.state === "submitted" && orderOf(payment).sentAt === undefined);

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
