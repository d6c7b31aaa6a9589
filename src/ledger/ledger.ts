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
 * The ledger of one process. Balances, caps and rates live in memory; `admit` checks all of them and takes
 * from all of them without suspending, so in one event loop it is atomic: a thousand concurrent requests see
 * each other's holds. What it did goes to the journal as one record. Nothing is acknowledged to a
 * client before the journal says that the record is durable.
 */
export class Ledger {
  /** What of the books is in memory. */
  readonly counters: CounterCache;
  private readonly open = new Map<ReceiptId, Reservation>();
  /** Since the last checkpoint; some may have ended. */
  private moved: Reservation[] = [];
  /** Streams of which the journal does not say yet who answers them. */
  private readonly startedReservations = new Set<Reservation>();
  /** Counts what streams have delivered, for the next checkpoint; null where nothing has to be counted. */
  countDelivered: () => Promise<void> | null = () => null;
  /** Sum of what hosts delivered beyond holds since start. */
  lost: NanoUsd = ZERO_USD;

  constructor(
    private readonly clock: Clock,
    private readonly journal: Journal,
    sums: RunningSums,
    private readonly holders: KeyHolders,
    /** Null when this ledger is the only one: it may then use everything. */
    private readonly grants: Grants | null = null,
  ) {
    this.counters = new CounterCache(clock, sums, grants);
  }

  /**
   * Whether the key has reached its requests per minute; takes nothing. Used to refuse a request before
   * anything of it is read or parsed.
   */
  overRate({ rotationId, rpmLimit }: Pick<Key, "rotationId" | "rpmLimit">): RateShortfall | null {
    const keyCounters = rpmLimit === null ? undefined : this.counters.ofKey(rotationId);
    if (keyCounters === undefined || rpmLimit === null) return null;
    const nowMs = this.clock.elapsedMs();
    return keyCounters.requests.taken(nowMs) + 1 > rpmLimit
      ? rateShortfall("rpm_limit", rpmLimit, keyCounters.requests, 1, nowMs)
      : null;
  }

  /**
   * Takes all that the request needs, or says what is short and takes nothing: the run's calls, the allowance, the request
   * rate, the token rate, the balance, or of the day, the month and the budgets the one that makes room last. A
   * request whose key is no longer as it says, because it changed while the request waited, takes nothing either.
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

  /**
   * Free requests left today (UTC) in the scarcest of the allowances, of all ledgers at the Authority's latest answer; null while
   * that is not known of one.
   */
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
   * When other ledgers share the limits: asks for what this one lacks for the request. "room" says that
   * another `admit` is worth it; null, that there is no Authority. The caller releases the claim, once admitted or refused.
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

