import { type Clock, pause } from "../units/clock.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { Grant, Statement } from "./authority.ts";
import { boundOf, type CounterId } from "./counter.ts";
import { LEASE_MS } from "./membership.ts";

/**
 * A ledger's side of the grants that it shares limits by: what it states to the Authority, and what it makes
 * of the answers. The rule that keeps limits strict is that `granted` here is never above what the Authority
 * has on its books: it is lowered before less is asked for, and raised only by answers to statements that
 * nothing smaller has followed.
 *
 * More is asked for than one request needs, and again before it runs out, so that requests do not wait for
 * the network. Where a limit is nearly reached, only what is needed is asked for, and what is not in use
 * flows back. Before a request is refused, everybody who may have something left that nobody knows of is
 * asked for it, and has answered.
 */
export class Grants {
  private readonly negotiations = new Map<CounterId, GrantNegotiation>();
  /** Desks with an answer outstanding, or whose counter is scarce. */
  private readonly watched = new Set<GrantNegotiation>();
  private statements = 0;
  private recalls = 0;
  private numbers = 0;
  /** When that was last looked at and so. */
  private usableMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly ledger: string,
    private readonly epoch: number,
    private readonly clock: Pick<Clock, "after" | "elapsedMs">,
    /** Sends a statement; its answer may come late, twice or never. */
    private readonly send: (statement: Statement) => void,
    /** False while grants must not be used, because the others may have counted this ledger out. */
    readonly usable: () => boolean = () => true,
  ) {}

  /** Requests room on all of these counters at once; `claim` is the request's. */
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
    /** The inquiry whose answers say whether there is room, once it is known that one is needed. */
    let awaited = 0;
    for (let round = 1; round <= MAX_ROUNDS; round++) {
      this.need(negotiation, amount);
      if (!(await this.isAnswered(negotiation))) return "unanswered";
      if (room(counter, limit) >= amount) return "room";
      // Whatever was free went to others, or to other requests of ours.
      const { answer } = negotiation;
      // The counter was retired just now: what is granted of it has to be requested again.
      if (answer === null) {
        await pause(this.clock, SPARE_MS);
        continue;
      }
      const { short, granted, free, spare, open, inquiry, answered } = answer;
      if (short && negotiation.lastAnswered > since) {
        // Some of what was granted may have been given back since, to somebody who asked for it.
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
    // Who was asked to give back and has not answered may have enough.
    return "held";
  }

  /** Asks for room for `amount` on behalf of something that cannot wait now, and will try again. */
  seek(counter: Grantable, amount: NanoUsd, limit: NanoUsd): void {
    if (room(counter, limit) >= amount || this.negotiation(counter, limit).waitingAmount > 0) return;
    void this.requestOne(counter, amount, limit);
  }

  /** After `amount` was taken: asks for more before it is needed. */
  prefetch(counter: Grantable, amount: NanoUsd, limit: NanoUsd): void {
    if (!counter.isPrefetched || room(counter, limit) >= amount * LOW_REQUESTS) return;
    const negotiation = this.negotiation(counter, limit);
    const nothingLeft = negotiation.answer !== null && negotiation.answer.free <= 0;
    if (negotiation.lastStated > negotiation.lastAnswered || nothingLeft || this.scarce(negotiation)) return;
    this.state(negotiation, counter.used(), this.ahead(negotiation, amount));
  }

  /** Gives back what is not in use. */
  giveBack(counter: Grantable, limit: NanoUsd): void {
    if (counter.used() < counter.granted) this.returnSlack(this.negotiation(counter, limit));
  }

  /**
   * After a limit was lowered: gives back what is not in use of counters whose ids begin with one of these, and
   * learns what the others have of them; true once the Authority has answered.
   */
  async release(prefixes: readonly string[]): Promise<boolean> {
    const negotiations = [...this.negotiations.values()].filter(({ counter }) =>
      prefixes.some((prefix) => counter.id.startsWith(prefix)),
    );
    const stated = negotiations.map((negotiation) => {
      // Asked for ahead of need at once, it would be gone before those who wait for it can take it.
      this.markScarce(negotiation);
      const used = negotiation.counter.used();
      this.state(negotiation, used, used);
      return { negotiation, number: negotiation.lastStated };
    });
    for (const { negotiation, number } of stated) {
      // Requests may state more all the while; an answer to that says that this has arrived, too.
      while (negotiation.lastAnswered < number)
        // The lease is renewed only once this is done.
        if (!(await this.isAnswered(negotiation, this.usable))) return false;
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
    const { lastStated, lastAnswered, waitingAmount } = negotiation;
    if (lastStated !== lastAnswered || waitingAmount > 0 || negotiation.retiring !== null) return false;
    negotiation.retiring = counter.used();
    this.state(negotiation, 0, 0);
    return true;
  }

  /** Whether what was spent of it is being forgotten. */
  isRetiring(id: CounterId): boolean {
    return (this.negotiations.get(id)?.retiring ?? null) !== null;
  }

  /** Another ledger runs short of this counter; `inquiry` is the latest one after it. */
  recall(id: CounterId, inquiry: number): void {
    const negotiation = this.negotiations.get(id);
    if (negotiation === undefined) return;
    this.recalls += 1;
    negotiation.inquiry = Math.max(negotiation.inquiry, inquiry);
    this.markScarce(negotiation);
    this.returnSlack(negotiation);
    // The Authority does not know that a recent grant is in use, and the others wait until it does. So
    // they do for an answer.
    const used = negotiation.counter.used();
    if (negotiation.statedUse < used || negotiation.statedInquiry < negotiation.inquiry)
      this.state(negotiation, used, Math.max(negotiation.requested, used));
  }

  /** Waits for a lease that ran out a moment ago, which a loaded store may renew late; false where it does not. */
  async awaitLease(): Promise<boolean> {
    while (!this.usable()) {
      if (this.clock.elapsedMs() - this.usableMs > AWAIT_LEASE_MS) return false;
      await pause(this.clock, SPARE_MS);
    }
    return true;
  }

  /** An answer of the Authority. */
  receive(grant: Grant): void {
    const { counter, number, granted, elsewhere, short, open } = grant;
    const negotiation = this.negotiations.get(counter);
    // If less was asked for since, what this answer grants may have been given back already.
    if (negotiation === undefined || number <= negotiation.lastAnswered || number < negotiation.lastLowered)
      return;
    negotiation.lastAnswered = number;
    if (negotiation.retiring !== null) {
      if (grant.retired === true) return this.retired(negotiation);
      for (const go of [...negotiation.waiting]) go(true);
      return;
    }
    negotiation.answer = grant;
    negotiation.counter.granted = granted;
    negotiation.counter.elsewhere = elsewhere;
    // Without being short, nobody was asked; then all of it may come back.
    negotiation.counter.openElsewhere = (short ? Math.min(open, elsewhere) : elsewhere) as NanoUsd;
    if (number === negotiation.lastStated && granted < negotiation.requested) this.markScarce(negotiation);
    if (number === negotiation.lastStated && !this.scarce(negotiation) && !isOver(negotiation))
      this.watched.delete(negotiation);
    for (const go of [...negotiation.waiting]) go(true);
  }

  /**
   * Called a few times a second: repeats statements that were not answered, and returns what is unused of
   * scarce counters.
   */
  tend(): void {
    const nowMs = this.clock.elapsedMs();
    if (this.usable()) this.usableMs = nowMs;
    for (const negotiation of this.watched) {
      const unanswered = negotiation.lastStated > negotiation.lastAnswered;
      if (negotiation.retiring !== null) {
        // Not everything was shipped, or the answer is lost.
        if (nowMs - negotiation.statedMs > RESTATE_MS) this.state(negotiation, 0, 0);
        continue;
      }
      if (unanswered && nowMs - negotiation.statedMs > RESTATE_MS) {
        this.state(
          negotiation,
          negotiation.needed,
          Math.max(negotiation.requested, negotiation.counter.used()),
        );
      } else if (!unanswered && negotiation.waitingAmount === 0) this.returnSlack(negotiation);
      // What was returned just now is watched until that is answered: it may not arrive.
      const isAnswered = negotiation.lastStated === negotiation.lastAnswered;
      if (isAnswered && !this.scarce(negotiation) && !isOver(negotiation)) this.watched.delete(negotiation);
    }
  }

  /** Called now and then: returns what has not been used for a while. */
  returnIdle(): void {
    const sinceMs = this.clock.elapsedMs() - IDLE_MS;
    for (const negotiation of this.negotiations.values()) {
      if (negotiation.statedMs < sinceMs && negotiation.usedAtLastCheck === negotiation.counter.used())
        this.returnSlack(negotiation);
      negotiation.usedAtLastCheck = negotiation.counter.used();
      // A rate that nobody uses is given back whole, and need not be remembered. Money must be: its grant may be
      // zero while requests still hold credit that was taken back.
      if (
        negotiation.retiring === null &&
        negotiation.counter.granted === 0 &&
        negotiation.counter.used() === 0 &&
        negotiation.lastStated === negotiation.lastAnswered &&
        negotiation.waitingAmount === 0
      ) {
        this.watched.delete(negotiation);
        this.negotiations.delete(negotiation.counter.id);
      }
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
    const isUnanswered = negotiation.lastStated > negotiation.lastAnswered;
    if (isUnanswered && (negotiation.retiring !== null || negotiation.requested >= used + amount)) return;
    const needed = used + negotiation.waitingAmount;
    this.state(negotiation, needed, this.scarce(negotiation) ? needed : this.ahead(negotiation, amount));
  }

  /** The grant in all that lets several more requests like this one go without asking. */
  private ahead({ counter, limit, waitingAmount, answer }: GrantNegotiation, amount: NanoUsd): number {
    if (!counter.isPrefetched) return counter.used() + waitingAmount;
    const free = answer?.free ?? 0;
    // Without a limit, as much again as is in use: a limit that is set later must not find it all granted.
    const share = limit === MAX_NANO_USD ? counter.used() : free / counter.aheadShare;
    return Math.floor(counter.used() + waitingAmount + Math.max(amount * AHEAD_REQUESTS, share));
  }

  private returnSlack(negotiation: GrantNegotiation): void {
    const used = negotiation.counter.used();
    if (used < negotiation.counter.granted || used < negotiation.requested)
      this.state(negotiation, used, used);
  }

  /** Who began to forget the counter, and whom others ask of it meanwhile, states no more than that. */
  private state(negotiation: GrantNegotiation, needed: number, requested: number): void {
    const { counter, retiring } = negotiation;
    const number = ++this.numbers;
    if (retiring !== null) [needed, requested] = [0, retiring];
    if (requested < negotiation.requested) {
      // Lowered before it is stated, so that nothing is spent that is on its way back.
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

  /** Nothing is granted any more; code that used the counter again meanwhile requests it again. */
  private retired(negotiation: GrantNegotiation): void {
    const { counter, waiting, waitingAmount } = negotiation;
    negotiation.retiring = null;
    negotiation.answer = null;
    negotiation.needed = negotiation.requested = 0;
    negotiation.lastLowered = negotiation.lastStated;
    if (waitingAmount === 0 && waiting.size === 0) {
      this.watched.delete(negotiation);
      this.negotiations.delete(counter.id);
    }
    for (const go of [...waiting]) go(true);
  }

  /**
   * Whether the Authority answers. A loaded one takes its time, and one that restarts is back soon: it is asked
   * again and waited for, for as long as a lease lasts.
   */
  private async isAnswered(
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

  private scarce({ scarceUntilMs }: GrantNegotiation): boolean {
    return this.clock.elapsedMs() < scarceUntilMs;
  }

  private negotiation(counter: Grantable, limit: NanoUsd): GrantNegotiation {
    const known = this.negotiations.get(counter.id);
    if (known !== undefined) {
      known.limit = limit;
      // A key's rates are forgotten when it is idle; what was granted of them is not.
      if (known.counter !== counter)
        counter.granted = known.retiring === null ? known.counter.granted : ZERO_USD;
      known.counter = counter;
      return known;
    }
    // Answers to a predecessor's statements must not be taken for answers to this negotiation's.
    const negotiation = new GrantNegotiation(counter, limit, this.numbers);
    this.negotiations.set(counter.id, negotiation);
    return negotiation;
  }
}

/**
 * Sends a statement once everything that it counts is durable. It counts what was settled at what that cost;
 * were the end lost with the process, the hold would be ended at its last checkpoint instead, which may cost
 * more than is still granted. A statement that is dropped is made again.
 */
export const onceDurable =
  (journal: { flushed(): Promise<boolean> }, send: (statement: Statement) => void) =>
  (statement: Statement): void =>
    void journal.flushed().then((durable) => {
      if (durable) send(statement);
    });

/**
 * `held`: short as far as anybody knows; others may have left some of what their open requests hold, and have not
 * said so yet.
 */
export type GrantAnswer = "room" | "short" | "held" | "unanswered";

/**
 * What a request waits for, on all of its counters, until it has taken it or is refused. What one of them granted would
 * otherwise be given back while the request waits for another, and be requested again each time.
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

/** What a request takes of a counter. */
export type GrantRequest = [counter: Grantable, limit: NanoUsd, amount: NanoUsd];

/** What ledgers can share by grants: `Counter` and `RateShare`. */
export interface Grantable {
  readonly id: CounterId;
  granted: NanoUsd;
  /** How much of the limit other ledgers have, in the latest answer. */
  elsewhere: NanoUsd;
  /** The part of it that may come back. */
  openElsewhere: NanoUsd;
  /** What is spent or held, and so must stay granted. */
  used(): NanoUsd;
  /** False where each request asks for itself, so that what others have of it is what they use. */
  readonly isPrefetched: boolean;
  /** At least `1 / aheadShare` of what is free is asked for ahead of need. */
  readonly aheadShare: number;
}

export interface GrantFigures {
  readonly counters: number;
  /**
   * Granted of balances in this epoch, and the part of that which is neither spent nor held, in nano-dollars.
   */
  readonly granted: number;
  readonly stranded: number;
  readonly statements: number;
  readonly recalls: number;
}

/** Where the correspondence with the Authority about one counter stands. */
class GrantNegotiation {
  /** Number of the latest statement. */
  lastStated: number;
  /** Number of the latest statement whose answer was believed. */
  lastAnswered: number;
  /** Number of the latest statement that asked for less than before. */
  lastLowered = 0;
  /** The latest that was believed. */
  answer: Grant | null = null;
  needed = 0;
  requested = 0;
  /** What the latest statement gave as used. */
  statedUse = 0;
  statedMs = 0;
  /** The latest inquiry that requests wait for. */
  awaited = 0;
  /** The latest inquiry that this ledger received, and the one that its latest statement answered. */
  inquiry = 0;
  statedInquiry = 0;
  /** What was spent of a counter that is being forgotten; null while it is used. */
  retiring: NanoUsd | null = null;
  scarceUntilMs = Number.NEGATIVE_INFINITY;
  usedAtLastCheck = -1;
  /** What waiting requests need together. */
  waitingAmount = 0;
  /** Called with the next answer; bounded by the requests in flight. */
  readonly waiting = new Set<(answered: boolean) => void>();

  constructor(
    public counter: Grantable,
    public limit: NanoUsd,
    statedBefore: number,
  ) {
    this.lastStated = this.lastAnswered = statedBefore;
  }
}

/**
 * Room for this many more requests of the same size is asked for ahead, and again when room for this few is
 * left.
 */
const AHEAD_REQUESTS = 8;
const LOW_REQUESTS = 4;
/** An Authority that is silent for longer is out of reach, or loaded. */
const ANSWER_MS = 1_000;
/** Without an answer for longer, the lease has ended anyway. */
const LOADED_MS = LEASE_MS;
/**
 * How long a request waits for others to say what they have left, and to give it back: until then all have done so,
 * or the leases of those who have not are over, and nothing can be had of them.
 */
const RECALL_MS = LEASE_MS + 2_000;
const MAX_ROUNDS = 150;
const AWAIT_LEASE_MS = LEASE_MS / 2;
/**
 * What they are given each time before the Authority is asked again, first and at most. It is also what
 * passes before an inquiry: those who run short meanwhile, wherever, share it, so a counter has no more than
 * `1_000 / SPARE_MS` in a second, however many requests of however many ledgers it has to refuse.
 */
const SPARE_MS = 25;
const MAX_SPARE_MS = 100;
const RESTATE_MS = 1_000;
/** For this long after somebody ran short, only what is needed is asked for. */
const SCARCE_MS = 5_000;
const IDLE_MS = 60_000;

/** More is in use than may be, because credit was taken back: what is given back is waited for. */
const isOver = ({ counter }: GrantNegotiation): boolean => counter.used() > counter.granted;

const room = (counter: Grantable, limit: NanoUsd): number => boundOf(counter, limit) - counter.used();
