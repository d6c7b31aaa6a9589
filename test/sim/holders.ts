import type { KeyDeps } from "../../src/customers/keys/deps.ts";
import type { Budget, Key } from "../../src/customers/keys/key.ts";
import type { KeyStore } from "../../src/customers/keys/key-store.ts";
import { type Holder, isLive } from "../../src/customers/keys/keyring.ts";
import { OPERATOR } from "../../src/customers/keys/root.ts";
import { revise, rotate } from "../../src/customers/keys/rotation.ts";
import type { CounterId } from "../../src/ledger/counter.ts";
import type { Clock, EpochMs } from "../../src/units/clock.ts";
import type { AccountId, BalanceId, BudgetId, KeyId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { WINDOW_KINDS } from "../../src/units/window.ts";
import { balanceOf } from "../fakes/balance.ts";
import { keyOf } from "../fakes/key.ts";
import type { Random } from "./random.ts";
import { check } from "./world.ts";

/** The keys of a few owners. Production code rotates and changes them; what they share is known here. */
export class Holders {
  /** The newest of each chain. */
  readonly keys: readonly Key[];
  private readonly known = new Map<string, { key: Key; readonly chain: string }>();
  /** Rotated out, and in their grace; the last few. */
  private readonly inGrace: Key[] = [];
  private budgets: readonly Budget[] = BUDGETS;
  private readonly suspended = new Set<BalanceId>();
  /** As they were last read: a change of anything makes new ones. */
  private readonly read = new Map<string, Holder>();
  /** Until then, callers that read what has just changed learn that it is being read. */
  private readingUntilMs = 0;
  private revoked = 0;

  constructor(keys: readonly Key[]) {
    this.keys = keys;
    for (const key of keys) this.known.set(key.id, { key, chain: key.id });
  }

  get balances(): ReadonlySet<BalanceId> {
    return new Set(this.keys.map(({ balanceId }) => balanceId));
  }

  /** A key's secret is its id. */
  identify(secret: string, at: EpochMs): Holder | null {
    return isLive(this.known.get(secret)!.key, at) ? this.holderOf(secret) : null;
  }

  /** As the ledger asks for it. */
  current({ id }: Pick<Key, "id">, clock: Pick<Clock, "now" | "elapsedMs">): Holder | null | undefined {
    if (this.isReading(clock.elapsedMs())) return undefined;
    return this.maySpend(id, clock.now()) ? this.holderOf(id) : null;
  }

  maySpend(id: string, at: EpochMs): boolean {
    const { key } = this.known.get(id)!;
    return isLive(key, at) && !this.suspended.has(key.balanceId);
  }

  isReading(elapsedMs: number): boolean {
    return elapsedMs < this.readingUntilMs;
  }

  /** What limits a counter now, by its id; nothing may grow beyond it. */
  limitOn(id: CounterId, at: EpochMs): number {
    const [kind, subject, window] = id.split(":") as [string, string, string];
    if (kind === "day" || kind === "month") {
      let most = 0;
      for (const { key, chain } of this.known.values()) {
        if (chain !== subject || !isLive(key, at)) continue;
        most = Math.max(most, (kind === "day" ? key.dailyLimit : key.monthlyLimit) ?? Infinity);
      }
      return most;
    }
    const budget = kind === "budget" ? this.budgets.find((one) => one.id === subject) : undefined;
    return budget !== undefined && budget.window === window ? budget.cap : Infinity;
  }

  /** Does to a key, a budget or a balance what an owner or the operator may do, and says what. */
  change(random: Random, clock: Pick<Clock, "now" | "elapsedMs">): void {
    const at = random.below(this.keys.length);
    const key = this.keys[at]!;
    const put = (changed: Partial<Key>) => {
      const one = this.known.get(key.id)!;
      one.key = { ...key, ...changed };
      (this.keys as Key[])[at] = one.key;
    };
    const cap = (most: number) => (random.chance(0.15) ? null : (random.below(most) as NanoUsd));
    const dice = random.next();
    if (dice < 0.25) put({ dailyLimit: cap(220_000) });
    else if (dice < 0.4) put({ monthlyLimit: cap(340_000) });
    else if (dice < 0.6) {
      if (key.budgets.length > 0) put({ budgets: [random.pick(BUDGETS).name] });
    } else if (dice < 0.85) {
      const changed = random.pick(this.budgets);
      const next = random.chance(0.5)
        ? { ...changed, cap: random.below(240_000) as NanoUsd }
        : { ...changed, window: random.pick(WINDOW_KINDS) };
      this.budgets = this.budgets.map((one) => (one === changed ? next : one));
    } else if (dice < 0.92) {
      if (!this.suspended.delete(key.balanceId)) this.suspended.add(key.balanceId);
    } else if (dice < 0.95) put({ expiresAt: (clock.now() + random.below(2_000)) as EpochMs });
    else put({ state: "revoked" });
    this.read.clear();
    this.readingUntilMs = clock.elapsedMs() + (random.chance(0.5) ? 0 : random.below(20));
  }

  /** In place of keys that have ended, their owners make others. */
  replaceEnded(at: EpochMs): void {
    for (const [index, key] of this.keys.entries()) {
      if (isLive(key, at)) continue;
      const id = `key_new${this.revoked++}` as KeyId;
      const next = { ...key, id, rotationId: id, state: "active" as const, expiresAt: null };
      this.known.set(id, { key: next, chain: id });
      (this.keys as Key[])[index] = next;
    }
  }

  /** The key as it is now. */
  latest({ id }: Pick<Key, "id">): Key {
    return this.known.get(id)!.key;
  }

  budgetsOf(key: Key): readonly Budget[] {
    return this.budgets.filter(({ name }) => key.budgets.includes(name));
  }

  budgetId(name: string): BudgetId {
    return this.budgets.find((one) => one.name === name)!.id;
  }

  get budgetIds(): readonly BudgetId[] {
    return this.budgets.map(({ id }) => id);
  }

  private holderOf(id: string): Holder {
    const known = this.read.get(id);
    if (known !== undefined) return known;
    const holder = this.makeHolder(id);
    this.read.set(id, holder);
    return holder;
  }

  private makeHolder(secret: string): Holder {
    const { key } = this.known.get(secret)!;
    const { balanceId: id } = key;
    const suspended = this.suspended.has(id) ? "acceptable_use" : null;
    const balance = balanceOf({ id, accountId: accountOf(id), suspended });
    return { key, balance, budgets: this.budgetsOf(key) };
  }

  /** The first key of its chain. */
  chainOf({ id }: Key): string {
    return this.known.get(id)!.chain;
  }

  /** Any that works, old ones included. */
  pick(random: Random): Key {
    return this.inGrace.length > 0 && random.chance(0.3) ? random.pick(this.inGrace) : random.pick(this.keys);
  }

  async rotate(random: Random, clock: Pick<Clock, "now">): Promise<void> {
    const old = random.pick(this.keys);
    const rotated = await rotate(this.deps(random, clock), old, OPERATOR);
    check("key" in rotated, `${old.id} cannot be rotated`);
    this.inGrace.push(old);
    if (this.inGrace.length > MAX_IN_GRACE) this.inGrace.shift();
  }

  /** Lowers or raises a key's rates. */
  async revise(random: Random, clock: Pick<Clock, "now">): Promise<void> {
    const { id } = random.pick(this.keys);
    const revised = await revise(this.deps(random, clock), id, ratesFrom(random), OPERATOR);
    check("id" in revised, `${id} cannot be changed`);
  }

  private deps(random: Random, clock: Pick<Clock, "now">): KeyDeps {
    const deps = {
      clock,
      random: random.bytes,
      settings: () => ({ graceMs: 86_400_000 }),
      keyring: { forget() {} },
      spendable: { of: () => 0 },
      store: { changeKey: this.changeStored.bind(this) } as Pick<KeyStore, "changeKey">,
    };
    return deps as unknown as KeyDeps;
  }

  private async changeStored(
    id: KeyId,
    decide: Parameters<KeyStore["changeKey"]>[1],
  ): ReturnType<KeyStore["changeKey"]> {
    const one = this.known.get(id)!;
    const { balance, budgets } = this.holderOf(id);
    const change = decide(one.key, { balance, budgets }, 1, { ofSetUp: 0, ofClaims: 0 });
    if (!("key" in change)) return change;
    one.key = change.key;
    const { successor = change.key } = change;
    if (successor !== change.key) this.known.set(successor.id, { key: successor, chain: one.chain });
    (this.keys as Key[])[this.keys.findIndex((key) => key.id === id)] = successor;
    this.read.clear();
    return { ...change, ended: [] };
  }
}

const MAX_IN_GRACE = 4;

/** Two balances of one account, and two that belong to nobody. */
export const accountOf = (balance: BalanceId): AccountId | null =>
  balance === "bal_0" || balance === "bal_3" ? "acct_0" : null;

/** Small enough to be reached. */
const BUDGETS: readonly Budget[] = (["day", "week", "month", "total"] as const).map((window, index) => ({
  id: `bud_${index}` as BudgetId,
  balanceId: "bal_0" as BalanceId,
  name: window,
  cap: (60_000 * (index + 1)) as NanoUsd,
  window,
}));

/** Six keys of two balances; with rates that are out of reach. */
export function makeKeys(random: Random, budgeting: Random): Key[] {
  return Array.from({ length: 6 }, (_, index) => {
    const maybe = <T>(value: T): T | null => (random.chance(0.5) ? value : null);
    const id = `key_${index}` as KeyId;
    return keyOf({
      id,
      balanceId: `bal_${index % 2}` as BalanceId,
      rpmLimit: maybe(20),
      tpmLimit: maybe(20_000),
      dailyLimit: maybe((20_000 + random.below(200_000)) as NanoUsd),
      monthlyLimit: maybe((40_000 + random.below(300_000)) as NanoUsd),
      budgets: index % 2 === 0 && random.chance(0.5) ? someBudgets(budgeting) : [],
    });
  });
}

/** The same with rates that are reached, and a key of each of the other two balances. */
export function makeBusyKeys(random: Random, budgeting: Random): Key[] {
  const others = [2, 3].map((index) =>
    keyOf({ id: `key_${index + 4}` as KeyId, balanceId: `bal_${index}` as BalanceId }),
  );
  return [...makeKeys(random, budgeting), ...others].map((key) => ({ ...key, ...ratesFrom(random) }));
}

/** Where limits change: each of those that draw from budgets draws from one, so that what is spent adds up. */
export const fromOneBudget = (keys: readonly Key[], random: Random): Key[] =>
  keys.map((key) => ({ ...key, budgets: key.balanceId === "bal_0" ? [random.pick(BUDGETS).name] : [] }));

const ratesFrom = (random: Random): Pick<Key, "rpmLimit" | "tpmLimit"> => ({
  rpmLimit: random.pick([null, 2, 4, 20]),
  tpmLimit: random.pick([null, 700, 1_500, 20_000]),
});

const someBudgets = (random: Random): string[] =>
  BUDGETS.filter(() => random.chance(0.5)).map(({ name }) => name);