  /** The same for `amount` more, by which a reservation could not be extended. */
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
   * Holds `amount` more, if there is room by the limits of this moment and the key may still spend; otherwise
   * false. What other ledgers do not use, or what is not known of the key, is then on its way.
   */
  extend(reservation: Reservation, amount: NanoUsd): boolean {
    assert(reservation.isOpen, "extending a reservation that was spent");
    if (!this.mayGrow(reservation)) return false;
    const { request, money } = reservation;
    const covered = moneyShortfall(money, request, amount, amount) === null;
    const more = moneyAlone(request, amount);
    this.prefetch(reservation, more);
    if (!covered) {
      this.seek(reservation, more);
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

  /** Lowers what the reservation holds, on everything that it holds on; what was more goes to others. */
  shrink(reservation: Reservation, held: NanoUsd): void {
    assert(reservation.isOpen, "shrinking a reservation that was spent");
    if (held >= reservation.held) return;
    reservation.hold(held);
    const { parts, request } = reservation;
    // Which parts count on what has changed with it.
    this.journal.append(
      parts.length > 0 ? holdRecord(reservation) : { kind: "extend", receipt: request.receipt, held },
    );
  }

  /** Whether `extend` would succeed now. */
  coversMore(reservation: Reservation, amount: NanoUsd): boolean {
    return this.growthShortfall(reservation, amount) === null;
  }

  /**
   * Whether what the key may spend at all is known now, and is something. The reservation then has the limits
   * and the budgets of this moment.
   */
  private mayGrow(reservation: Reservation): boolean {
    if (this.grants?.usable() === false) return false;
    const { request, money } = reservation;
    const holder = this.holders.current(request.key, this.clock.now());
    if (holder === null || holder === undefined) return false;
    // Nothing more fits into its cap until then.
    if (request.run?.limits === null) void request.run.reread();
    const { key, budgets } = holder;
    if (key !== request.key || budgets !== request.budgets)
      reservation.request = { ...request, key, budgets };
    const { tags } = request.about;
    if (money.drawsFrom(budgets, tags)) return true;
    // A budget that caps each value of a tag, which the request does not have, has no room for it.
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

  /** Undefined where that has to be read first. */
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
   * After an `admit` by which the key has changed: false where that matters to the request, which then has to be read
   * again by what the key has become. What was not known of the key or its run has been read.
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

  /** Has the keys of open requests that have changed read again, before their streams have to grow. */
  recheck(concerns: (key: Key) => boolean): void {
    const now = this.clock.now();
    for (const { request } of this.open.values())
      if (concerns(request.key)) this.holders.current(request.key, now);
  }

  /** Notes who answers a stream, for the next checkpoint: a crash is billed at their price. */
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

  /**
   * Journals who answers the streams that have started, and how far every stream that moved has got, so that a
   * crash bills what was delivered and no more.
   */
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
   * Ends a reservation, once: charges `cost` as far as the hold goes (grown first, up to the most it may come
   * to, where there is room), gives the rest back, and journals the end together with the receipt that `body`
   * writes about it.
   */
  settle(reservation: Reservation, end: ReservationEnd, body: (settled: Settled) => string): Settlement {
    const { request } = reservation;
    assert(reservation.isOpen, `receipt ${request.receipt} was settled twice`);
    const billable = end.writeOff ? ZERO_USD : end.cost;
    const beyond = reservation.beyond(billable);
    if (beyond > 0) this.extend(reservation, beyond);
    const { held } = reservation;
    const charged = billable <= held ? billable : (end.within?.(held) ?? held);
    const settled = {
      charged,
      lost: (billable - charged) as NanoUsd,
      writtenOff: end.writeOff ? end.cost : ZERO_USD,
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
   * Takes back a charge whose record the disk refused, so that an answer that could not be given for that
   * reason costs nothing. False when the record is on its way to the disk after all; then the charge stands.
   */
  takeBack(reservation: Reservation, { charged, lost, sequence }: Settlement, body: string): boolean {
    if (!this.journal.withdraw(sequence)) return false;
    this.lost = (this.lost - lost) as NanoUsd;
    reservation.refund(charged);
    // Only a complete answer is ever taken back, and a complete answer has used its allowance.
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
   * Holds credit that is to be taken back, until `endDebit`; or holds nothing, and says what there is. Where requests hold
   * the same credit, the balance has no room until they have given it back.
   */
  async holdDebit(balance: BalanceId, requested: Debit["amount"]): Promise<TakenCredit | TooMuch> {
    const { counter, credited } = await this.counters.loadBalance(balance);
    const available = counter.room(credited);
    const debit = taken(requested, { available, unspent: credited - counter.spent });
    if (debit === null) return { available };
    counter.hold(debit.amount);
    return debit;
  }

  /** The debit is on the books or was given up; `credited` is what the store says now. */
  endDebit(balance: BalanceId, held: NanoUsd, credited: NanoUsd): void {
    const book = this.counters.ofBalance(balance);
    assert(book !== undefined, `${balance} was forgotten while a debit was held on it`);
    book.credited = credited;
    book.counter.settle(held, ZERO_USD);
  }

  /** How short a balance is, which is in memory: see `lostOf`. */
  shortage(balance: BalanceId): Shortage {
    const { credited, counter } = this.counters.ofBalance(balance)!;
    const { spent, held } = counter;
    return { short: spent + held - credited, held };
  }

  /** A balance as its owner sees it. */
  async balance(id: BalanceId): Promise<BalanceView> {
    const book = await this.counters.loadBalance(id);
    const { credited, counter } = book;
    const { held, spent } = counter;
    return balanceView(balanceTotals(credited, spent), held);
  }

  /** Credit that is not spent; null where it is not in memory, or less than `enough` and other ledgers may know of more. */
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
    // What an open reservation may yet grow on is in use.
    for (const { money } of this.open.values()) this.counters.touch(money.counters.all);
    return this.counters.forgetIdle(appliedThrough, idleMs);
  }

  /** The open holds and how far their streams got: the head of a new journal file. */
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
    // Before the rates: a client that waits a minute must not learn after it that the day's allowance is
    // spent.
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

  private seek({ keyCounters, money }: Reservation, request: ReservationRequest): void {
    if (this.grants === null) return;
    for (const [counter, limit, amount] of this.counters.limits(keyCounters, money, request))
      this.grants.seek(counter, amount, limit);
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

/** Appends records in order. `durable` in store/journal says when one may be acknowledged. */
export interface Journal {
  append(record: LedgerRecord): number;
  /** Forgets a record that the disk has refused so far; false when it is written or being written. */
  withdraw(sequence: number): boolean;
}

/** Keys and what they draw from. */
export interface KeyHolders {
  /** As of this moment; null where the key may not spend, undefined where that has to be read first. */
  current(key: Pick<Key, "id" | "hash">, at: EpochMs): Holder | null | undefined;
  /** Resolves once what `current` did not know was read. */
  reread(key: Pick<Key, "id" | "hash">): Promise<void>;
}

/** An open request has taken all but money already. */
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
