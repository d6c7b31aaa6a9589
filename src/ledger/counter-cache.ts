import type { Budget, Key } from "../customers/keys/key.ts";
import type { AgentRun } from "../customers/keys/runs.ts";
import type { Tags } from "../customers/keys/tags.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import type { BalanceId, KeyId } from "../units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { type Window, windowAt } from "../units/window.ts";
import {
  ALL_BALANCES,
  allowanceCounter,
  balanceCounter,
  budgetLimits,
  Counter,
  type CounterId,
  isBalanceCounter,
  isOver,
  isValueCounter,
  keyCounter,
  ONE_REQUEST,
  type RateKind,
  rateCounter,
  runCounters,
  tagValueOf,
} from "./counter.ts";
import type { GrantRequest, Grants } from "./grants.ts";
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
import type { Allowance, ReservationRequest } from "./reservation.ts";
import { callsLimit } from "./shortfall.ts";

/**
 * The counters in use, in memory: read from the store's sums or, if ledgers share limits, filled by grants of the Authority.
 * Idle ones are forgotten: see `forgetIdle`.
 */
export class CounterCache {
  private readonly byKey = new Map<KeyId, KeyCounters>();
  private readonly balances = new Map<BalanceId, BalanceBook>();
  private readonly counters = new Map<CounterId, Counter>();
  /** How many of the counters are for one value of a tag. */
  private values = 0;

  constructor(
    private readonly clock: Clock,
    private readonly sums: RunningSums,
    private readonly grants: Grants | null,
  ) {}

