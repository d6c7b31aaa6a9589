import { areSameBudgets, type Budget, isLimitedAlike, type Key, priceListOf } from "../customers/keys/key.ts";
import type { Holder } from "../customers/keys/keyring.ts";
import type { AgentRun } from "../customers/keys/runs.ts";
import type { Tags } from "../customers/keys/tags.ts";
import { assert } from "../units/assert.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { type Window, windowAt } from "../units/window.ts";
import {
  ALL_BALANCES,
  allowanceCounter,
  balanceCounter,
  boundOf,
  budgetLimits,
  Counter,
  type CounterId,
  isBalanceCounter,
  isOver,
  isValueCounter,
  keyCounter,
  type RateKind,
  rateCounter,
  runCounters,
  tagValueOf,
  untaggedBudget,
} from "./counter.ts";
import { type Debit, type Shortage, type TakenCredit, type TooMuch, taken } from "./credit.ts";
import { type GrantAnswer, GrantClaim, type GrantRequest, type Grants } from "./grants.ts";
import {
  type BalanceBook,
  type BudgetCap,
  Counters,
  KeyCounters,
  MoneyCounters,
  NO_COUNTERS,
  RateShare,
  RunCap,
} from "./key-counters.ts";
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
  type CallsShortfall,
  type CapShortfall,
  KEY_CHANGED,
  laterOf,
  type RateShortfall,
  rateShortfall,
  type Shortfall,
  shortRoom,
} from "./shortfall.ts";

/**
 * The ledger of one process. Balances, caps and rates live in memory; `admit` checks all of them and takes
 * from all of them without suspending, so in one event loop it is atomic: a thousand concurrent requests see
 * each other's holds. What it did goes to the journal as one record. Nothing is acknowledged to a
 * client before the journal says that the record is durable.
 */
