import { assert } from "../units/assert.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { type CounterId, isBalanceCounter, isValueCounter } from "./counter.ts";

/**
 * Who may spend how much of what. A ledger never spends from the store directly: it is granted an amount of a
 * counter's limit and spends the grant in memory. `spent + grants outstanding ≤ limit` holds for every
 * counter at every moment, so however many ledgers there are, and whichever of them is cut off, paused or
 * slow, no limit is crossed. Nothing here depends on a clock: what a lost ledger was granted stays granted
 * until its journal has been read.
 *
 * Amounts are cumulative within a ledger's epoch (one life of its process), so a message that arrives twice,
 * late or not at all does no harm: it says where things stand, not what to add.
 */
export interface Authority {
  /**
   * Where the counter stands for this ledger, and what it would like; answers with what it may use in all.
   */
  settle(statement: Statement): Grant | Promise<Grant>;
}

export interface Statement {
  readonly ledger: string;
  readonly epoch: number;
  /** Rises with each statement of an epoch; an older one that arrives after a newer one is ignored. */
  readonly number: number;
  readonly counter: CounterId;
  /** Spent and held under this epoch's grants: the least that must stay granted. */
  readonly used: NanoUsd;
  /** What requests are waiting for; below that, others are asked to give back what they do not use. */
  readonly needed: NanoUsd;
  /** What the ledger would like to be granted in all; less than before gives back. */
  readonly requested: NanoUsd;
  /** As the ledger knows it; what a balance was credited, the Authority knows better. */
  readonly limit: NanoUsd;
  /** The latest inquiry about the counter that this ledger had received: see `Grant`. */
  readonly answeredInquiry: number;
  /** If what is needed is short: the inquiry that is waited for, and started if nobody has started it; or 0. */
  readonly inquiry: number;
  /**
   * The ledger forgets what it has spent of the counter, all of which is shipped. Once the Authority has done the same, it
   * begins at nothing here, and what was spent counts as spent by others.
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
  /** Less than `needed`; only then the rest says what others may have left, who were asked for it. */
  readonly short: boolean;
  /** Granted to others, and not used as they last said. */
  readonly spare: NanoUsd;
  /** Granted to others, and not known to be spent for good: at the very most this comes back. */
  readonly open: NanoUsd;
  /**
   * What requests held when their ledger last stated its use, they may have left over since, and nobody knows
   * of it. After an inquiry, every ledger states its use again. They are numbered; this is the latest one.
   */
  readonly inquiry: number;
  /** The latest one that everybody has answered who has something open. */
  readonly answered: number;
  /** The ledger's epoch stands as if it had never been granted anything of the counter. */
  readonly retired?: boolean;
}

/** Asks every ledger that was granted something of the counter what it uses. */
export interface Inquiry {
  readonly counter: CounterId;
  readonly inquiry: number;
}

/**
 * The rule. Less than before is always granted as it is wanted: the ledger has lowered its own bound before
 * it said so. More is granted as far as it is free, and a limit that was lowered meanwhile takes nothing back
 * by force.
 */
export function grant(statement: Statement, known: Standing, elsewhere: NanoUsd, limit: NanoUsd): Standing {
  const { number, used, requested, answeredInquiry, counter, ledger, retires } = statement;
  if (number <= known.number) return known;
  if (used > known.granted) {
    assert(isValueCounter(counter), `${ledger} used ${used} of ${counter}, granted ${known.granted}`);
    // The counter was retired since this was stated.
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
 * What a ledger may use of its grant of a balance. Credit that requests hold may be taken back: then the grants come to
 * more than what is left, and what a ledger's requests give back is not its to spend again. A ledger knows the limits of
 * keys and budgets by itself, but not what a balance was credited.
 */
export const usable = ({ granted }: Standing, elsewhere: NanoUsd, credited: NanoUsd): NanoUsd =>
  Math.max(0, Math.min(granted, credited - elsewhere)) as NanoUsd;

/** How long a ledger that missed an inquiry still gets it: nobody waits for answers for longer. */
export const LATE_MS = 15_000;
/** So many of them at once. */
export const MAX_LATE = 1_000;

/** Whether a ledger cannot use what it needs: a limit may have been lowered below what it was granted before. */
export const isShort = (granted: NanoUsd, elsewhere: NanoUsd, limit: NanoUsd, needed: NanoUsd): boolean =>
  Math.min(granted, limit - elsewhere) < needed;

/** What one epoch of one ledger was granted of one counter; of a balance, it may use less: see `usable`. */
export interface Standing {
  readonly granted: NanoUsd;
  /** As it was last stated. */
  readonly used: NanoUsd;
  readonly number: number;
  readonly answeredInquiry: number;
}

export const NOTHING_GRANTED: Standing = { granted: ZERO_USD, used: ZERO_USD, number: 0, answeredInquiry: 0 };

/** A counter as the books of all have it, and where the ledger stands that states something of it. */
export interface SharedCounter {
  readonly credited: number;
  /** Shipped as spent, by everybody. */
  readonly spent: number;
  /** Granted, and not shipped as spent, to everybody. */
  reserved: number;
  /** By this ledger, in its epoch. */
  readonly shipped: number;
  /** The latest. */
  inquiries: number;
  standing: Standing;
}

/** Grants what the rule allows, and begins an inquiry where that is too little; the books are changed in place. */
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

/** Whether a statement that retires its counter does, or an earlier one has, by how the ledger stands after it. */
export const isRetired = ({ retires, number }: Statement, standing: Standing, shipped: number): boolean =>
  retires === true && standing.number === number && standing.granted === shipped;
