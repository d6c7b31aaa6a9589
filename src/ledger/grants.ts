import { type Clock, pause } from "../units/clock.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { Grant, Statement } from "./authority.ts";
import { boundOf, type CounterId } from "./counter.ts";
import { type Grantable, GrantNegotiation } from "./grant-negotiation.ts";
import { LEASE_MS } from "./node-lease.ts";

/**
 * A ledger's side of the grants by which ledgers share limits: the statements it sends to the Authority, and how it applies
 * the answers. Limits stay strict because `granted` here is never above the Authority's books: the ledger lowers it before it
 * requests less, and raises it only by an answer to a statement that no smaller one has followed.
 *
 * The ledger requests more than one request needs, and again before that runs out, so that requests do not wait for the
 * network. When a limit is nearly reached, it requests only what is needed and returns what is unused. Before it refuses a
 * request, every other ledger with an open grant has been asked what it has left, and has answered.
 */
export class Grants {
  private readonly negotiations = new Map<CounterId, GrantNegotiation>();
  /** Negotiations that await an answer, or whose counter is scarce. */
  private readonly watched = new Set<GrantNegotiation>();
  private statements = 0;
  private recalls = 0;
  private numbers = 0;
  /** When `usable` was last seen to be true. */
  private usableMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly ledger: string,
    private readonly epoch: number,
    private readonly clock: Pick<Clock, "after" | "elapsedMs">,
    /** Sends a statement; its answer may come late, twice or never. */
    private readonly send: (statement: Statement) => void,
    /** False while grants must not be used: without a lease, other nodes no longer wait for this ledger. */
    readonly usable: () => boolean = () => true,
  ) {}

  /** Requests room on all of these counters at once, under the request's claim. */
  async requestAll(requests: readonly GrantRequest[], claim: GrantClaim): Promise<GrantAnswer> {
    claim.release();
    if (requests.every(([counter, limit, amount]) => room(counter, limit) >= amount)) return "room";
    claim.hold(
      requests.map(([counter, limit, amount]) => ({ negotiation: this.negotiation(counter, limit), amount })),
    );
    const answers = await Promise.all(requests.map((request) => this.answerTo(request)));
    return WORST_FIRST.find((one) => answers.includes(one))!;
  }

  async requestOne(counter: Grantable, amount: NanoUsd, limit: NanoUsd): Promise<GrantAnswer> {
    const claim = new GrantClaim();
    try {
      return await this.requestAll([[counter, limit, amount]], claim);
    } finally {
      claim.release();
    }
  }

  private async answerTo([counter, limit, amount]: GrantRequest): Promise<GrantAnswer> {
    if (room(counter, limit) >= amount) return "room";
    if (counter.used() + amount > limit) return "short";
    const negotiation = this.negotiation(counter, limit);
    const since = this.numbers;
    const untilMs = this.clock.elapsedMs() + RECALL_MS;
    /** The inquiry whose answers decide whether there is room; 0 until one is needed. */
    let awaited = 0;
    for (let round = 1; round <= MAX_ROUNDS; round++) {
      this.need(negotiation, amount);
      if (!(await this.answers(negotiation))) return "unanswered";
      if (room(counter, limit) >= amount) return "room";
      const { answer } = negotiation;
      // The counter was retired just now: request its grant again.
      if (answer === null) {
        await pause(this.clock, SPARE_MS);
        continue;
      }
      const { short, granted, free, spare, open, inquiry, answered } = answer;
      if (short && negotiation.lastAnswered > since) {
        // Some of the grant may have been returned since, on another ledger's request.
        const lacking = amount - (granted - counter.used()) - free;
        if (open < lacking) return "short";
        if (awaited > 0 && answered >= awaited && spare < lacking) return "short";
        if (awaited === 0) awaited = inquiry + 1;
      }
      if (short) await pause(this.clock, Math.min(round * SPARE_MS, MAX_SPARE_MS));
      if (room(counter, limit) >= amount) return "room";
      negotiation.awaited = Math.max(negotiation.awaited, awaited);
      if (this.clock.elapsedMs() >= untilMs) break;
    }
    // A ledger that has not answered yet may have enough left.
    return "held";
  }

  /** Requests room for `amount` without waiting; the caller tries again later. */
  requestInBackground(counter: Grantable, amount: NanoUsd, limit: NanoUsd): void {
    if (room(counter, limit) >= amount || this.negotiation(counter, limit).waitingAmount > 0) return;
    void this.requestOne(counter, amount, limit);
  }

  /** After `amount` was taken: requests more before it is needed. */
  prefetch(counter: Grantable, amount: NanoUsd, limit: NanoUsd): void {
    if (!counter.isPrefetched || room(counter, limit) >= amount * LOW_REQUESTS) return;
    const negotiation = this.negotiation(counter, limit);
    const nothingLeft = negotiation.answer !== null && negotiation.answer.free <= 0;
    if (!negotiation.isAnswered || nothingLeft || this.scarce(negotiation)) return;
    this.state(negotiation, counter.used(), this.ahead(negotiation, amount));
  }

  giveBack(counter: Grantable, limit: NanoUsd): void {
    if (counter.used() < counter.granted) this.returnSlack(this.negotiation(counter, limit));
  }

  /**
   * After a limit was lowered: returns what is unused of counters with these id prefixes, and learns what other ledgers have
   * of them. True once the Authority has answered.
   */
  async release(prefixes: readonly string[]): Promise<boolean> {
    const negotiations = [...this.negotiations.values()].filter(({ counter }) =>
      prefixes.some((prefix) => counter.id.startsWith(prefix)),
    );
    const stated = negotiations.map((negotiation) => {
      // Otherwise prefetching would take it before the ledgers that wait for it.
      this.markScarce(negotiation);
      const used = negotiation.counter.used();
      this.state(negotiation, used, used);
      return { negotiation, number: negotiation.lastStated };
    });
    for (const { negotiation, number } of stated) {
      // An answer to a later statement also shows that this one has arrived.
      while (negotiation.lastAnswered < number)
        // Waiting for a new lease here would deadlock: it is renewed only after this.
        if (!(await this.answers(negotiation, this.usable))) return false;
    }
    return true;
  }

  /**
   * Gives back what is granted of a counter that nobody uses, and has the Authority count what was spent of it as spent by
   * others, once all of that is shipped; false where requests wait for it, or an answer is on its way. The caller forgets
   * the counter: it counts from nothing if it is used again, and nothing is granted of it before this is done.
   */
  retire(counter: Grantable): boolean {
    const negotiation = this.negotiations.get(counter.id);
    if (negotiation === undefined) return counter.granted === 0;
    const { isAnswered, waitingAmount, retiring } = negotiation;
    if (!isAnswered || waitingAmount > 0 || retiring !== null) return false;
    negotiation.retiring = counter.used();
    this.state(negotiation, 0, 0);
    return true;
  }

  /** Whether the counter is being retired. */
  isRetiring(id: CounterId): boolean {
    return (this.negotiations.get(id)?.retiring ?? null) !== null;
  }

  /** Another ledger runs short of this counter; `inquiry` is the number of the latest inquiry. */
  recall(id: CounterId, inquiry: number): void {
    const negotiation = this.negotiations.get(id);
    if (negotiation === undefined) return;
    this.recalls += 1;
    negotiation.inquiry = Math.max(negotiation.inquiry, inquiry);
    this.markScarce(negotiation);
    this.returnSlack(negotiation);
    // Other ledgers wait until the Authority knows how much of a recent grant is in use, and for an answer to the inquiry.
    const used = negotiation.counter.used();
    if (negotiation.statedUse < used || negotiation.statedInquiry < negotiation.inquiry)
      this.state(negotiation, used, Math.max(negotiation.requested, used));
  }

  /** Waits for a lease that just ran out, which a loaded store may renew late; false if it is not renewed. */
  async awaitLease(): Promise<boolean> {
    while (!this.usable()) {
      if (this.clock.elapsedMs() - this.usableMs > AWAIT_LEASE_MS) return false;
      await pause(this.clock, SPARE_MS);
    }
    return true;
  }

  /** Applies an answer of the Authority. */
  receive(grant: Grant): void {
    const { counter, number, granted, elsewhere, short, open } = grant;
    const negotiation = this.negotiations.get(counter);
    // If a later statement requested less, this grant may have been returned already.
    if (negotiation === undefined || number <= negotiation.lastAnswered || number < negotiation.lastLowered)
      return;
    negotiation.lastAnswered = number;
    if (negotiation.retiring !== null) {
      if (grant.retired === true) return this.retired(negotiation);
      return negotiation.notify();
    }
    negotiation.answer = grant;
    negotiation.counter.granted = granted;
    negotiation.counter.elsewhere = elsewhere;
    // Others were asked only if the grant is short; otherwise all of theirs may come back.
    negotiation.counter.openElsewhere = (short ? Math.min(open, elsewhere) : elsewhere) as NanoUsd;
    if (number === negotiation.lastStated && granted < negotiation.requested) this.markScarce(negotiation);
    this.unwatch(negotiation);
    negotiation.notify();
  }

  /** Called a few times a second: repeats unanswered statements, and returns what is unused of scarce counters. */
  tick(): void {
    const nowMs = this.clock.elapsedMs();
    if (this.usable()) this.usableMs = nowMs;
    for (const negotiation of this.watched) {
      const { isAnswered, needed, requested, counter } = negotiation;
      const isDue = nowMs - negotiation.statedMs > RESTATE_MS;
      if (negotiation.retiring !== null) {
        // Something was not shipped yet, or the answer was lost.
        if (isDue) this.state(negotiation, 0, 0);
        continue;
      }
      if (!isAnswered && isDue) this.state(negotiation, needed, Math.max(requested, counter.used()));
      else if (isAnswered && negotiation.waitingAmount === 0) this.returnSlack(negotiation);
      // Watched until the answer arrives, because the statement may be lost.
      this.unwatch(negotiation);
    }
  }

  /** Called now and then: returns what has not been used for a while. */
  returnIdle(): void {
    const sinceMs = this.clock.elapsedMs() - IDLE_MS;
    for (const negotiation of this.negotiations.values()) {
      if (negotiation.statedMs < sinceMs && negotiation.usedAtLastCheck === negotiation.counter.used())
        this.returnSlack(negotiation);
      negotiation.usedAtLastCheck = negotiation.counter.used();
      // An unused rate is returned whole and forgotten. Money is not: its grant may be zero while requests still hold
      // credit that was taken back.
      if (
        negotiation.retiring === null &&
        negotiation.counter.granted === 0 &&
        negotiation.counter.used() === 0 &&
        negotiation.isAnswered &&
        negotiation.waitingAmount === 0
      )
        this.forget(negotiation.counter.id);
    }
  }

  /** Drops a counter that is over; the Authority counts what was granted of it until a statement gives it back. */
  forget(id: CounterId): void {
    const negotiation = this.negotiations.get(id);
    if (negotiation === undefined) return;
    this.watched.delete(negotiation);
    this.negotiations.delete(id);
  }

  get figures(): GrantFigures {
    let granted = 0;
    let stranded = 0;
    for (const { counter } of this.negotiations.values()) {
      if (!counter.id.startsWith("balance:")) continue;
      granted += counter.granted;
      stranded += Math.max(0, counter.granted - counter.used());
    }
    const { statements, recalls } = this;
    return { counters: this.negotiations.size, granted, stranded, statements, recalls };
  }

  /** States what waiting requests need, unless a statement is on its way that covers this one. */
  private need(negotiation: GrantNegotiation, amount: NanoUsd): void {
    const used = negotiation.counter.used();
    const { isAnswered, retiring, requested } = negotiation;
    if (!isAnswered && (retiring !== null || requested >= used + amount)) return;
    const needed = used + negotiation.waitingAmount;
    this.state(negotiation, needed, this.scarce(negotiation) ? needed : this.ahead(negotiation, amount));
  }

  /** The grant, in all, with room for several more requests like this one. */
  private ahead({ counter, limit, waitingAmount, answer }: GrantNegotiation, amount: NanoUsd): number {
    if (!counter.isPrefetched) return counter.used() + waitingAmount;
    const free = answer?.free ?? 0;
    // Without a limit, request as much again as is in use, so that a limit that is set later is not already granted away.
    const share = limit === MAX_NANO_USD ? counter.used() : free / counter.aheadShare;
    return Math.floor(counter.used() + waitingAmount + Math.max(amount * AHEAD_REQUESTS, share));
  }

  private returnSlack(negotiation: GrantNegotiation): void {
    const used = negotiation.counter.used();
    if (used < negotiation.counter.granted || used < negotiation.requested)
      this.state(negotiation, used, used);
  }

  /** Sends a statement. While the counter is retired, it states only that. */
  private state(negotiation: GrantNegotiation, needed: number, requested: number): void {
    const { counter, retiring } = negotiation;
    const number = ++this.numbers;
    if (retiring !== null) [needed, requested] = [0, retiring];
    if (requested < negotiation.requested) {
      // Lowered before the statement is sent, so that nothing is spent that is being returned.
      negotiation.lastLowered = number;
      counter.granted = Math.min(counter.granted, requested) as NanoUsd;
    }
    negotiation.needed = needed;
    negotiation.requested = requested;
    const used = retiring ?? counter.used();
    negotiation.statedUse = used as NanoUsd;
    negotiation.statedInquiry = negotiation.inquiry;
    negotiation.lastStated = number;
    negotiation.statedMs = this.clock.elapsedMs();
    this.watched.add(negotiation);
    this.statements += 1;
    this.send({
      ledger: this.ledger,
      epoch: this.epoch,
      number,
      counter: counter.id,
      used: used as NanoUsd,
      needed: needed as NanoUsd,
      requested: requested as NanoUsd,
      limit: negotiation.limit,
      answeredInquiry: negotiation.inquiry,
      inquiry: negotiation.awaited,
      ...(retiring === null ? {} : { retires: true }),
    });
  }

  /** The Authority has retired the counter: its grant is gone, and requests that wait for it start over. */
  private retired(negotiation: GrantNegotiation): void {
    const { counter, waiting, waitingAmount } = negotiation;
    negotiation.retiring = null;
    negotiation.answer = null;
    negotiation.needed = negotiation.requested = 0;
    negotiation.lastLowered = negotiation.lastStated;
    if (waitingAmount === 0 && waiting.size === 0) this.forget(counter.id);
    negotiation.notify();
  }

  /** Whether the Authority answers within the length of a lease; it may be loaded or restarting. */
  private async answers(
    negotiation: GrantNegotiation,
    hasLease: () => boolean | Promise<boolean> = () => this.awaitLease(),
  ): Promise<boolean> {
    const untilMs = this.clock.elapsedMs() + LOADED_MS;
    do {
      if (await this.answered(negotiation, this.clock.elapsedMs() + ANSWER_MS)) return true;
    } while ((await hasLease()) && this.clock.elapsedMs() < untilMs);
    return false;
  }

  private answered(negotiation: GrantNegotiation, untilMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const go = (answered: boolean) => {
        timer.cancel();
        negotiation.waiting.delete(go);
        resolve(answered);
      };
      const timer = this.clock.after(Math.max(0, untilMs - this.clock.elapsedMs()), () => go(false));
      negotiation.waiting.add(go);
    });
  }

  private markScarce(negotiation: GrantNegotiation): void {
    negotiation.scarceUntilMs = this.clock.elapsedMs() + SCARCE_MS;
    this.watched.add(negotiation);
  }

  /** Once it is answered, and nothing is lacking. */
  private unwatch(negotiation: GrantNegotiation): void {
    if (negotiation.isAnswered && !this.scarce(negotiation) && !negotiation.isOver)
      this.watched.delete(negotiation);
  }

  private scarce({ scarceUntilMs }: GrantNegotiation): boolean {
    return this.clock.elapsedMs() < scarceUntilMs;
  }

  private negotiation(counter: Grantable, limit: NanoUsd): GrantNegotiation {
    const known = this.negotiations.get(counter.id);
    if (known !== undefined) {
      known.limit = limit;
      // An idle key's rates are forgotten, but their grants are not.
      if (known.counter !== counter)
        counter.granted = known.retiring === null ? known.counter.granted : ZERO_USD;
      known.counter = counter;
      return known;
    }
    // Answers to statements of an earlier negotiation must not count for this one.
    const negotiation = new GrantNegotiation(counter, limit, this.numbers);
    this.negotiations.set(counter.id, negotiation);
    return negotiation;
  }
}

