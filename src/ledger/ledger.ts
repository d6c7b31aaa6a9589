import { areSameBudgets, isLimitedAlike, type Key, priceListOf } from "../customers/keys/key.ts";
import type { Holder } from "../customers/keys/keyring.ts";
import { assert } from "../units/assert.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import type { BalanceId, ReceiptId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { type BalanceView, balanceTotals, balanceView } from "./balance-view.ts";
import { allowanceCounter, boundOf, type CounterId, ONE_REQUEST, untaggedBudget } from "./counter.ts";
import { CounterCache, type RunningSums } from "./counter-cache.ts";
import { type Debit, type Shortage, type TakenCredit, type TooMuch, taken } from "./credit.ts";
import { type GrantAnswer, GrantClaim, type GrantRequest, type Grants } from "./grants.ts";
import { type KeyCounters, NO_COUNTERS } from "./key-counters.ts";
import type { LedgerRecord, ServedBy } from "./record.ts";
import {
  type Allowance,
  holdRecord,
  Reservation,
  type ReservationEnd,
  type ReservationRequest,
  type Settled,
  type Settlement,
  terminalRecord,
} from "./reservation.ts";
import {
  allowanceShortfall,
  BOOKS_AWAY,
  callsShortfall,
  KEY_CHANGED,
  moneyShortfall,
  type RateShortfall,
  rateShortfall,
  ratesShortfall,
  type Shortfall,
} from "./shortfall.ts";

/**
 * The ledger of one process. Balances, caps and rates are in memory. `admit` checks all of them and takes from all of them
 * without awaiting, so it is atomic in one event loop: a thousand concurrent requests see each other's holds. It appends one
 * record to the journal, and no client gets an answer before that record is durable.
 */
export class Ledger {
  /** The part of the books that is in memory. */
  readonly counters: CounterCache;
  private readonly open = new Map<ReceiptId, Reservation>();
  /** Streams that delivered tokens since the last checkpoint; some may have ended. */
  private moved: Reservation[] = [];
  /** Streams whose model and host are not in the journal yet. */
  private readonly startedReservations = new Set<Reservation>();
  /** Counts what streams have delivered, for the next checkpoint; null if there is nothing to count. */
  countDelivered: () => Promise<void> | null = () => null;
  /** Sum of what hosts delivered beyond holds since start. */
  lost: NanoUsd = ZERO_USD;

  constructor(
    private readonly clock: Clock,
    private readonly journal: Journal,
    sums: RunningSums,
    private readonly holders: KeyHolders,
    /** Null if this ledger is the only one and may use every limit in full. */
    private readonly grants: Grants | null = null,
  ) {
    this.counters = new CounterCache(clock, sums, grants);
  }

  /** Whether the key has used its requests per minute; takes nothing. Refuses a request before its body is read. */
  overRate({ rotationId, rpmLimit }: Pick<Key, "rotationId" | "rpmLimit">): RateShortfall | null {
    const keyCounters = rpmLimit === null ? undefined : this.counters.ofKey(rotationId);
    if (keyCounters === undefined || rpmLimit === null) return null;
    const nowMs = this.clock.elapsedMs();
    return keyCounters.requests.taken(nowMs) + 1 > rpmLimit
      ? rateShortfall("rpm_limit", rpmLimit, keyCounters.requests, 1, nowMs)
      : null;
  }

  /**
   * Takes everything that the request needs, or takes nothing and returns the first limit that is short, in this order: the
   * run's calls, the allowance, the request rate, the token rate, the balance; then, of day, month and budgets, the one that
   * has room last. If the key changed while the request waited, nothing is taken either.
   */
  admit(keyCounters: KeyCounters, request: ReservationRequest): Reservation | Shortfall {
    assert(keyCounters.covers(request.at), "admission with counters of another day");
    const nowMs = this.clock.elapsedMs();
    const short = this.shortfall(keyCounters, request, nowMs);
    if (short !== null) return short;
    const reservation = this.take(keyCounters, request, nowMs);
    this.open.set(request.receipt, reservation);
    reservation.sequence = this.journal.append(holdRecord(reservation));
    this.prefetch(reservation, request);
    return reservation;
  }

