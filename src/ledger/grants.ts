import type { Clock } from "../units/clock.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { Grant, Statement } from "./authority.ts";
import type { CounterId } from "./counter.ts";

/**
 * A ledger's side of the grants that it shares limits by: what it states to the Authority, and what it makes of the answers.
 * The rule that keeps limits strict is that `granted` here is never above what the Authority has on its books: it is
 * lowered before less is asked for, and raised only by answers to statements that nothing smaller has followed.
 *
 * More is asked for than one request needs, and again before it runs out, so that requests do not wait for the network.
 * Where a limit is nearly reached, only what is needed is asked for, and what is not in use flows back.
 */
export class Grants {
  private readonly desks = new Map<CounterId, Desk>();
  /** Those whose answer is outstanding, or where credit is scarce. */
  private readonly watched = new Set<Desk>();
  private statements = 0;
  private recalls = 0;
  private numbers = 0;

  constructor(
    private readonly ledger: string,
    private readonly epoch: number,
    private readonly clock: Pick<Clock, "after" | "elapsedMs">,
    /** Sends a statement; its answer may come late, twice or never. */
    private readonly send: (statement: Statement) => void,
    /** False while what was granted must not be used: nobody knows whether this ledger is still counted with. */
    readonly usable: () => boolean = () => true,
  ) {}

