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
 * Money held on every counter that limits a request, open until it is settled, once. `request` and `money` are as of
 * admission until an extension finds that the key or its budgets have changed.
 */
export class Reservation {
  isOpen = true;
  held: NanoUsd;
  /** Counters on which the whole hold counts. */
  counters: Counters;
  /** Budgets on which only a part counts, because the key was moved to or from them since admission. */
  parts: readonly Part[] = NO_PARTS;
  /** Output tokens sent to the client so far. */
  delivered = 0;
  /** Whether `delivered` changed since the last checkpoint. */
  moved = false;
  served: ServedBy | null = null;
  /** The hold's number in the journal; await its durability before the first byte leaves. */
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

  /** By how much a cost, up to the request's most, exceeds the hold; 0 or less if it does not. */
  beyond(cost: NanoUsd): NanoUsd {
    return (Math.min(cost, this.request.most.amount) - this.held) as NanoUsd;
  }

  /** Changes the hold to `held`, on each counter by the part that counts there. */
  hold(held: NanoUsd): void {
    for (const counter of this.counters.all) counter.hold((held - this.held) as NanoUsd);
    for (const part of this.parts)
      part.counter.hold((partOf(part, held) - partOf(part, this.held)) as NanoUsd);
    // What a budget that the key has left gets back cannot be taken from it again.
    if (held < this.held && this.parts.length > 0) this.parts = this.parts.map((part) => cut(part, held));
    this.held = held;
  }

  /** Ends the hold, of which `charged` was spent; `sequence` is the number of the end's record. */
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

  /** Whether an extension counts on exactly the counters of `money`. */
  growsOnOwnCounters(): boolean {
    const { counters, parts, money } = this;
    if (counters === money.counters) return true;
    const grows = new Set(money.counters.all);
    const open = parts.filter(({ to }) => to === null).map(({ counter }) => counter);
    return [...counters.all, ...open].every((counter) => grows.delete(counter)) && grows.size === 0;
  }

  /**
   * Lets further extensions count on the counters of `money`. A budget that the key has left keeps what was held on it; a new
   * one counts only what comes. So no budget is charged more than was held on it.
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

/** A counter for the part of the hold beyond `from`, up to `to`; null: without end. */
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

/** What a request needs to be admitted. */
export interface ReservationRequest {
  readonly receipt: ReceiptId;
  readonly at: EpochMs;
  readonly key: Key;
  readonly budgets: readonly Budget[];
  /** The run that the request belongs to. */
  readonly run?: AgentRun | null;
  readonly allowances: readonly Allowance[];
  readonly rpmLimit: number | null;
  /** The Open Tier's rate, in addition to the key's; null on the paid tier. */
  readonly freeRpmLimit: number | null;
  readonly tpmLimit: number | null;
  /** Held at admission; zero on the Open Tier. */
  readonly amount: NanoUsd;
  /** The worst case: every limit has to cover it together with what is spent, regardless of open holds. */
  readonly worst: NanoUsd;
  /** Estimated input plus output tokens, for `tpm_limit`. */
  readonly rateTokens: number;
  /** The most that may be charged and counted, whatever a host reports. */
  readonly most: ChargeLimit;
  /** Estimated prompt, billed if the process dies while the answer streams. */
  readonly promptTokens: number;
  /** The highest price of the plan's routes, at admission. */
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

export interface ReservationEnd {
  /** `written_off`: the host failed early, and the cost is recorded but not charged. */
  readonly state: TerminalState;
  /** Cost of what was delivered, at the serving route's price. */
  readonly cost: NanoUsd;
  /** The largest part of the cost, in whole tokens, that is at most `most`; absent: exactly `most`. */
  within?(most: NanoUsd): NanoUsd;
  /** Actual tokens, which replace the estimate in the key's rate. */
  readonly rateTokens: number;
  readonly allowanceUsed: boolean;
  /** What the host charged the operator, if known. */
  readonly hostCost?: NanoUsd | undefined;
}

export interface Settled {
  readonly charged: NanoUsd;
  readonly lost: NanoUsd;
  readonly writtenOff: NanoUsd;
  readonly held: NanoUsd;
}

export interface Settlement extends Settled {
  /** The end's number in the journal; await its durability before the client gets the last frame. */
  readonly sequence: number;
}

export const holdRecord = ({
  request,
  held,
  counters,
  parts,
  allowances,
  served,
}: Reservation): HoldRecord => ({
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
  parts:
    parts.length === 0 ? undefined : parts.map(({ counter, from, to }) => [counter.id, from, to] as const),
  served: served === null ? undefined : { ...served, attempts: served.attempts.map(shown) },
});

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
