import { type Credit, type Debit, type TooMuch, tookBack } from "../../../ledger/credit.ts";
import { type Clock, type EpochMs, epochMs, pause } from "../../../units/clock.ts";
import type { BalanceId } from "../../../units/id.ts";
import type { Log } from "../../../units/log.ts";
import { type NanoUsd, ZERO_USD } from "../../../units/usd.ts";
import { type Payment, type PaymentChange, type PaymentState, paymentKey } from "../../payment.ts";
import type { PaymentStore } from "../../payment-store.ts";
import type { PaymentPace } from "../payment-pace.ts";
import type { Movement } from "./chain.ts";
import { failureChange, isGivenUp, wasteChange } from "./gas-risk.ts";
import { nextStep, orderOf, RAN_OUT, type Step, type X402Order } from "./next-step.ts";
import type { ReadyNetwork } from "./open-network.ts";
import type { Sanctions } from "./sanctions.ts";

/**
 * Carries out the transfers of recorded payments. What is to be done next follows from the payment's state and from the
 * chain alone, so any process that looks at it, after whichever interruption, does the same.
 */
export class X402Transfers {
  constructor(private readonly deps: TransferDeps) {}

  /** The payment is durable: whatever fails from here on, the answer is the payment, and never another offer. */
  async carryOut(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    const started = await this.begin(payment, network).catch((error) => this.interrupted(payment, error));
    return this.whenDecided(started, network);
  }

  /** What has become of a payment that nobody is asked to carry out. */
  async findOut(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    const found = await this.advance(payment, network).catch((error) => this.interrupted(payment, error));
    return this.whenDecided(found, network);
  }

  /** Finds out what has become of the payment, and does what is next. */
  async advance(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    const order = orderOf(payment);
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

  /** Screens the payer, and asks for the transfer once it is durable that this may happen. */
  private async begin(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    const { transaction } = payment;
    const change = { state: "rejected", transaction, nextPollAt: this.later() } as const;
    const rejected = await this.turnedDown(payment, change, network);
    if (rejected !== null) return rejected;
    const nextPollAt = epochMs(this.deps.clock.now() + this.deps.pace.leaseMs);
    const submitted = await this.stillChange(payment, {
      state: "submitted",
      reason: null,
      nextPollAt,
    });
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
  async whenDecided(payment: Payment, network: ReadyNetwork): Promise<Payment> {
    const { clock } = this.deps;
    const untilMs = clock.elapsedMs() + network.network.waitMs;
    let present = payment;
    for (
      let pauseMs = FIRST_PAUSE_MS;
      !isDecided(present);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    ) {
      const looking = isBeingSent(present) ? this.reread(present) : this.advance(present, network);
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

  change({ id }: Payment, decide: (payment: Payment) => PaymentChange | null): Promise<Payment> {
    return this.deps.store.change(id, decide);
  }

  /** Decided again on what is written: what somebody else has found out meanwhile stands. */
  private stillChange(payment: Payment, change: PaymentChange): Promise<Payment> {
    return this.change(payment, ({ state }) => (state === payment.state ? change : null));
  }

  /** When the watch looks at it again. */
  later(): EpochMs {
    return epochMs(this.deps.clock.now() + this.deps.pace.watchMs);
  }

  private async reread({ id }: Payment): Promise<Payment> {
    return (await this.deps.store.find(id))!;
  }

  /** Gives up the lease, so that the watch goes on with it. */
  private async interrupted(payment: Payment, error: unknown): Promise<Payment> {
    this.deps.log("payment", { id: payment.id, error: String(error) });
    const soon = ({ nextPollAt }: Payment) => (nextPollAt === null ? null : { nextPollAt: this.later() });
    // Where the store is what failed, the lease ends it.
    return this.change(payment, soon).catch(() => payment);
  }
}

export interface TransferDeps {
  readonly store: PaymentStore;
  readonly pace: PaymentPace;
  readonly clock: Clock;
  /** As the books'. */
  debit(debit: Debit): Promise<Credit | TooMuch>;
  readonly sanctions: Pick<Sanctions, "isHit" | "refresh">;
  /** For `sanctions`, by the gateway itself. */
  suspend(balance: BalanceId, note: string): Promise<void>;
  readonly log: Log;
}

const LISTED = "The payer is on a sanctions list.";
const NOT_SUSPENDED =
  "The key that presented the payment does not stand for the owner, so the balance was not suspended.";

/** It is known whether the payment moves. */
export const isDecided = ({ rail, state, reason }: Payment): boolean =>
  rail !== "x402" || !UNDER_WAY.has(state) || reason === RAN_OUT;

export const UNDER_WAY: ReadonlySet<PaymentState> = new Set(["created", "submitted", "confirming"]);

type MovedTransfer = Extract<Movement, { kind: "moved" }>;

/** Named by settlers for one payment, of which the latest are kept: one in ten seconds for five minutes, twice over. */
const MAX_SENT = 64;

const IS_MOVED: ReadonlySet<PaymentState | undefined> = new Set(["confirming", "credited", "held"]);
const IS_SCREENED: ReadonlySet<PaymentState> = new Set(["submitted", "confirming", "credited", "rejected"]);

/** Somebody else is at it, who has a lease: were that over, the watch would be. */
const isBeingSent = (payment: Payment): boolean =>
  payment.state === "created" || (payment.state === "submitted" && orderOf(payment).sentAt === undefined);

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