  /** Asks for room for `amount` and some more of its kind. */
  async ask(counter: Shared, amount: NanoUsd, limit: NanoUsd): Promise<Answer> {
    if (room(counter, limit) >= amount) return "room";
    if (counter.used() + amount > limit) return "short";
    const desk = this.desk(counter, limit);
    const untilMs = this.clock.elapsedMs() + ANSWER_MS;
    desk.asked += amount;
    try {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        this.need(desk, amount);
        if (!(await this.answered(desk, untilMs))) return "unanswered";
        if (room(counter, limit) >= amount) return "room";
        // Whatever was free went to others, or to other requests of ours.
        if (desk.free <= 0 && !desk.recalled) return "short";
        if (desk.recalled) await this.pause(SPARE_MS);
        if (room(counter, limit) >= amount) return "room";
        if (this.clock.elapsedMs() >= untilMs) break;
      }
      // Who was asked to give back and has not answered may have enough.
      return desk.recalled ? "unanswered" : "short";
    } finally {
      desk.asked -= amount;
    }
  }

  /** Asks before it is needed: `amount` was just taken. */
  foresee(counter: Shared, amount: NanoUsd, limit: NanoUsd): void {
    if (room(counter, limit) >= amount * LOW_REQUESTS) return;
    const desk = this.desk(counter, limit);
    const nothingLeft = desk.isAnswered && desk.free <= 0;
    if (desk.number > desk.heard || nothingLeft || this.scarce(desk)) return;
    this.state(desk, counter.used(), this.ahead(desk, amount));
  }

  /** Gives back what is not in use. */
  giveBack(counter: Shared, limit: NanoUsd): void {
    if (counter.used() < counter.granted) this.returnSlack(this.desk(counter, limit));
  }

  /** Gives back all that is not in use, of counters whose ids begin so; true once the Authority knows. */
  async release(prefixes: readonly string[]): Promise<boolean> {
    const desks = [...this.desks.values()].filter(({ counter }) =>
      prefixes.some((prefix) => counter.id.startsWith(prefix)),
    );
    for (const desk of desks) this.returnSlack(desk);
    const untilMs = this.clock.elapsedMs() + ANSWER_MS;
    for (const desk of desks) {
      while (desk.number > desk.heard) if (!(await this.answered(desk, untilMs))) return false;
    }
    return true;
  }

  /** Somebody else runs short. */
  recall(id: CounterId): void {
    const desk = this.desks.get(id);
    if (desk === undefined) return;
    this.recalls += 1;
    this.markScarce(desk);
    this.returnSlack(desk);
    // What it was granted for one request is not known to be used: until it is said, the others wait for it.
    const used = desk.counter.used();
    if (desk.stated < used) this.state(desk, used, Math.max(desk.wanted, used));
  }

  /** An answer of the Authority. */
  receive({ counter, number, granted, elsewhere, free, recalled }: Grant): void {
    const desk = this.desks.get(counter);
    // Something smaller was stated after it: what it tells of may be given back already.
    if (desk === undefined || number <= desk.heard || number < desk.lowered) return;
    desk.heard = number;
    desk.isAnswered = true;
    desk.free = free;
    desk.recalled = recalled;
    desk.counter.granted = granted;
    desk.counter.elsewhere = elsewhere;
    if (number === desk.number && granted < desk.wanted) this.markScarce(desk);
    if (number === desk.number && !this.scarce(desk)) this.watched.delete(desk);
    for (const go of [...desk.waiting]) go(true);
  }

  /** A few times a second: states again what was not answered, and returns what is not in use where it is scarce. */
  tend(): void {
    const nowMs = this.clock.elapsedMs();
    for (const desk of this.watched) {
      const unanswered = desk.number > desk.heard;
      if (unanswered && nowMs - desk.statedMs > RESTATE_MS) {
        this.state(desk, desk.needed, Math.max(desk.wanted, desk.counter.used()));
      } else if (!unanswered && desk.asked === 0) this.returnSlack(desk);
      if (!unanswered && !this.scarce(desk)) this.watched.delete(desk);
    }
  }

  /** Now and then: returns what nobody has used for a while. */
  returnIdle(): void {
    const sinceMs = this.clock.elapsedMs() - IDLE_MS;
    for (const desk of this.desks.values()) {
      if (desk.statedMs < sinceMs && desk.usedAtLastLook === desk.counter.used()) this.returnSlack(desk);
      desk.usedAtLastLook = desk.counter.used();
      // A rate that nobody uses is given back whole, and need not be remembered; what was spent of money must be.
      if (desk.counter.granted === 0 && desk.number === desk.heard && desk.asked === 0) {
        this.watched.delete(desk);
        this.desks.delete(desk.counter.id);
      }
    }
  }

  /** Drops a counter that is over; what was granted of it stays with the Authority until it is told. */
  forget(id: CounterId): void {
    const desk = this.desks.get(id);
    if (desk === undefined) return;
    this.watched.delete(desk);
    this.desks.delete(id);
  }

  get figures(): GrantFigures {
    let granted = 0;
    let stranded = 0;
    for (const { counter } of this.desks.values()) {
      if (!counter.id.startsWith("balance:")) continue;
      granted += counter.granted;
      stranded += Math.max(0, counter.granted - counter.used());
    }
    const { statements, recalls } = this;
    return { counters: this.desks.size, granted, stranded, statements, recalls };
  }

  /** States what waiting requests need, unless a statement is on its way that covers this one. */
  private need(desk: Desk, amount: NanoUsd): void {
    const used = desk.counter.used();
    if (desk.number > desk.heard && desk.wanted >= used + amount) return;
    const needed = used + desk.asked;
    this.state(desk, needed, this.scarce(desk) ? needed : this.ahead(desk, amount));
  }

  /** What to be granted in all, so that many more requests like this one need not ask. */
  private ahead({ counter, asked, free }: Desk, amount: NanoUsd): number {
    const wanted = counter.used() + asked + Math.max(amount * AHEAD_REQUESTS, free / counter.aheadShare);
    return Math.floor(wanted);
  }

  private returnSlack(desk: Desk): void {
    const used = desk.counter.used();
    if (used < desk.counter.granted || used < desk.wanted) this.state(desk, used, used);
  }

  private state(desk: Desk, needed: number, wanted: number): void {
    const { counter } = desk;
    const number = ++this.numbers;
    if (wanted < desk.wanted) {
      // Lowered before it is said, so that nothing is spent that is on its way back.
      desk.lowered = number;
      counter.granted = Math.min(counter.granted, wanted) as NanoUsd;
    }
    desk.needed = needed;
    desk.wanted = wanted;
    desk.stated = counter.used();
    desk.number = number;
    desk.statedMs = this.clock.elapsedMs();
    this.watched.add(desk);
    this.statements += 1;
    this.send({
      ledger: this.ledger,
      epoch: this.epoch,
      number,
      counter: counter.id,
      used: counter.used(),
      needed: needed as NanoUsd,
      wanted: wanted as NanoUsd,
      limit: desk.limit,
    });
  }

  private answered(desk: Desk, untilMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const go = (answered: boolean) => {
        timer.cancel();
        desk.waiting.delete(go);
        resolve(answered);
      };
      const timer = this.clock.after(Math.max(0, untilMs - this.clock.elapsedMs()), () => go(false));
      desk.waiting.add(go);
    });
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.after(ms, resolve));
  }

  private markScarce(desk: Desk): void {
    desk.scarceUntilMs = this.clock.elapsedMs() + SCARCE_MS;
    this.watched.add(desk);
  }

  private scarce({ scarceUntilMs }: Desk): boolean {
    return this.clock.elapsedMs() < scarceUntilMs;
  }

  private desk(counter: Shared, limit: NanoUsd): Desk {
    const known = this.desks.get(counter.id);
    if (known !== undefined) {
      known.limit = limit;
      // A key's rates are forgotten when it is idle; what was granted of them is not.
      if (known.counter !== counter) counter.granted = known.counter.granted;
      known.counter = counter;
      return known;
    }
    // Answers to what was stated before are none to this desk, if it had a predecessor.
    const desk = new Desk(counter, limit, this.numbers);
    this.desks.set(counter.id, desk);
    return desk;
  }
}