  /** Free requests left today (UTC) in the scarcest allowance, across all ledgers; null while one is not known. */
  remaining(allowances: readonly Allowance[], at: EpochMs): number | null {
    let fewest: number | null = null;
    for (const { owner, limit } of allowances) {
      const counter = this.counters.get(allowanceCounter(owner, at));
      if (counter === undefined) return null;
      if (this.grants !== null && counter.granted === 0 && counter.elsewhere === 0) return null;
      fewest = Math.min(fewest ?? limit, Math.max(0, limit - counter.elsewhere - counter.used()));
    }
    return fewest;
  }

  /**
   * Requests the grants that this ledger lacks for the request. "room": call `admit` again; null: no other ledger shares the
   * limits. The caller releases the claim once the request is admitted or refused.
   */
  replenish(
    keyCounters: KeyCounters,
    request: ReservationRequest,
    claim: GrantClaim,
  ): Promise<GrantAnswer> | null {
    return this.requestGrants(
      () => this.counters.limits(keyCounters, this.counters.moneyOf(keyCounters, request), request),
      claim,
    );
  }

  /** The same for the `amount` by which a reservation could not be extended. */
  replenishHold({ keyCounters, money, request }: Reservation, amount: NanoUsd): Promise<GrantAnswer> | null {
    const claim = new GrantClaim();
    const answer = this.requestGrants(
      () => this.counters.limits(keyCounters, money, moneyAlone(request, amount)),
      claim,
    );
    return answer?.finally(() => claim.release()) ?? null;
  }

  private requestGrants(limits: () => GrantRequest[], claim: GrantClaim): Promise<GrantAnswer> | null {
    const { grants } = this;
    if (grants === null) return null;
    if (!grants.usable()) return grants.awaitLease().then((again) => (again ? "room" : "unanswered"));
    return grants.requestAll(limits(), claim);
  }

  /**
   * Holds `amount` more if the limits of this moment have room and the key may still spend. Otherwise returns false, and
   * requests the missing grant or rereads the key in the background.
   */
  extend(reservation: Reservation, amount: NanoUsd): boolean {
    assert(reservation.isOpen, "extending a reservation that was spent");
    if (!this.mayGrow(reservation)) return false;
    const { request, money } = reservation;
    const covered = moneyShortfall(money, request, amount, amount) === null;
    const more = moneyAlone(request, amount);
    this.prefetch(reservation, more);
    if (!covered) {
      this.requestInBackground(reservation, more);
      return false;
    }
    if (!reservation.growsOnOwnCounters()) {
      reservation.regroup();
      this.journal.append(holdRecord(reservation));
    }
    reservation.hold((reservation.held + amount) as NanoUsd);
    this.journal.append({ kind: "extend", receipt: request.receipt, held: reservation.held });
    return true;
  }

  /** Why `extend` by `amount` fails now; null where it would succeed. */
  growthShortfall(reservation: Reservation, amount: NanoUsd): Shortfall | null {
    if (this.grants?.usable() === false) return BOOKS_AWAY;
    if (!this.mayGrow(reservation)) return KEY_CHANGED;
    return moneyShortfall(reservation.money, reservation.request, amount, amount);
  }

  /** Lowers the hold on all of its counters. */
  shrink(reservation: Reservation, held: NanoUsd): void {
    assert(reservation.isOpen, "shrinking a reservation that was spent");
    if (held >= reservation.held) return;
    reservation.hold(held);
    const { parts, request } = reservation;
    // The parts have changed with it.
    this.journal.append(
      parts.length > 0 ? holdRecord(reservation) : { kind: "extend", receipt: request.receipt, held },
    );
  }

  /** Whether `extend` would succeed now. */
  coversMore(reservation: Reservation, amount: NanoUsd): boolean {
    return this.growthShortfall(reservation, amount) === null;
  }

