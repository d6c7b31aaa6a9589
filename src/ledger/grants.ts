import type { Clock } from "../units/clock.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { Grant, Statement } from "./authority.ts";
import type { Counter, CounterId } from "./counter.ts";

/**
 * A ledger's side of the grants that it shares limits by: what it states to the Authority, and what it makes of the answers.
 * The rule that keeps limits strict is that `granted` here is never above what the Authority has on its books: it is
 * lowered before less is asked for, and raised only by the answer to the latest statement.
 */
export class Grants {
  private readonly desks = new Map<CounterId, Desk>();

  constructor(
    private readonly ledger: string,
    private readonly epoch: number,
    private readonly clock: Pick<Clock, "after">,
    /** Sends a statement; its answer may come late, twice or never. */
    private readonly send: (statement: Statement) => void,
  ) {}

  /** Asks for room for `amount` and some more of its kind; true once there is room, false when none came in time. */
  async ask(counter: Counter, amount: NanoUsd, limit: NanoUsd): Promise<boolean> {
    const needed = (usedOf(counter) + amount) as NanoUsd;
    if (counter.room(limit) >= amount) return true;
    const desk = this.desk(counter);
    // Requests that come together wait for one answer: each statement of its own would make the others' answers stale.
    if (desk.waiting.size === 0 || desk.wanted < needed) {
      this.state(desk, (needed + amount * AHEAD_REQUESTS) as NanoUsd, limit);
    }
    await this.answered(desk);
    return counter.room(limit) >= amount;
  }

  /** Gives back what is not in use. */
  giveBack(counter: Counter, limit: NanoUsd): void {
    const used = usedOf(counter);
    if (used < counter.granted) this.state(this.desk(counter), used, limit);
  }

  /** An answer of the Authority. */
  receive({ counter, number, granted }: Grant): void {
    const desk = this.desks.get(counter);
    // Answers to earlier statements tell of grants that a later one may have given back.
    if (desk === undefined || number !== desk.number) return;
    desk.counter.granted = granted;
    for (const go of desk.waiting) go();
  }

  private state(desk: Desk, wanted: NanoUsd, limit: NanoUsd): void {
    const { counter } = desk;
    // Lowered before it is said, so that nothing is spent that is on its way back.
    counter.granted = Math.min(counter.granted, wanted) as NanoUsd;
    desk.wanted = wanted;
    desk.number += 1;
    const { ledger, epoch } = this;
    this.send({
      ledger,
      epoch,
      number: desk.number,
      counter: counter.id,
      used: usedOf(counter),
      wanted,
      limit,
    });
  }

  private answered(desk: Desk): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        timer.cancel();
        desk.waiting.delete(go);
        resolve();
      };
      const timer = this.clock.after(ANSWER_MS, go);
      desk.waiting.add(go);
    });
  }

  private desk(counter: Counter): Desk {
    const known = this.desks.get(counter.id);
    if (known !== undefined) return known;
    const desk = { counter, number: 0, wanted: counter.granted, waiting: new Set<() => void>() };
    this.desks.set(counter.id, desk);
    return desk;
  }
}

/** One counter's correspondence with the Authority. */
interface Desk {
  readonly counter: Counter;
  /** Of the latest statement, and what it asked for. */
  number: number;
  wanted: NanoUsd;
  /** Requests that wait for its answer; no more of them than are in flight. */
  readonly waiting: Set<() => void>;
}

/** So many requests of the same size are asked for ahead; near the limit, the answer is what is left. */
const AHEAD_REQUESTS = 8;
/** A request does not wait longer for credit that others may be holding. */
const ANSWER_MS = 1_000;

const usedOf = ({ spent, held }: Counter): NanoUsd => (spent + held) as NanoUsd;
