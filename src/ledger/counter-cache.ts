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
 * The counters of what is in use, in memory: read from the store's sums, or granted by the Authority where ledgers
 * share limits. They are bounded by what is in use: see `forgetIdle`.
 */
export class CounterCache {
  private readonly byKey = new Map<KeyId, KeyCounters>();
  private readonly balances = new Map<BalanceId, BalanceBook>();
  private readonly counters = new Map<CounterId, Counter>();
  /** How many of them are those of one value of a tag. */
  private values = 0;

  constructor(
    private readonly clock: Clock,
    private readonly sums: RunningSums,
    private readonly grants: Grants | null,
  ) {}

  /**
   * Everything that admission looks at, in memory. At once in the common case; a promise on a key's first
   * request of the day or after a start. Call `Ledger.admit` in the same turn in which they were received.
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

  /** Where it is undefined, no request of the balance is under way here. */
  ofBalance(id: BalanceId): BalanceBook | undefined {
    return this.balances.get(id);
  }

  get(id: CounterId): Counter | undefined {
    return this.counters.get(id);
  }

  /** What the request pays from; all of it is in memory. */
  moneyOf(keyCounters: KeyCounters, { budgets, at, run, about }: ReservationRequest): MoneyCounters {
    const money = this.moneyCounters(keyCounters, budgets, at, about.tags)!;
    return run ? money.of(new RunCap(run, this.ofRun(run)!.money)) : money;
  }

  /** Null where they are not in memory. */
  ofRun(run: AgentRun): { readonly money: Counter; readonly calls: Counter } | null {
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
    const keyCounters = this.byKey.get(key.rotationId) ?? this.newKeyCounters(key, money, today);
    keyCounters.enterDay(money, today);
    keyCounters.usedAt = this.clock.elapsedMs();
    this.byKey.set(key.rotationId, keyCounters);
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
    return remember(this.balances, id, book);
  }

  private async loadCounter(id: CounterId): Promise<Counter> {
    const known = this.counters.get(id);
    if (known !== undefined) return this.touched(known);
    const counter = new Counter(id);
    if (this.grants === null) {
      const spent = this.sums.spent(id);
      counter.spent = spent instanceof Promise ? await spent : spent;
    } else counter.granted = ZERO_USD;
    const remembered = remember(this.counters, id, counter);
    if (remembered === counter && isValueCounter(id)) this.values += 1;
    return this.touched(remembered);
  }

  private touched(counter: Counter): Counter {
    counter.usedAt = this.clock.elapsedMs();
    return counter;
  }

  /** The counters that count requests. */
  countingRequests({ allowances, at, run }: ReservationRequest): Counters {
    if (allowances.length === 0 && !run) return NO_COUNTERS;
    const counters = allowances.map(({ owner }) => this.counters.get(allowanceCounter(owner, at))!);
    return new Counters(run ? [...counters, this.ofRun(run)!.calls] : counters);
  }

  /** Everything that other ledgers may share, with its limit and what the request takes of it. */
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

  /** By chain of rotated keys, where requests are open. */
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
   * Forgets what has been idle for `idleMs`: the rates of keys, and counters once the store's sum has caught up
   * with them (`appliedThrough`) and nothing is held on them. A ledger remembers what it
   * spent of limits that ledgers share: as many counters as there are balances that it spent of since its start, with the present windows
   * of their keys and budgets. Values of tags are forgotten sooner, and their grants given back. Returns the counters that will not be asked for again.
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
      // A key that stays keeps its counters: were one forgotten and loaded again, two would count the same
      // thing.
      else this.touch(keyCounters.money.counters.all);
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
}

/** What decides which counters of budgets a request is held on. */
export interface CapSource {
  readonly budgets: readonly Budget[];
  readonly at: EpochMs;
  readonly tags: Tags | null | undefined;
}

/** The store's running sums, up to the journal record that was applied last. */
export interface RunningSums {
  spent(id: CounterId): NanoUsd | Promise<NanoUsd>;
  credited(id: BalanceId): NanoUsd | Promise<NanoUsd>;
}

/** Values of tags whose counters are in memory, some 250 bytes each and 900 where ledgers share them, before those are forgotten that are not in use. */
const MAX_VALUES = 100_000;
const VALUE_IDLE_MS = 60_000;
const CROWDED_IDLE_MS = 1_000;
/** Counters that are given back at once: those wait that requests need. */
const MAX_RETIRED = 10_000;

/** Two loads of the same thing may overlap; everybody counts with the first to arrive. */
function remember<K, V>(map: Map<K, V>, id: K, value: V): V {
  const known = map.get(id);
  if (known !== undefined) return known;
  map.set(id, value);
  return value;
}