  /** Whether the key may spend, as far as is known now. Gives the reservation the limits and budgets of this moment. */
  private mayGrow(reservation: Reservation): boolean {
    if (this.grants?.usable() === false) return false;
    const { request, money } = reservation;
    const holder = this.holders.current(request.key, this.clock.now());
    if (holder === null || holder === undefined) return false;
    // Until its limits are read, nothing more fits into the run's cap.
    if (request.run?.limits === null) void request.run.reread();
    const { key, budgets } = holder;
    if (key !== request.key || budgets !== request.budgets)
      reservation.request = { ...request, key, budgets };
    const { tags } = request.about;
    if (money.drawsFrom(budgets, tags)) return true;
    // A budget that caps each value of a tag has no room for a request without the tag.
    if (untaggedBudget(budgets, tags) !== null) return false;
    const source = { budgets, at: request.at, tags };
    const caps = this.counters.capsOf(source);
    if (caps === null) {
      void this.counters.loadBudgets(source).catch(() => {});
      return false;
    }
    reservation.money = money.with(budgets, caps);
    return true;
  }

  /** Whether the key is still as the request has it; undefined if that has to be read first. */
  private isCurrent({ key, budgets, run, about }: ReservationRequest): boolean | undefined {
    const holder = this.holders.current(key, this.clock.now());
    if (holder === undefined || run?.limits === null) return undefined;
    return (
      holder !== null &&
      isLimitedAlike(holder.key, key) &&
      areSameBudgets(holder.budgets, budgets) &&
      priceListOf(holder) === (about.priceList ?? null)
    );
  }

  /**
   * After `admit` found a changed key: rereads the key and its run. False if the change matters to the request, which then
   * has to be evaluated again.
   */
  async isStillCurrent(request: ReservationRequest): Promise<boolean> {
    const current = this.isCurrent(request);
    if (current !== undefined) return current;
    await Promise.all([
      this.holders.reread(request.key),
      request.run?.limits === null ? request.run.reread() : null,
    ]);
    return this.isCurrent(request) ?? true;
  }

  /** Rereads changed keys of open requests, before their streams have to grow. */
  recheck(concerns: (key: Key) => boolean): void {
    const now = this.clock.now();
    for (const { request } of this.open.values())
      if (concerns(request.key)) this.holders.current(request.key, now);
  }

  /** Notes the model and host of a stream for the next checkpoint: after a crash, their price is charged. */
  serves(reservation: Reservation, by: ServedBy): void {
    if (!reservation.isOpen) return;
    reservation.served = by;
    this.startedReservations.add(reservation);
  }

  /** Notes how many tokens a stream has delivered, as they are billed, for the next checkpoint. */
  delivered(reservation: Reservation, outputTokens: number): void {
    if (!reservation.isOpen) return;
    reservation.delivered = outputTokens;
    if (reservation.moved) return;
    reservation.moved = true;
    this.moved.push(reservation);
  }

  /** Journals the hosts of new streams and what each stream has delivered: after a crash, that is what is charged. */
  checkpoint(): void {
    for (const reservation of this.startedReservations) this.journal.append(holdRecord(reservation));
    this.startedReservations.clear();
    const { moved } = this;
    if (moved.length === 0) return;
    this.moved = [];
    const tokens: [ReceiptId, number][] = [];
    for (const reservation of moved) {
      reservation.moved = false;
      if (reservation.isOpen) tokens.push([reservation.request.receipt, reservation.delivered]);
    }
    if (tokens.length > 0) this.journal.append({ kind: "delivered", tokens });
  }

  /**
   * Ends a reservation, once: extends the hold up to the cost if there is room, charges the cost up to the hold, releases the
   * rest, and journals the end with the receipt that `body` writes.
   */
  settle(reservation: Reservation, end: ReservationEnd, body: (settled: Settled) => string): Settlement {
    const { request } = reservation;
    assert(reservation.isOpen, `receipt ${request.receipt} was settled twice`);
    const isWrittenOff = end.state === "written_off";
    const billable = isWrittenOff ? ZERO_USD : end.cost;
    const beyond = reservation.beyond(billable);
    if (beyond > 0) this.extend(reservation, beyond);
    const { held } = reservation;
    const charged = billable <= held ? billable : (end.within?.(held) ?? held);
    assert(charged >= 0 && charged <= held, "a charge is not within its hold");
    const settled = {
      charged,
      lost: (billable - charged) as NanoUsd,
      writtenOff: isWrittenOff ? end.cost : ZERO_USD,
      held: reservation.held,
      sequence: 0,
    };
    const allowances = end.allowanceUsed ? reservation.allowances : NO_COUNTERS;
    const record = terminalRecord(reservation, end.state, settled, allowances, body(settled), end.hostCost);
    settled.sequence = this.journal.append(record);
    this.close(reservation, settled, end);
    return settled;
  }