  /**
   * Everything that admission checks, in memory: mostly at once; a promise for a key's first request of the day or after a
   * start. Call `Ledger.admit` in the same turn of the event loop.
   */
  of(
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
      (!run || this.ofRun(run) !== null)
    )
      return keyCounters;
    return this.load(key, { budgets, at, tags }, allowances, run);
  }

  ofKey(rotationId: KeyId): KeyCounters | undefined {
    return this.byKey.get(rotationId);
  }

  /** Undefined only if no request of the balance is open here. */
  ofBalance(id: BalanceId): BalanceBook | undefined {
    return this.balances.get(id);
  }

  get(id: CounterId): Counter | undefined {
    return this.counters.get(id);
  }

  /** The counters that the request pays from, all in memory. */
  moneyOf(keyCounters: KeyCounters, { budgets, at, run, about }: ReservationRequest): MoneyCounters {
    const money = this.moneyCounters(keyCounters, budgets, at, about.tags)!;
    return run ? money.of(new RunCap(run, this.ofRun(run)!.money)) : money;
  }

  /** Null if they are not in memory. */
  ofRun(run: AgentRun): { readonly money: Counter; readonly calls: Counter } | null {
    const ids = runCounters(run);
    const [money, calls] = [this.counters.get(ids.money), this.counters.get(ids.calls)];
    return money === undefined || calls === undefined ? null : { money, calls };
  }

  /** The key's counters with those of these budgets; null if they are not in memory. */
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

  capsOf({ budgets, at, tags }: CapSource): BudgetCap[] | null {
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
    const keyCounters = this.byKey.getOrInsertComputed(key.rotationId, () =>
      this.newKeyCounters(key, money, today),
    );
    keyCounters.enterDay(money, today);
    keyCounters.usedAt = this.clock.elapsedMs();
    return keyCounters;
  }

  async loadBudgets({ budgets, at, tags }: CapSource): Promise<void> {
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

  async loadBalance(id: BalanceId): Promise<BalanceBook> {
    const counter = await this.loadCounter(balanceCounter(id));
    const known = this.balances.get(id);
    if (known !== undefined) return known;
    const credited = this.sums.credited(id);
    const book = {
      counter,
      credited: credited instanceof Promise ? await credited : credited,
    };
    // Loads may overlap; the first to arrive is used by all.
    return this.balances.getOrInsert(id, book);
  }

  private async loadCounter(id: CounterId): Promise<Counter> {
    const known = this.counters.get(id);
    if (known !== undefined) return this.touched(known);
    const counter = new Counter(id);
    if (this.grants === null) {
      const spent = this.sums.spent(id);
      counter.spent = spent instanceof Promise ? await spent : spent;
    } else counter.granted = ZERO_USD;
    const remembered = this.counters.getOrInsert(id, counter);
    if (remembered === counter && isValueCounter(id)) this.values += 1;
    return this.touched(remembered);
  }

  private touched(counter: Counter): Counter {
    counter.usedAt = this.clock.elapsedMs();
    return counter;
  }

  countingRequests({ allowances, at, run }: ReservationRequest): Counters {
    if (allowances.length === 0 && !run) return NO_COUNTERS;
    const counters = allowances.map(({ owner }) => this.counters.get(allowanceCounter(owner, at))!);
    return new Counters(run ? [...counters, this.ofRun(run)!.calls] : counters);
  }

  /** Every counter that ledgers share, with its limit and what the request takes. */
  limits(
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
    if (request.run) limits.push([this.ofRun(request.run)!.calls, callsLimit(request.run), ONE_REQUEST]);
    if (amount === 0) return limits;
    limits.push([balance.counter, balance.credited, amount]);
    limits.push([day, key.dailyLimit ?? MAX_NANO_USD, amount]);
    limits.push([month, key.monthlyLimit ?? MAX_NANO_USD, amount]);
    for (const { counter, limit } of caps) limits.push([counter, limit, amount]);
    if (run !== null) limits.push([run.counter, run.limit, amount]);
    return limits;
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

  /** Open holds by chain of rotated keys. */
  *openHoldsOfKeys(): Generator<readonly [KeyId, number]> {
    for (const [rotationId, { openHolds }] of this.byKey) if (openHolds !== 0) yield [rotationId, openHolds];
  }

  /** Everything in memory that the store can be checked against. */
  *booked(): Generator<Counter> {
    for (const counter of this.counters.values())
      if (this.grants?.isRetiring(counter.id) !== true) yield counter;
  }

  /** Notes that these are in use. */
  touch(counters: readonly Counter[]): void {
    const nowMs = this.clock.elapsedMs();
    for (const counter of counters) counter.usedAt = nowMs;
  }

  /**
   * Forgets what has been idle for `idleMs`: the rates of keys, and counters once nothing is held on them and the store's sum
   * has caught up (`appliedThrough`). Counters with grants stay until their windows are over, because only this ledger knows
   * what it spent of them; values of tags are forgotten sooner, and their grants returned. Returns the counters that are over.
   */
  forgetIdle(appliedThrough: number, idleMs: number): CounterId[] {
    const forgotten: CounterId[] = [];
    const nowMs = this.clock.elapsedMs();
    for (const [rotationId, keyCounters] of this.byKey) {
      if (
        nowMs - keyCounters.usedAt > idleMs &&
        keyCounters.requests.idle(nowMs) &&
        keyCounters.openHolds === 0
      )
        this.byKey.delete(rotationId);
      // A key that stays keeps its counters: if one were loaded again, two would count the same thing.
      else this.touch(keyCounters.money.counters.all);
    }
    const valueIdleMs = this.isCrowded ? CROWDED_IDLE_MS : Math.min(idleMs, VALUE_IDLE_MS);
    let retired = 0;
    for (const [id, counter] of this.counters) {
      if (counter.held !== 0 || counter.changedBy > appliedThrough) continue;
      const isValue = isValueCounter(id);
      if (nowMs - counter.usedAt <= (isValue ? valueIdleMs : idleMs)) continue;
      const isDone = this.grants === null || isOver(id, this.clock.now());
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

  /** Too many values of tags are in memory: unused ones have to be forgotten soon. */
  get isCrowded(): boolean {
    return this.values > MAX_VALUES;
  }
}

/** What decides on which counters of budgets a request is held. */
export interface CapSource {
  readonly budgets: readonly Budget[];
  readonly at: EpochMs;
  readonly tags: Tags | null | undefined;
}

/** The store's running sums, up to the last applied journal record. */
export interface RunningSums {
  spent(id: CounterId): NanoUsd | Promise<NanoUsd>;
  credited(id: BalanceId): NanoUsd | Promise<NanoUsd>;
}

/** Values of tags in memory before unused ones are forgotten: some 250 bytes each, 900 with grants. */
const MAX_VALUES = 100_000;
const VALUE_IDLE_MS = 60_000;
const CROWDED_IDLE_MS = 1_000;
/** Counters retired in one round, so that requests' statements do not wait behind them. */
const MAX_RETIRED = 10_000;