/**
 * Sends a statement once everything that it counts is durable. If a settlement were lost in a crash, recovery would charge
 * the hold at its last checkpoint, which may be more than the ledger still has granted. A dropped statement is repeated.
 */
export const onceDurable =
  (journal: { flushed(): Promise<boolean> }, send: (statement: Statement) => void) =>
  (statement: Statement): void =>
    void journal.flushed().then((durable) => {
      if (durable) send(statement);
    });

/** `held`: short for now; open requests of other ledgers may release some of what they hold. */
export type GrantAnswer = "room" | "short" | "held" | "unanswered";

/**
 * What a request waits for on all of its counters, until it is admitted or refused. Without it, one counter's grant would be
 * returned while the request waits for another's.
 */
export class GrantClaim {
  private parts: readonly { readonly negotiation: GrantNegotiation; readonly amount: NanoUsd }[] = [];

  hold(parts: GrantClaim["parts"]): void {
    this.parts = parts;
    for (const { negotiation, amount } of parts) negotiation.waitingAmount += amount;
  }

  release(): void {
    for (const { negotiation, amount } of this.parts) {
      negotiation.waitingAmount -= amount;
      if (negotiation.waitingAmount === 0) negotiation.awaited = 0;
    }
    this.parts = [];
  }
}

const WORST_FIRST: readonly GrantAnswer[] = ["unanswered", "short", "held", "room"];

