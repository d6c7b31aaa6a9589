import { assert } from "../units/assert.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { type CounterId, isBalanceCounter, isValueCounter } from "./counter.ts";

/**
 * Divides limits among ledgers. A ledger never spends from the store directly: the Authority grants it a part of a
 * counter's limit, which it spends in memory. `spent + outstanding grants ≤ limit` holds for every counter at every moment,
 * so no limit is crossed, however many ledgers there are and whichever of them is cut off, paused or slow. Nothing here
 * depends on a clock: a lost ledger's grants stay granted until its journal has been read.
 *
 * Amounts are totals of a ledger's epoch (one life of its process), not steps, so a message may arrive twice, late or never.
 */
export interface Authority {
  /** Takes a ledger's use and request of a counter; returns what the ledger may use in all. */
  settle(statement: Statement): Grant | Promise<Grant>;
}

export interface Statement {
  readonly ledger: string;
  readonly epoch: number;
  /** Rises with each statement of an epoch; an older one that arrives after a newer one is ignored. */
  readonly number: number;
  readonly counter: CounterId;
  /** Spent and held by this epoch: at least this much must stay granted. */
  readonly used: NanoUsd;
  /** What waiting requests need; if less is granted, other ledgers return what they do not use. */
  readonly needed: NanoUsd;
  /** The grant that the ledger requests, in all; less than before gives back. */
  readonly requested: NanoUsd;
  /** The limit as the ledger knows it; for a balance, the Authority uses the credit on its books. */
  readonly limit: NanoUsd;
  /** The latest inquiry about the counter that this ledger had received: see `Grant`. */
  readonly answeredInquiry: number;
  /** If `needed` is short: the inquiry to wait for, which the Authority starts if need be; or 0. */
  readonly inquiry: number;
  /**
   * The ledger has shipped all that it spent of the counter and wants to forget it. The Authority then counts that as spent
   * by others, and the ledger starts from zero if it uses the counter again.
   */
  readonly retires?: boolean;
}

export interface Grant {
  readonly counter: CounterId;
  readonly number: number;
  readonly granted: NanoUsd;
  /** Spent by others, or granted to them. */
  readonly elsewhere: NanoUsd;
  /** Left after this grant; negative when the limit was lowered below what is granted. */
  readonly free: number;
  /** Granted less than `needed`; only then the following members describe the other ledgers. */
  readonly short: boolean;
  /** Granted to others and unused in their latest statements. */
  readonly spare: NanoUsd;
  /** Granted to others and not booked as spent: the most that can come back. */
  readonly open: NanoUsd;
  /**
   * Number of the latest inquiry. Requests may have released credit since their ledger last stated its use; after an
   * inquiry, every ledger states it again.
   */
  readonly inquiry: number;
  /** The latest inquiry that every ledger with an open grant has answered. */
  readonly answered: number;
  /** The counter was retired: nothing of it is granted to the ledger any more. */
  readonly retired?: boolean;
}

/** Asks every ledger that was granted something of the counter what it uses. */
export interface Inquiry {
  readonly counter: CounterId;
  readonly inquiry: number;
}

/**
 * The rule: a smaller grant is always given, because the ledger lowered its own bound before it sent the statement. A larger
 * one is given as far as the limit has room. A lowered limit takes no grant back by force.
 */
function grant(statement: Statement, known: Standing, elsewhere: NanoUsd, limit: NanoUsd): Standing {
  const { number, used, requested, answeredInquiry, counter, ledger, retires } = statement;
  if (number <= known.number) return known;
  if (used > known.granted) {
    assert(isValueCounter(counter), `${ledger} used ${used} of ${counter}, granted ${known.granted}`);
    // The counter was retired after the ledger sent this.
    return retires ? { ...NOTHING_GRANTED, number, answeredInquiry } : known;
  }
  const free = limit - elsewhere;
  const granted = (
    requested <= known.granted
      ? Math.max(requested, used)
      : Math.max(known.granted, Math.min(requested, free))
  ) as NanoUsd;
  return { granted, used, number, answeredInquiry };
}

/**
 * What a ledger may use of its grant of a balance. When credit that requests hold is taken back, grants add up to more than
 * what is left, so a ledger must not spend again what its requests release. Limits of keys and budgets need no such rule: a
 * ledger knows them by itself.
 */
const usable = ({ granted }: Standing, elsewhere: NanoUsd, credited: NanoUsd): NanoUsd =>
  Math.max(0, Math.min(granted, credited - elsewhere)) as NanoUsd;

/** A ledger that missed an inquiry still gets it for this long; no request waits longer for answers. */
export const LATE_MS = 15_000;
/** Missed inquiries sent at once. */
export const MAX_LATE = 1_000;

/** Whether a ledger may use less than it needs: a lowered limit may be below its grant. */
const isShort = (granted: NanoUsd, elsewhere: NanoUsd, limit: NanoUsd, needed: NanoUsd): boolean =>
  Math.min(granted, limit - elsewhere) < needed;

/** One epoch's grant of one counter; of a balance, it may use less: see `usable`. */
export interface Standing {
  readonly granted: NanoUsd;
  readonly used: NanoUsd;
  readonly number: number;
  readonly answeredInquiry: number;
}

export const NOTHING_GRANTED: Standing = { granted: ZERO_USD, used: ZERO_USD, number: 0, answeredInquiry: 0 };

/** A counter on the common books, with the standing of the ledger that sent the statement. */
export interface SharedCounter {
  readonly credited: number;
  /** Spent and shipped, by all ledgers. */
  readonly spent: number;
  /** Granted to all ledgers and not yet shipped as spent. */
  reserved: number;
  /** Shipped by this ledger in its epoch. */
  readonly shipped: number;
  /** Number of the latest inquiry. */
  inquiries: number;
  standing: Standing;
}

/** Grants what the rule allows, and starts an inquiry if that is too little. Changes `book` in place. */
export function decide(book: SharedCounter, statement: Statement): Grant {
  const { counter, number, needed } = statement;
  const isBalance = isBalanceCounter(counter);
  const limit = isBalance ? (book.credited as NanoUsd) : statement.limit;
  const mine = book.standing.granted - book.shipped;
  const elsewhere = (book.spent - book.shipped + book.reserved - mine) as NanoUsd;
  book.standing = grant(statement, book.standing, elsewhere, limit);
  book.reserved += book.standing.granted - book.shipped - mine;
  const retired = isRetired(statement, book.standing, book.shipped);
  if (retired) book.standing = NOTHING_GRANTED;
  const granted = isBalance ? usable(book.standing, elsewhere, limit) : book.standing.granted;
  const short = isShort(granted, elsewhere, limit, needed);
  if (short) book.inquiries = Math.max(book.inquiries, statement.inquiry);
  const { inquiries: inquiry } = book;
  const free = limit - elsewhere - granted;
  const nobodyElse = { spare: ZERO_USD, open: ZERO_USD, inquiry, answered: inquiry };
  return { counter, number, granted, elsewhere, free, short, ...nobodyElse, ...(retired ? { retired } : {}) };
}

/** Whether the counter is retired after this statement. */
const isRetired = ({ retires, number }: Statement, standing: Standing, shipped: number): boolean =>
  retires === true && standing.number === number && standing.granted === shipped;