export class Ledger {
  /** These three are bounded by what is in use: see `forgetIdle`. */
  private readonly byKey = new Map<KeyId, KeyCounters>();
  private readonly balances = new Map<BalanceId, BalanceBook>();
  private readonly counters = new Map<CounterId, Counter>();
  /** How many of them are those of one value of a tag. */
  private values = 0;
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
    private readonly sums: RunningSums,
    private readonly holders: KeyHolders,
    /** Null when this ledger is the only one: it may then use everything. */
    private readonly grants: Grants | null = null,
  ) {}

  /**
   * Everything that admission looks at, in memory. At once in the common case; a promise on a key's first
   * request of the day or after a start. Call `admit` in the same turn in which they were received.
   */
  countersOf(
    key: Key,
    budgets: readonly Budget[],
    allowances: readonly Allowance[],
    at: EpochMs,
    run?: AgentRun | null,
    tags?: Tags | null,
  ): KeyCounters | Promise<KeyCounters> {
    const keyCounters = this.byKey.get(key.rotationId);
    if (
      keyCounters?.covers(at) &&
      this.counted(allowances, at) &&
      this.moneyCounters(keyCounters, budgets, at, tags) !== null &&
      (!run || this.countersOfRun(run) !== null)
    )
      return keyCounters;
    return this.load(key, { budgets, at, tags }, allowances, run);
  }

  /**
   * Whether the key has reached its requests per minute; takes nothing. Used to refuse a request before
   * anything of it is read or parsed.
   */
  overRate({ rotationId, rpmLimit }: Pick<Key, "rotationId" | "rpmLimit">): RateShortfall | null {
    const keyCounters = rpmLimit === null ? undefined : this.byKey.get(rotationId);
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
      () => this.limits(keyCounters, this.moneyOf(keyCounters, request), request),
      claim,
    );
  }

  /** The same for `amount` more, by which a reservation could not be extended. */
  replenishHold({ keyCounters, money, request }: Reservation, amount: NanoUsd): Promise<GrantAnswer> | null {
    const claim = new GrantClaim();
    const answer = this.requestGrants(
      () => this.limits(keyCounters, money, moneyAlone(request, amount)),
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
    const covered = this.moneyShortfall(money, request, amount, amount) === null;
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
    return this.moneyShortfall(reservation.money, reservation.request, amount, amount);
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
    const caps = this.capsOf(source);
    if (caps === null) {
      void this.loadBudgets(source).catch(() => {});
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
    const record = terminalRecord(reservation, end.state, settled, allowances, body(settled));
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
    const book = this.balances.get(balance);
    if (book !== undefined) book.credited = (book.credited + amount) as NanoUsd;
  }

  /**
   * Holds credit that is to be taken back, until `endDebit`; or holds nothing, and says what there is. Where requests hold
   * the same credit, the balance has no room until they have given it back.
   */
  async holdDebit(balance: BalanceId, wanted: Debit["amount"]): Promise<TakenCredit | TooMuch> {
    const { counter, credited } = await this.loadBalance(balance);
    const available = counter.room(credited);
    const debit = taken(wanted, { available, unspent: credited - counter.spent });
    if (debit === null) return { available };
    counter.hold(debit.amount);
    return debit;
  }

  /** The debit is on the books or was given up; `credited` is what the store says now. */
  endDebit(balance: BalanceId, held: NanoUsd, credited: NanoUsd): void {
    const book = this.balances.get(balance);
    assert(book !== undefined, `${balance} was forgotten while a debit was held on it`);
    book.credited = credited;
    book.counter.settle(held, ZERO_USD);
  }

  /** How short a balance is, which is in memory: see `lostOf`. */
  shortage(balance: BalanceId): Shortage {
    const { credited, counter } = this.balances.get(balance)!;
    const { spent, held } = counter;
    return { short: spent + held - credited, held };
  }

  /** A balance as its owner sees it. */
  async balance(id: BalanceId): Promise<BalanceView> {
    const book = await this.loadBalance(id);
    const { credited, counter } = book;
    const { held, spent } = counter;
    return balanceView(balanceTotals(credited, spent), held);
  }

  /** Credit that is not spent; null where it is not in memory, or less than `enough` and other ledgers may know of more. */
  creditInMemory(id: BalanceId, enough: number): NanoUsd | null {
    const book = this.balances.get(id);
    if (book === undefined) return null;
    const { counter, credited } = book;
    const left = Math.max(0, boundOf(counter, credited) - counter.spent) as NanoUsd;
    return left >= enough || this.grants === null ? left : null;
  }

  /** Requests of the balance may be under way here. */
  isLoaded(id: BalanceId): boolean {
    return this.balances.has(id);
  }

  /** Spent and held on one counter. */
  async use(id: CounterId): Promise<{ spent: NanoUsd; held: NanoUsd }> {
    const { spent, held } = await this.loadCounter(id);
    return { spent, held };
  }

  /** What open requests hold of a counter, or of all balances. */
  heldOn(id: CounterId): NanoUsd {
    if (id !== ALL_BALANCES) return this.counters.get(id)?.held ?? ZERO_USD;
    let held = 0;
    for (const counter of this.counters.values()) if (isBalanceCounter(counter.id)) held += counter.held;
    return held as NanoUsd;
  }

  get openHolds(): number {
    return this.open.size;
  }

  /** By chain of rotated keys, where requests are open. */
  *openHoldsOfKeys(): Generator<readonly [KeyId, number]> {
    for (const [rotationId, { openHolds }] of this.byKey) if (openHolds !== 0) yield [rotationId, openHolds];
  }

  /** The open holds and how far their streams got: the head of a new journal file. */
  openRecords(): LedgerRecord[] {
    const reservations = [...this.open.values()];
    const holds: LedgerRecord[] = reservations.map(holdRecord);
    const tokens = reservations.map(({ request, delivered }) => [request.receipt, delivered] as const);
    return tokens.length === 0 ? [] : [...holds, { kind: "delivered", tokens }];
  }

  /** Everything in memory that the store can be checked against. */
  *booked(): Generator<Counter> {
    for (const counter of this.counters.values())
      if (this.grants?.isRetiring(counter.id) !== true) yield counter;
  }

  creditedInMemory(balance: BalanceId): NanoUsd | null {
    return this.balances.get(balance)?.credited ?? null;
  }

  /**
   * Forgets what has been idle for `idleMs`: the rates of keys, and counters once the store's sum has caught up
   * with them (`appliedThrough`) and nothing is held on them. A ledger remembers what it
   * spent of limits that ledgers share: as many counters as there are balances that it spent of since its start, with the present windows
   * of their keys and budgets. Values of tags are forgotten sooner, and their grants given back. Returns the counters that will not be asked for again.
   */
  forgetIdle(appliedThrough: number, idleMs: number): CounterId[] {
    const forgotten: CounterId[] = [];
    const nowMs = this.clock.elapsedMs();
    // What an open reservation may yet grow on is in use.
    for (const { money } of this.open.values())
      for (const counter of money.counters.all) counter.usedAt = nowMs;
    for (const [rotationId, keyCounters] of this.byKey) {
      if (
        nowMs - keyCounters.usedAt > idleMs &&
        keyCounters.requests.idle(nowMs) &&
        keyCounters.openHolds === 0
      )
        this.byKey.delete(rotationId);
      // A key that stays keeps its counters: were one forgotten and loaded again, two would count the same
      // thing.
      else for (const counter of keyCounters.money.counters.all) counter.usedAt = nowMs;
    }
    const valueIdleMs = this.isCrowded ? CROWDED_IDLE_MS : Math.min(idleMs, VALUE_IDLE_MS);
    let retired = 0;
    for (const [id, counter] of this.counters) {
      if (counter.held !== 0 || counter.changedBy > appliedThrough) continue;
      const isValue = isValueCounter(id);
      if (nowMs - counter.usedAt <= (isValue ? valueIdleMs : idleMs)) continue;
      const isDone = this.grants === null || isOver(id, this.clock.now());
      // What was spent of a grant is only known here: its counter stays until its window is long over, or until the
      // Authority counts it.
      const isKept = !isDone && (counter.spent !== 0 || counter.granted !== 0);
      if (isKept) {
        if (!isValue || retired === MAX_RETIRED || !this.grants!.retire(counter)) continue;
        retired += 1;
      }
      this.counters.delete(id);
      if (isValue) this.values -= 1;
      if (isBalanceCounter(id)) this.balances.delete(id.slice("balance:".length) as BalanceId);
      if (!isDone) continue;
      this.grants?.forget(id);
      forgotten.push(id);
    }
    return forgotten;
  }

  /** More values of tags are in memory than there may be: those that nobody uses right now should be forgotten. */
  get isCrowded(): boolean {
    return this.values > MAX_VALUES;
  }

  private shortfall(keyCounters: KeyCounters, request: ReservationRequest, nowMs: number): Shortfall | null {
    if (this.grants?.usable() === false) return BOOKS_AWAY;
    if (!this.isCurrent(request)) return KEY_CHANGED;
    const tooMany = this.callsShortfall(request);
    if (tooMany !== null) return tooMany;
    // Before the rates: a client that waits a minute must not learn after it that the day's allowance is
    // spent.
    for (const allowance of request.allowances) {
      const counter = this.counters.get(allowanceCounter(allowance.owner, request.at))!;
      if (counter.room(allowance.limit as NanoUsd) < 1) return allowanceShortfall(allowance, request.at);
    }
    const { rpmLimit, freeRpmLimit, tpmLimit } = request;
    if (
      rpmLimit !== null &&
      keyCounters.requests.taken(nowMs) + 1 > boundOf(keyCounters.requestShare, rpmLimit as NanoUsd)
    ) {
      return rateShortfall("rpm_limit", rpmLimit, keyCounters.requests, 1, nowMs);
    }
    if (
      freeRpmLimit !== null &&
      keyCounters.freeRequests.taken(nowMs) + 1 >
        boundOf(keyCounters.freeRequestShare, freeRpmLimit as NanoUsd)
    ) {
      return rateShortfall("open_tier.rpm", freeRpmLimit, keyCounters.freeRequests, 1, nowMs);
    }
    if (
      tpmLimit !== null &&
      keyCounters.tokens.taken(nowMs) + request.rateTokens >
        boundOf(keyCounters.tokenShare, tpmLimit as NanoUsd)
    ) {
      return rateShortfall("tpm_limit", tpmLimit, keyCounters.tokens, request.rateTokens, nowMs);
    }
    return this.moneyShortfall(this.moneyOf(keyCounters, request), request, request.amount, request.worst);
  }

  /** No wait fixes that, so it is said before anything else that is. */
  private callsShortfall({ run }: ReservationRequest): CallsShortfall | null {
    if (!run) return null;
    const short = shortRoom(this.countersOfRun(run)!.calls, callsLimit(run), ONE_REQUEST, ONE_REQUEST);
    return short === null ? null : { ...short, what: "calls", run: run.name };
  }

  /** Each limit must have room for `amount` now, and for `worst` if nothing else were open. */
  private moneyShortfall(
    { balance, day, month, caps, run }: MoneyCounters,
    request: ReservationRequest,
    amount: NanoUsd,
    worst: NanoUsd,
  ): Shortfall | null {
    if (amount === 0) return null;
    const { key, at } = request;
    const { credited, counter } = balance;
    const poor = shortRoom(counter, credited, amount, worst);
    if (poor !== null) return { ...poor, what: "balance", available: counter.room(credited) };
    // What has no limit is granted too where ledgers share: a limit that is set later then finds all of it
    // counted.
    let last: CapShortfall | null = null;
    const dailyLimit = key.dailyLimit ?? MAX_NANO_USD;
    const today = shortRoom(day, dailyLimit, amount, worst);
    if (today !== null) last = { ...today, what: "daily_limit_usd", resetsAt: windowAt("day", at).resetsAt };
    const monthlyLimit = key.monthlyLimit ?? MAX_NANO_USD;
    const monthly = shortRoom(month, monthlyLimit, amount, worst);
    if (monthly !== null) {
      const { resetsAt } = windowAt("month", at);
      last = laterOf(last, { ...monthly, what: "monthly_limit_usd", resetsAt });
    }
    for (const { budget, counter, limit, value } of caps) {
      const short = shortRoom(counter, limit, amount, worst);
      if (short !== null) {
        const { resetsAt } = windowAt(budget.window, at);
        const cap = { ...short, what: "budget", name: budget.name, resetsAt } as const;
        last = laterOf(last, value === undefined ? cap : { ...cap, of: { tag: budget.perTag!, value } });
      }
    }
    const ofRun = run === null ? null : shortRoom(run.counter, run.limit, amount, worst);
    if (ofRun !== null) last = laterOf(last, { ...ofRun, what: "run", name: run!.run.name, resetsAt: null });
    return last;
  }

  /** Everything that other ledgers may share, with its limit and what the request takes of it. */
  private limits(
    keyCounters: KeyCounters,
    { balance, day, month, caps, run }: MoneyCounters,
    request: ReservationRequest,
  ): GrantRequest[] {
    const { key, at, amount } = request;
    const limits: GrantRequest[] = [];
    if (request.rpmLimit !== null)
      limits.push([keyCounters.requestShare, request.rpmLimit as NanoUsd, ONE_REQUEST]);
    if (request.freeRpmLimit !== null)
      limits.push([keyCounters.freeRequestShare, request.freeRpmLimit as NanoUsd, ONE_REQUEST]);
    if (request.tpmLimit !== null)
      limits.push([keyCounters.tokenShare, request.tpmLimit as NanoUsd, request.rateTokens as NanoUsd]);
    for (const { owner, limit } of request.allowances) {
      limits.push([this.counters.get(allowanceCounter(owner, at))!, limit as NanoUsd, ONE_REQUEST]);
    }
    if (request.run)
      limits.push([this.countersOfRun(request.run)!.calls, callsLimit(request.run), ONE_REQUEST]);
    if (amount === 0) return limits;
    limits.push([balance.counter, balance.credited, amount]);
    limits.push([day, key.dailyLimit ?? MAX_NANO_USD, amount]);
    limits.push([month, key.monthlyLimit ?? MAX_NANO_USD, amount]);
    for (const { counter, limit } of caps) limits.push([counter, limit, amount]);
    if (run !== null) limits.push([run.counter, run.limit, amount]);
    return limits;
  }

  private prefetch({ keyCounters, money }: Reservation, request: ReservationRequest): void {
    if (this.grants === null) return;
    for (const [counter, limit, amount] of this.limits(keyCounters, money, request))
      this.grants.prefetch(counter, amount, limit);
  }

  private seek({ keyCounters, money }: Reservation, request: ReservationRequest): void {
    if (this.grants === null) return;
    for (const [counter, limit, amount] of this.limits(keyCounters, money, request))
      this.grants.seek(counter, amount, limit);
  }

  private take(keyCounters: KeyCounters, request: ReservationRequest, nowMs: number): Reservation {
    const money = this.moneyOf(keyCounters, request);
    const allowances = this.allowanceCounters(request);
    for (const counter of money.counters.all) counter.hold(request.amount);
    for (const counter of allowances.all) counter.hold(ONE_REQUEST);
    keyCounters.usedAt = nowMs;
    keyCounters.openHolds += 1;
    keyCounters.requests.take(1, nowMs);
    if (request.freeRpmLimit !== null) keyCounters.freeRequests.take(1, nowMs);
    const rateSlot = keyCounters.tokens.take(request.rateTokens, nowMs);
    return new Reservation(keyCounters, money, request, allowances, rateSlot);
  }

  /** The counters that count requests. */
  private allowanceCounters({ allowances, at, run }: ReservationRequest): Counters {
    if (allowances.length === 0 && !run) return NO_COUNTERS;
    const counters = allowances.map(({ owner }) => this.counters.get(allowanceCounter(owner, at))!);
    return new Counters(run ? [...counters, this.countersOfRun(run)!.calls] : counters);
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

  /** What the request pays from; all of it is in memory. */
  private moneyOf(keyCounters: KeyCounters, { budgets, at, run, about }: ReservationRequest): MoneyCounters {
    const money = this.moneyCounters(keyCounters, budgets, at, about.tags)!;
    return run ? money.of(new RunCap(run, this.countersOfRun(run)!.money)) : money;
  }

  /** Null where they are not in memory. */
  private countersOfRun(run: AgentRun): { readonly money: Counter; readonly calls: Counter } | null {
    const ids = runCounters(run);
    const [money, calls] = [this.counters.get(ids.money), this.counters.get(ids.calls)];
    return money === undefined || calls === undefined ? null : { money, calls };
  }

  /** The key's, with those of these budgets; null where they are not in memory. */
  private moneyCounters(
    keyCounters: KeyCounters,
    budgets: readonly Budget[],
    at: EpochMs,
    tags: CapSource["tags"],
  ): MoneyCounters | null {
    if (keyCounters.money.drawsFrom(budgets, tags)) return keyCounters.money;
    const caps = this.capsOf({ budgets, at, tags });
    if (caps !== null) keyCounters.money = keyCounters.money.with(budgets, caps);
    return caps === null ? null : keyCounters.money;
  }

  private capsOf({ budgets, at, tags }: CapSource): BudgetCap[] | null {
    const caps: BudgetCap[] = [];
    for (const budget of budgets) {
      for (const [id, limit] of budgetLimits(budget, at, tags)) {
        const counter = this.counters.get(id);
        if (counter === undefined) return null;
        caps.push({
          budget,
          counter,
          limit,
          value: isValueCounter(id) ? tagValueOf(budget, tags) : undefined,
        });
      }
    }
    return caps;
  }

  private counted(allowances: readonly Allowance[], at: EpochMs): boolean {
    for (const { owner } of allowances) if (!this.counters.has(allowanceCounter(owner, at))) return false;
    return true;
  }

  private async load(
    key: Key,
    source: CapSource,
    allowances: readonly Allowance[],
    run?: AgentRun | null,
  ): Promise<KeyCounters> {
    const { budgets, at } = source;
    const balance = await this.loadBalance(key.balanceId);
    const day = await this.loadCounter(keyCounter("day", key.rotationId, at));
    const month = await this.loadCounter(keyCounter("month", key.rotationId, at));
    await this.loadBudgets(source);
    for (const { owner } of allowances) await this.loadCounter(allowanceCounter(owner, at));
    if (run) for (const id of Object.values(runCounters(run))) await this.loadCounter(id);
    const today = windowAt("day", at);
    const money = new MoneyCounters(balance, day, month, budgets, this.capsOf(source)!);
    const keyCounters = this.byKey.get(key.rotationId) ?? this.newKeyCounters(key, money, today);
    keyCounters.enterDay(money, today);
    keyCounters.usedAt = this.clock.elapsedMs();
    this.byKey.set(key.rotationId, keyCounters);
    return keyCounters;
  }

  private async loadBudgets({ budgets, at, tags }: CapSource): Promise<void> {
    for (const budget of budgets)
      for (const [id] of budgetLimits(budget, at, tags)) await this.loadCounter(id);
  }

  private newKeyCounters(key: Key, money: MoneyCounters, today: Window): KeyCounters {
    const share = (kind: RateKind) => this.rateShare(kind, key);
    return new KeyCounters(money, today, share("rpm"), share("free_rpm"), share("tpm"));
  }

  private rateShare(kind: RateKind, { rotationId }: Key): RateShare {
    const alone = this.grants === null;
    return new RateShare(rateCounter(kind, rotationId), this.clock, alone ? MAX_NANO_USD : ZERO_USD);
  }

  private async loadBalance(id: BalanceId): Promise<BalanceBook> {
    const counter = await this.loadCounter(balanceCounter(id));
    const known = this.balances.get(id);
    if (known !== undefined) return known;
    const credited = this.sums.credited(id);
    const book = {
      counter,
      credited: credited instanceof Promise ? await credited : credited,
    };
    return remember(this.balances, id, book);
  }

  private async loadCounter(id: CounterId): Promise<Counter> {
    const known = this.counters.get(id);
    if (known !== undefined) return touched(known, this.clock);
    const counter = new Counter(id);
    if (this.grants === null) {
      const spent = this.sums.spent(id);
      counter.spent = spent instanceof Promise ? await spent : spent;
    } else counter.granted = ZERO_USD;
    const remembered = remember(this.counters, id, counter);
    if (remembered === counter && isValueCounter(id)) this.values += 1;
    return touched(remembered, this.clock);
  }
}

/** What decides which counters of budgets a request is held on. */
interface CapSource {
  readonly budgets: readonly Budget[];
  readonly at: EpochMs;
  readonly tags: Tags | null | undefined;
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

/** The store's running sums, up to the journal record that was applied last. */
export interface RunningSums {
  spent(id: CounterId): NanoUsd | Promise<NanoUsd>;
  credited(id: BalanceId): NanoUsd | Promise<NanoUsd>;
}

export interface BalanceTotals {
  /** All that it ever was, less what was taken back. */
  readonly credited: NanoUsd;
  /** Credits less charges. */
  readonly total: NanoUsd;
}

/** While a claim is open, more may be spent than was credited; that does not show. */
export const balanceTotals = (credited: NanoUsd, spent: NanoUsd): BalanceTotals => ({
  credited,
  total: Math.max(0, credited - spent) as NanoUsd,
});

export interface BalanceView extends BalanceTotals {
  readonly held: NanoUsd;
  readonly available: NanoUsd;
}

/** While a claim is open, more may be held than what is left; what is available does not show below zero. */
export const balanceView = (totals: BalanceTotals, held: NanoUsd): BalanceView => ({
  ...totals,
  held,
  available: Math.max(0, totals.total - held) as NanoUsd,
});

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

const ONE_REQUEST = 1 as NanoUsd;
/** Values of tags whose counters are in memory, some 250 bytes each and 900 where ledgers share them, before those are forgotten that are not in use. */
const MAX_VALUES = 100_000;
const VALUE_IDLE_MS = 60_000;
const CROWDED_IDLE_MS = 1_000;
/** Counters that are given back at once: those wait that requests need. */
const MAX_RETIRED = 10_000;
const callsLimit = ({ limits }: AgentRun): NanoUsd => (limits?.calls ?? MAX_NANO_USD) as NanoUsd;

const UNCHARGED = { charged: ZERO_USD, writtenOff: ZERO_USD, lost: ZERO_USD };

/** Two loads of the same thing may overlap; everybody counts with the first to arrive. */
function remember<K, V>(map: Map<K, V>, id: K, value: V): V {
  const known = map.get(id);
  if (known !== undefined) return known;
  map.set(id, value);
  return value;
}

function touched(counter: Counter, clock: Clock): Counter {
  counter.usedAt = clock.elapsedMs();
  return counter;
}
