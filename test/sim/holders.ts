import type { KeyDesk } from "../../src/keys/desk.ts";
import type { Budget, Key } from "../../src/keys/key.ts";
import type { KeyStore } from "../../src/keys/key-store.ts";
import type { Holder } from "../../src/keys/keyring.ts";
import { revise, rotate } from "../../src/keys/rotation.ts";
import type { Clock, EpochMs } from "../../src/units/clock.ts";
import type { AccountId, BalanceId, BudgetId, KeyId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";
import { check } from "./auditor.ts";
import type { Random } from "./random.ts";

/** The keys of a few owners. Production code rotates and changes them; what they share is known here. */
export class Holders {
  /** The newest of each chain. */
  readonly keys: readonly Key[];
  private readonly known = new Map<string, { key: Key; readonly chain: string }>();
  /** Rotated out, and in their grace; the last few. */
  private readonly inGrace: Key[] = [];

  constructor(keys: readonly Key[]) {
    this.keys = keys;
    for (const key of keys) this.known.set(key.id, { key, chain: key.id });
  }

  get balances(): ReadonlySet<BalanceId> {
    return new Set(this.keys.map(({ balanceId }) => balanceId));
  }

  /** A key's secret is its id. */
  identify(secret: string): Holder {
    const { key } = this.known.get(secret)!;
    const { balanceId: id } = key;
    const balance = {
      id,
      accountId: accountOf(id),
      suspended: null,
      createdAt: 0 as EpochMs,
      setUpKey: null,
      closed: false,
    };
    return { key, balance, budgets: budgetsOf(key) };
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
    const rotated = await rotate(this.desk(random, clock), old, "session");
    check("key" in rotated, `${old.id} cannot be rotated`);
    this.inGrace.push(old);
    if (this.inGrace.length > MOST_IN_GRACE) this.inGrace.shift();
  }

  /** Lowers or raises a key's rates. */
  async revise(random: Random, clock: Pick<Clock, "now">): Promise<void> {
    const { id } = random.pick(this.keys);
    const revised = await revise(this.desk(random, clock), id, ratesFrom(random), "session");
    check("id" in revised, `${id} cannot be changed`);
  }

  private desk(random: Random, clock: Pick<Clock, "now">): KeyDesk {
    const desk = {
      clock,
      random: random.bytes,
      settings: () => ({ graceMs: 86_400_000 }),
      keyring: { forgetKey() {} },
      credit: () => 0,
      store: { changeKey: this.change.bind(this) } as Pick<KeyStore, "changeKey">,
    };
    return desk as unknown as KeyDesk;
  }

  private async change(
    id: KeyId,
    decide: Parameters<KeyStore["changeKey"]>[1],
  ): ReturnType<KeyStore["changeKey"]> {
    const one = this.known.get(id)!;
    const { balance, budgets } = this.identify(id);
    const change = decide(one.key, { balance, budgets }, 1, 0);
    if (!("key" in change)) return change;
    one.key = change.key;
    const { successor = change.key } = change;
    if (successor !== change.key) this.known.set(successor.id, { key: successor, chain: one.chain });
    (this.keys as Key[])[this.keys.findIndex((key) => key.id === id)] = successor;
    return { ...change, ended: [] };
  }
}

const MOST_IN_GRACE = 4;

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

export const budgetsOf = (key: Key): readonly Budget[] =>
  BUDGETS.filter(({ name }) => key.budgets.includes(name));

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

const ratesFrom = (random: Random): Pick<Key, "rpmLimit" | "tpmLimit"> => ({
  rpmLimit: random.pick([null, 2, 4, 20]),
  tpmLimit: random.pick([null, 700, 1_500, 20_000]),
});

const someBudgets = (random: Random): string[] =>
  BUDGETS.filter(() => random.chance(0.5)).map(({ name }) => name);
