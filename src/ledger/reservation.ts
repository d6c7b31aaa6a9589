import type { Price } from "../catalog/catalog.ts";
import type { Budget, Key } from "../keys/key.ts";
import type { EpochMs } from "../units/clock.ts";
import type { ReceiptId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { Counters, Lane, Purse } from "./lane.ts";
import type { HoldRecord, HoldSubject, Served, TerminalRecord, TerminalState } from "./record.ts";

/** Money taken from everything that limits a request; open until it is settled, once. */
export class Reservation {
  isOpen = true;
  held: NanoUsd;
  /** Output tokens that the client was sent so far. */
  delivered = 0;
  /** Since the last checkpoint. */
  moved = false;
  served: Served | null = null;
  /** The journal's number for the hold; await its durability before the first byte leaves. */
  sequence = 0;

  constructor(
    readonly lane: Lane,
    /** The purse as of admission: by now the lane may have entered another day. */
    readonly purse: Purse,
    readonly want: Want,
    readonly counters: Counters,
    readonly allowances: Counters,
    readonly rateSlot: number,
  ) {
    this.held = want.amount;
  }
}

/** What one request asks to hold. */
export interface Want {
  readonly receipt: ReceiptId;
  readonly at: EpochMs;
  readonly key: Key;
  readonly budgets: readonly Budget[];
  readonly allowances: readonly Allowance[];
  readonly rpmLimit: number | null;
  /** On the Open Tier, its own rate, beside the key's; null on the paid tier. */
  readonly freeRpmLimit: number | null;
  readonly tpmLimit: number | null;
  /** What is held at once; zero on the Open Tier. */
  readonly amount: NanoUsd;
  /** What it may cost: every limit must cover that beside what is spent, whatever else is open. */
  readonly worst: NanoUsd;
  /** Estimated input plus output tokens, for `tpm_limit`. */
  readonly rateTokens: number;
  /** What may be charged and counted at the very most, whatever a host reports. */
  readonly most: Most;
  /** Estimated prompt, billed if the process dies while the answer streams. */
  readonly promptTokens: number;
  /** The price that bounds every route on the plan, as it was at admission. */
  readonly price: Price;
  readonly about: HoldSubject;
}

export interface Most {
  readonly amount: NanoUsd;
  readonly tokens: number;
}

/** Free requests per UTC day for an owner: an account, an accountless balance, or a block of addresses. */
export interface Allowance {
  readonly owner: string;
  readonly limit: number;
}

/** How a reservation ended. */
export interface Ending {
  readonly state: TerminalState;
  /** Cost of what was delivered, at the price of the route that served. */
  readonly cost: NanoUsd;
  /** The host failed early: the cost is noted and not billed. */
  readonly writeOff: boolean;
  /** Actual tokens, which replace the estimate that was counted against the rate. */
  readonly rateTokens: number;
  readonly allowanceUsed: boolean;
}

export interface Settled {
  readonly charged: NanoUsd;
  readonly lost: NanoUsd;
  readonly writtenOff: NanoUsd;
  readonly held: NanoUsd;
}

export interface Settlement extends Settled {
  /** The journal's number for the end; await its durability before the client hears of it. */
  readonly sequence: number;
}

export function holdRecord({ want, held, counters, allowances, served }: Reservation): HoldRecord {
  const hold: HoldRecord = {
    kind: "hold",
    receipt: want.receipt,
    at: want.at,
    balance: want.key.balanceId,
    key: want.key.id,
    amount: held,
    counters: counters.ids,
    allowances: allowances.ids,
    price: want.price,
    promptTokens: want.promptTokens,
    about: want.about,
  };
  return served === null ? hold : { ...hold, served: { ...served, attempts: served.attempts.map(shown) } };
}

const shown = ({ host, outcome, ms, detail }: Served["attempts"][number]) => ({ host, outcome, ms, detail });

export const terminalRecord = (
  { want, counters }: Reservation,
  state: TerminalState,
  { charged, writtenOff, lost }: Pick<Settled, "charged" | "writtenOff" | "lost">,
  allowancesUsed: Counters,
  body: string,
): TerminalRecord => ({
  kind: "terminal",
  receipt: want.receipt,
  state,
  at: want.at,
  balance: want.key.balanceId,
  key: want.key.id,
  charged,
  writtenOff,
  lost,
  counters: counters.ids,
  allowances: allowancesUsed.ids,
  body,
});
