import type { Price } from "../catalog/price.ts";
import type { Budget, Key } from "../customers/keys/key.ts";
import type { AgentRun } from "../customers/keys/runs.ts";
import type { EpochMs } from "../units/clock.ts";
import type { ReceiptId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { Counter } from "./counter.ts";
import { Counters, type KeyCounters, type MoneyCounters } from "./key-counters.ts";
import {
  type HoldRecord,
  type HoldSubject,
  partOf,
  type ServedBy,
  type TerminalRecord,
  type TerminalState,
} from "./record.ts";

/**
 * Money taken from everything that limits a request; open until it is settled, once. `request` and `money` are as
 * of admission until an extension finds that the key or its budgets have changed since.
 */
export class Reservation {
  isOpen = true;
  held: NanoUsd;
  /** Counters of the whole hold. */
  counters: Counters;
  /** Budgets that only a part of it counts on: the key was moved from them, or to them, since admission. */
  parts: readonly Part[] = NO_PARTS;
  /** Output tokens that the client was sent so far. */
  delivered = 0;
  /** Since the last checkpoint. */
  moved = false;
  served: ServedBy | null = null;
  /** The journal's number for the hold; await its durability before the first byte leaves. */
  sequence = 0;

  constructor(
    readonly keyCounters: KeyCounters,
    /** Counters of the admission day, which may not be today's. */
    public money: MoneyCounters,
    public request: ReservationRequest,
    readonly allowances: Counters,
    readonly rateSlot: number,
  ) {
    this.held = request.amount;
    this.counters = money.counters;
  }

  /** How much a cost is above what is held, up to the most that the request may come to; not above 0 where it is covered. */
  beyond(cost: NanoUsd): NanoUsd {
    return (Math.min(cost, this.request.most.amount) - this.held) as NanoUsd;
  }

  /** Holds `held` in all, on each counter as much of it as counts there. */
  hold(held: NanoUsd): void {
    for (const counter of this.counters.all) counter.hold((held - this.held) as NanoUsd);
    for (const part of this.parts)
      part.counter.hold((partOf(part, held) - partOf(part, this.held)) as NanoUsd);
    // What is given back of a budget that was left cannot be taken of it again.
    if (held < this.held && this.parts.length > 0) this.parts = this.parts.map((part) => cut(part, held));
    this.held = held;
  }

  /** Gives back what is held, of which `charged` was spent, as the journal's record of that number says. */
  release(charged: NanoUsd, sequence: number, nowMs: number): void {
    for (const counter of this.counters.all) counter.end(this.held, charged, sequence, nowMs);
    for (const part of this.parts)
      part.counter.end(partOf(part, this.held), partOf(part, charged), sequence, nowMs);
  }

  /** Undoes a charge. */
  refund(charged: NanoUsd): void {
    for (const counter of this.counters.all) counter.settle(ZERO_USD, -charged as NanoUsd);
    for (const part of this.parts) part.counter.settle(ZERO_USD, -partOf(part, charged) as NanoUsd);
  }

  /** Whether what is held more counts on the counters of its money, and on no others. */
  growsOnOwnCounters(): boolean {
    const { counters, parts, money } = this;
    if (counters === money.counters) return true;
    const grows = new Set(money.counters.all);
    const open = parts.filter(({ to }) => to === null).map(({ counter }) => counter);
    return [...counters.all, ...open].every((counter) => grows.delete(counter)) && grows.size === 0;
  }

  /**
   * From here on it grows on the counters of its money: on one that is left, what was held stays; on one that
   * is new, what comes counts. So no budget is charged more than was held on it.
   */
  regroup(): void {
    const { held, counters, parts, money } = this;
    const grows = new Set(money.counters.all);
    const kept = counters.all.filter((counter) => grows.delete(counter));
    const left = counters.all.filter((counter) => !kept.includes(counter));
    const ended = parts.map((part) => {
      if (part.to !== null || grows.delete(part.counter)) return part;
      return { ...part, to: held };
    });
    const fresh = [...grows].map((counter) => ({ counter, from: held, to: null }));
    this.counters = new Counters(kept);
    this.parts = [...ended, ...left.map((counter) => ({ counter, from: ZERO_USD, to: held })), ...fresh];
  }
}

/** Counts what is held beyond `from`, up to `to`; without end where that is null. */
export interface Part {
  readonly counter: Counter;
  readonly from: NanoUsd;
  readonly to: NanoUsd | null;
}

const NO_PARTS: readonly Part[] = [];

const cut = ({ counter, from, to }: Part, held: NanoUsd): Part => ({
  counter,
  from: Math.min(from, held) as NanoUsd,
  to: to === null ? null : (Math.min(to, held) as NanoUsd),
});

/** What one request asks to hold. */
export interface ReservationRequest {
  readonly receipt: ReceiptId;
  readonly at: EpochMs;
  readonly key: Key;
  readonly budgets: readonly Budget[];
  /** That it belongs to, if to any. */
  readonly run?: AgentRun | null;
  readonly allowances: readonly Allowance[];
  readonly rpmLimit: number | null;
  /** On the Open Tier, its own rate, next to the key's; null on the paid tier. */
  readonly freeRpmLimit: number | null;
  readonly tpmLimit: number | null;
  /** What is held at once; zero on the Open Tier. */
  readonly amount: NanoUsd;
  /** What it may cost: every limit must cover that next to what is spent, whatever else is open. */
  readonly worst: NanoUsd;
  /** Estimated input plus output tokens, for `tpm_limit`. */
  readonly rateTokens: number;
  /** What may be charged and counted at the very most, whatever a host reports. */
  readonly most: ChargeLimit;
  /** Estimated prompt, billed if the process dies while the answer streams. */
  readonly promptTokens: number;
  /** The price that bounds every route on the plan, as it was at admission. */
  readonly price: Price;
  readonly about: HoldSubject;
}

export interface ChargeLimit {
  readonly amount: NanoUsd;
  readonly tokens: number;
}

/** Free requests per UTC day for an owner: an account, an accountless balance, or a block of addresses. */
export interface Allowance {
  readonly owner: string;
  readonly limit: number;
}

/** How a reservation ended. */
export interface ReservationEnd {
  readonly state: TerminalState;
  /** Cost of what was delivered, at the price of the route that served. */
  readonly cost: NanoUsd;
  /** The largest part of the cost that is no more than this, in whole tokens; absent: any. */
  within?(most: NanoUsd): NanoUsd;
  /** The host failed early: the cost is noted and not billed. */
  readonly writeOff: boolean;
  /** Actual tokens, which replace the estimate that was counted against the rate. */
  readonly rateTokens: number;
  readonly allowanceUsed: boolean;
  /** What its host charged the operator, where that is known. */
  readonly hostCost?: NanoUsd | undefined;
}

export interface Settled {
  readonly charged: NanoUsd;
  readonly lost: NanoUsd;
  readonly writtenOff: NanoUsd;
  readonly held: NanoUsd;
}

export interface Settlement extends Settled {
  /** The journal's number for the end; await its durability before the client gets the last frame. */
  readonly sequence: number;
}

export function holdRecord({ request, held, counters, parts, allowances, served }: Reservation): HoldRecord {
  const whole: HoldRecord = {
    kind: "hold",
    receipt: request.receipt,
    at: request.at,
    balance: request.key.balanceId,
    key: request.key.id,
    amount: held,
    counters: counters.ids,
    allowances: allowances.ids,
    price: request.price,
    promptTokens: request.promptTokens,
    about: request.about,
  };
  const hold =
    parts.length === 0
      ? whole
      : { ...whole, parts: parts.map(({ counter, from, to }) => [counter.id, from, to] as const) };
  return served === null ? hold : { ...hold, served: { ...served, attempts: served.attempts.map(shown) } };
}

const shown = ({ host, outcome, ms, detail }: ServedBy["attempts"][number]) => ({
  host,
  outcome,
  ms,
  detail,
});

export const terminalRecord = (
  { request, counters, parts }: Reservation,
  state: TerminalState,
  { charged, writtenOff, lost }: Pick<Settled, "charged" | "writtenOff" | "lost">,
  allowancesUsed: Counters,
  body: string,
  hostCost?: NanoUsd,
): TerminalRecord => ({
  kind: "terminal",
  receipt: request.receipt,
  state,
  at: request.at,
  balance: request.key.balanceId,
  key: request.key.id,
  charged,
  writtenOff,
  lost,
  hostCost,
  counters: counters.ids,
  parts: parts.length === 0 ? undefined : chargedParts(parts, charged),
  allowances: allowancesUsed.ids,
  body,
});

const chargedParts = (parts: readonly Part[], charged: NanoUsd): TerminalRecord["parts"] =>
  parts.map((part) => [part.counter.id, partOf(part, charged)] as const).filter(([, amount]) => amount > 0);