  /**
   * Takes back a charge whose record the disk refused, because its answer could not be delivered. False if the record is
   * being written after all; then the charge stands.
   */
  takeBack(reservation: Reservation, { charged, lost, sequence }: Settlement, body: string): boolean {
    if (!this.journal.withdraw(sequence)) return false;
    this.lost = (this.lost - lost) as NanoUsd;
    reservation.refund(charged);
    // Only complete answers are taken back, and these have used their allowance.
    for (const counter of reservation.allowances.all) counter.settle(ZERO_USD, -ONE_REQUEST as NanoUsd);
    this.journal.append(terminalRecord(reservation, "failed", UNCHARGED, NO_COUNTERS, body));
    return true;
  }

  /** Credit that the store has already made durable. */
  credited(balance: BalanceId, amount: NanoUsd): void {
    const book = this.counters.ofBalance(balance);
    if (book !== undefined) book.credited = (book.credited + amount) as NanoUsd;
  }

  /**
   * Holds credit that is to be taken back, until `endDebit`; or holds nothing and returns what is available. Credit that
   * requests hold too leaves the balance without room until they release it.
   */
  async holdDebit(balance: BalanceId, requested: Debit["amount"]): Promise<TakenCredit | TooMuch> {
    const { counter, credited } = await this.counters.loadBalance(balance);
    const available = counter.room(credited);
    const debit = taken(requested, { available, unspent: credited - counter.spent });
    if (debit === null) return { available };
    counter.hold(debit.amount);
    return debit;
  }

  /** The debit was booked or given up; `credited` is the store's sum now. */
  endDebit(balance: BalanceId, held: NanoUsd, credited: NanoUsd): void {
    const book = this.counters.ofBalance(balance);
    assert(book !== undefined, `${balance} was forgotten while a debit was held on it`);
    book.credited = credited;
    book.counter.settle(held, ZERO_USD);
  }

  /** How short a balance in memory is: see `lostOf`. */
  shortage(balance: BalanceId): Shortage {
    const { credited, counter } = this.counters.ofBalance(balance)!;
    const { spent, held } = counter;
    return { short: spent + held - credited, held };
  }

  async balance(id: BalanceId): Promise<BalanceView> {
    const book = await this.counters.loadBalance(id);
    const { credited, counter } = book;
    const { held, spent } = counter;
    return balanceView(balanceTotals(credited, spent), held);
  }

  /** Unspent credit; null if the balance is not in memory, or if less than `enough` is here and other ledgers may have more. */
  creditInMemory(id: BalanceId, enough: number): NanoUsd | null {
    const book = this.counters.ofBalance(id);
    if (book === undefined) return null;
    const { counter, credited } = book;
    const left = Math.max(0, boundOf(counter, credited) - counter.spent) as NanoUsd;
    return left >= enough || this.grants === null ? left : null;
  }

  get openHolds(): number {
    return this.open.size;
  }

  /** Forgets what has been idle for `idleMs`: see `CounterCache.forgetIdle`. */
  forgetIdle(appliedThrough: number, idleMs: number): CounterId[] {
    // Counters that an open reservation may grow on are in use.
    for (const { money } of this.open.values()) this.counters.touch(money.counters.all);
    return this.counters.forgetIdle(appliedThrough, idleMs);
  }

  /** The open holds and what their streams have delivered: the head of a new journal file. */
  openRecords(): LedgerRecord[] {
    const reservations = [...this.open.values()];
    const holds: LedgerRecord[] = reservations.map(holdRecord);
    const tokens = reservations.map(({ request, delivered }) => [request.receipt, delivered] as const);
    return tokens.length === 0 ? [] : [...holds, { kind: "delivered", tokens }];
  }