export type GrantRequest = [counter: Grantable, limit: NanoUsd, amount: NanoUsd];

export interface GrantFigures {
  readonly counters: number;
  /** Granted of balances in this epoch, and the part that is neither spent nor held, in nano-dollars. */
  readonly granted: number;
  readonly stranded: number;
  readonly statements: number;
  readonly recalls: number;
}

/** Requests of the same size for which room is prefetched, and the number left at which it is prefetched again. */
const AHEAD_REQUESTS = 8;
const LOW_REQUESTS = 4;
/** An Authority that does not answer within this time is out of reach or loaded. */
const ANSWER_MS = 1_000;
/** Without an answer for longer, the lease has ended anyway. */
const LOADED_MS = LEASE_MS;
/**
 * How long a request waits for other ledgers to return what they have left. By then each has answered, or its lease is over
 * and it can return nothing.
 */
const RECALL_MS = LEASE_MS + 2_000;
const MAX_ROUNDS = 150;
const AWAIT_LEASE_MS = LEASE_MS / 2;
/**
 * Pauses before the Authority is asked again, first and longest. The first also passes before an inquiry, which all requests
 * that run short meanwhile share. So a counter has at most `1_000 / SPARE_MS` inquiries a second.
 */
const SPARE_MS = 25;
const MAX_SPARE_MS = 100;
const RESTATE_MS = 1_000;
/** For this long after any ledger ran short, only what is needed is requested. */
const SCARCE_MS = 5_000;
const IDLE_MS = 60_000;

const room = (counter: Grantable, limit: NanoUsd): number => boundOf(counter, limit) - counter.used();