/**
 * Sends a statement once everything that it counts is durable. It counts what was settled at what that cost; were the end
 * lost with the process, the hold would be ended at its last checkpoint instead, which may cost more than is still granted.
 * A statement that is dropped is made again.
 */
export const onceDurable =
  (journal: { flushed(): Promise<boolean> }, send: (statement: Statement) => void) =>
  (statement: Statement): void =>
    void journal.flushed().then((durable) => {
      if (durable) send(statement);
    });

export type Answer = "room" | "short" | "unanswered";

/** What can be shared by grants: see Counter, and RateShare. */
export interface Shared {
  readonly id: CounterId;
  granted: NanoUsd;
  /** Of the limit, by other ledgers, as last heard. */
  elsewhere: NanoUsd;
  /** What must stay granted. */
  used(): NanoUsd;
  /** One of so many parts of what is free is asked for ahead. */
  readonly aheadShare: number;
}

export interface GrantFigures {
  readonly counters: number;
  /** Of balances, nano-dollars: granted in all of this epoch, and of that neither spent nor held. */
  readonly granted: number;
  readonly stranded: number;
  readonly statements: number;
  readonly recalls: number;
}

/** One counter's correspondence with the Authority. */
class Desk {
  /** Of the latest statement; of the latest answer that was believed; of the latest statement that asked for less. */
  number: number;
  heard: number;
  lowered = 0;
  isAnswered = false;
  needed = 0;
  wanted = 0;
  /** As used. */
  stated = 0;
  statedMs = 0;
  free = 0;
  recalled = false;
  scarceUntilMs = Number.NEGATIVE_INFINITY;
  usedAtLastLook = -1;
  /** Of requests that wait. */
  asked = 0;
  /** No more of them than are in flight. */
  readonly waiting = new Set<(answered: boolean) => void>();

  constructor(
    public counter: Shared,
    public limit: NanoUsd,
    statedBefore: number,
  ) {
    this.number = this.heard = statedBefore;
  }
}

/** So many requests of the same size are asked for ahead, and again when so few are left. */
const AHEAD_REQUESTS = 8;
const LOW_REQUESTS = 4;
/** A request does not wait longer for credit that others may be holding. */
const ANSWER_MS = 1_000;
const MAX_ROUNDS = 40;
/** Time for others to give back. */
const SPARE_MS = 25;
const RESTATE_MS = 1_000;
/** After somebody ran short, only what is needed is asked for. */
const SCARCE_MS = 5_000;
const IDLE_MS = 60_000;

const room = (counter: Shared, limit: NanoUsd): number => Math.min(limit, counter.granted) - counter.used();