  private shortfall(keyCounters: KeyCounters, request: ReservationRequest, nowMs: number): Shortfall | null {
    if (this.grants?.usable() === false) return BOOKS_AWAY;
    if (!this.isCurrent(request)) return KEY_CHANGED;
    const { run } = request;
    const tooMany = run ? callsShortfall(run, this.counters.ofRun(run)!.calls) : null;
    if (tooMany !== null) return tooMany;
    // Before the rates: otherwise a client waits a minute, and then learns that the day's allowance is used up.
    for (const allowance of request.allowances) {
      const counter = this.counters.get(allowanceCounter(allowance.owner, request.at))!;
      if (counter.room(allowance.limit as NanoUsd) < 1) return allowanceShortfall(allowance, request.at);
    }
    const tooFast = ratesShortfall(keyCounters, request, nowMs);
    if (tooFast !== null) return tooFast;
    return moneyShortfall(
      this.counters.moneyOf(keyCounters, request),
      request,
      request.amount,
      request.worst,
    );
  }

  private prefetch({ keyCounters, money }: Reservation, request: ReservationRequest): void {
    if (this.grants === null) return;
    for (const [counter, limit, amount] of this.counters.limits(keyCounters, money, request))
      this.grants.prefetch(counter, amount, limit);
  }

  private requestInBackground({ keyCounters, money }: Reservation, request: ReservationRequest): void {
    if (this.grants === null) return;
    for (const [counter, limit, amount] of this.counters.limits(keyCounters, money, request))
      this.grants.requestInBackground(counter, amount, limit);
  }

  private take(keyCounters: KeyCounters, request: ReservationRequest, nowMs: number): Reservation {
    const money = this.counters.moneyOf(keyCounters, request);
    const allowances = this.counters.countingRequests(request);
    for (const counter of money.counters.all) counter.hold(request.amount);
    for (const counter of allowances.all) counter.hold(ONE_REQUEST);
    keyCounters.usedAt = nowMs;
    keyCounters.openHolds += 1;
    keyCounters.requests.take(1, nowMs);
    if (request.freeRpmLimit !== null) keyCounters.freeRequests.take(1, nowMs);
    const rateSlot = keyCounters.tokens.take(request.rateTokens, nowMs);
    return new Reservation(keyCounters, money, request, allowances, rateSlot);
  }

  private close(reservation: Reservation, settled: Settlement, end: ReservationEnd): void {
    const { keyCounters, request } = reservation;
    const nowMs = this.clock.elapsedMs();
    reservation.isOpen = false;
    this.open.delete(request.receipt);
    this.startedReservations.delete(reservation);
    this.lost = (this.lost + settled.lost) as NanoUsd;
    keyCounters.openHolds -= 1;
    keyCounters.usedAt = nowMs;
    const rateTokens = Math.min(end.rateTokens, request.most.tokens);
    keyCounters.tokens.adjust(reservation.rateSlot, rateTokens - request.rateTokens, nowMs);
    reservation.release(settled.charged, settled.sequence, nowMs);
    for (const counter of reservation.allowances.all)
      counter.end(ONE_REQUEST, end.allowanceUsed ? ONE_REQUEST : ZERO_USD, settled.sequence, nowMs);
  }
}

/** Appends records in order. `durable` in store/journal resolves when one may be acknowledged. */
export interface Journal {
  append(record: LedgerRecord): number;
  /** Drops a record that the disk has refused; false if it was written or is being written. */
  withdraw(sequence: number): boolean;
}

export interface KeyHolders {
  /** The holder now; null if the key may not spend, undefined if that has to be read first. */
  current(key: Pick<Key, "id" | "hash">, at: EpochMs): Holder | null | undefined;
  /** Reads what `current` did not know. */
  reread(key: Pick<Key, "id" | "hash">): Promise<void>;
}

/** For an open request, which has taken everything except money already. */
const moneyAlone = (request: ReservationRequest, amount: NanoUsd): ReservationRequest => ({
  ...request,
  amount,
  run: null,
  allowances: [],
  rpmLimit: null,
  freeRpmLimit: null,
  tpmLimit: null,
});

const UNCHARGED = { charged: ZERO_USD, writtenOff: ZERO_USD, lost: ZERO_USD };
