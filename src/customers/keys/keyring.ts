import type { LRUCache } from "lru-cache";
import { assert } from "../../units/assert.ts";
import { boundedCache } from "../../units/bounded-cache.ts";
import type { EpochMs } from "../../units/clock.ts";
import { StoreContended } from "../../units/errors/bookkeeping.ts";
import type { SuspensionReason } from "../../units/errors/suspension.ts";
import type { BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { areSameBudgets, type Balance, type Budget, type Key } from "./key.ts";
import type { BalanceWithBudgets, KeyStore } from "./key-store.ts";
import { isOfEndedClaim } from "./root.ts";
import { isApiKey } from "./secret.ts";

/**
 * Bearer token → SHA-256 → key at this moment, without leaving memory in the common case. Unknown, revoked
 * and expired keys all come out as null. Unknown ones are remembered too, apart from the others, so that a
 * flood of them reaches the store once each and pushes no good key out.
 *
 * A change of a key, a balance or its budgets is followed by `forget` or `forgetBalance`, once it is durable and
 * before it is answered: the next request then reads it again. Forgetting is safe in any order, where putting
 * the new state in would need the changes' order.
 */
export class Keyring {
  private readonly keys: LRUCache<SecretHash, KeyringEntry>;
  private readonly balances: LRUCache<BalanceId, BalanceWithBudgets>;
  private readonly unknown: LRUCache<SecretHash, true>;
  /** One per hash, so there are no more than requests in flight. */
  private readonly loading = new Map<SecretHash, KeyRead>();

  constructor(
    private readonly store: Pick<KeyStore, "keyByHash" | "balanceWithBudgets">,
    bounds: KeyringBounds = DEFAULT_BOUNDS,
    /** False while this process may have missed a change; what it remembers is then not used. */
    private readonly remembers: () => boolean = () => true,
    /** Gets which keys have to be read again, so that open requests can start to. */
    private readonly onForgotten: (concerns: KeyPredicate) => void = () => {},
  ) {
    this.keys = boundedCache(bounds.keys);
    this.balances = boundedCache(bounds.keys);
    this.unknown = boundedCache(bounds.unknown);
  }

  /** Who a secret belongs to at `at`; a promise only where the store must be asked. */
  identify(secret: string, at: EpochMs): Holder | null | Promise<Holder | null> {
    // A token of another form cannot be a key, so it takes no room in a cache.
    if (!isApiKey(secret)) return null;
    const hash = hashSecret(secret);
    const entry = this.peek(hash);
    return entry === undefined ? this.identifyStored(hash, at) : liveHolder(entry, at);
  }

  private async identifyStored(hash: SecretHash, at: EpochMs): Promise<Holder | null> {
    return liveHolder(await this.load(hash), at);
  }

  /**
   * The holder of a key as of this moment, without waiting; null where it may not spend: it is revoked, expired
   * or suspended. Undefined where it is not known, because it has just changed: then it is read.
   */
  current({ hash }: Pick<Key, "hash">, at: EpochMs): Holder | null | undefined {
    const entry = this.peek(hash);
    if (entry === undefined) {
      void this.load(hash).catch(() => {});
      return undefined;
    }
    const holder = liveHolder(entry, at);
    return holder?.balance.suspended === null ? holder : null;
  }

  /** Resolves once what `current` did not know was read. */
  async reread({ hash }: Pick<Key, "hash">): Promise<void> {
    if (this.peek(hash) === undefined) await this.load(hash);
  }

  /** Why a key may not spend; null where it may, or where the store must be asked first. */
  blockOf({ hash }: Pick<Key, "hash">, at: EpochMs): KeyBlock | null {
    const entry = this.peek(hash);
    if (entry === undefined) return null;
    const holder = liveHolder(entry, at);
    return holder === null ? "ended" : holder.balance.suspended;
  }

  /** Null for a secret that is known to be no key, undefined where the store must be asked. */
  peek(hash: SecretHash): KeyringEntry | null | undefined {
    if (!this.remembers()) return undefined;
    const entry = this.keys.get(hash);
    if (entry === undefined) return this.unknown.has(hash) ? null : undefined;
    const withBudgets = this.balances.get(entry.key.balanceId);
    if (withBudgets === undefined) return undefined;
    if (entry.withBudgets === withBudgets) return entry;
    return this.remember(hash, entry.key, withBudgets);
  }

  forgetBalance(balance: BalanceId): void {
    this.forget([], [balance]);
  }

  /** Many at once: open requests search for theirs once. */
  forget(keys: readonly Pick<Key, "hash">[], balances: readonly BalanceId[]): void {
    const hashes = new Set(keys.map(({ hash }) => hash));
    const ids = new Set(balances);
    // What a balance shares is read after its key. If the balance is not known yet, it will be read as it is now.
    for (const [hash, reading] of this.loading)
      if (hashes.has(hash) || (reading.balance !== null && ids.has(reading.balance))) reading.isStale = true;
    for (const hash of hashes) {
      this.keys.delete(hash);
      this.unknown.delete(hash);
    }
    for (const id of ids) this.balances.delete(id);
    this.onForgotten(({ hash, balanceId }) => hashes.has(hash) || ids.has(balanceId));
  }

  forgetAll(): void {
    for (const reading of this.loading.values()) reading.isStale = true;
    this.keys.clear();
    this.balances.clear();
    this.unknown.clear();
    this.onForgotten(() => true);
  }

  private load(hash: SecretHash): Promise<KeyringEntry | null> {
    const underWay = this.loading.get(hash);
    if (underWay !== undefined) return underWay.entry;
    const reading = new KeyRead();
    this.loading.set(hash, reading);
    reading.entry = this.read(hash, reading).finally(() => this.loading.delete(hash));
    return reading.entry;
  }

  /**
   * What was read while it was changing may be the old state, so it is read again. Changes of other keys do
   * not count: when many nodes share a store, such changes may come faster than one read takes.
   */
  private async read(hash: SecretHash, reading: KeyRead): Promise<KeyringEntry | null> {
    for (let round = 0; round < MAX_READS; round++) {
      reading.isStale = false;
      const key = await this.store.keyByHash(hash);
      reading.balance = key?.balanceId ?? null;
      const known = key === null ? undefined : this.balances.get(key.balanceId);
      // While a budget is being made, its key may be here before its balance is forgotten.
      const withBudgets =
        known !== undefined && budgetsOf(key!, known) !== null
          ? known
          : key && (await this.store.balanceWithBudgets(key.balanceId));
      // Without a balance, the key was removed with it in between.
      if (reading.isStale || (key !== null && withBudgets === null)) continue;
      if (key === null) {
        this.unknown.set(hash, true);
        return null;
      }
      const kept = this.keep(key.balanceId, withBudgets!);
      return this.remember(hash, key, kept);
    }
    throw new StoreContended(`a key changed ${MAX_READS} times while it was read`);
  }

  /** What is remembered stays where it was read to be the same: requests that wait compare it with what they began with. */
  private keep(id: BalanceId, read: BalanceWithBudgets): BalanceWithBudgets {
    const known = this.balances.get(id);
    if (known !== undefined && isSame(known, read)) return known;
    this.balances.set(id, read);
    return read;
  }

  private remember(hash: SecretHash, key: Key, withBudgets: BalanceWithBudgets): KeyringEntry {
    const budgets = budgetsOf(key, withBudgets);
    const holder = budgets === null ? null : { key, balance: withBudgets.balance, budgets };
    const entry = { key, withBudgets: withBudgets, holder };
    this.keys.set(hash, entry);
    return entry;
  }
}

/** Who a live key belongs to, and what it draws from. */
export interface Holder {
  readonly key: Key;
  readonly balance: Balance;
  /** In the key's order. */
  readonly budgets: readonly Budget[];
}

/** The key was revoked or has expired, or its balance is suspended for that reason. */
export type KeyBlock = "ended" | SuspensionReason;

export interface KeyringEntry {
  readonly key: Key;
  readonly withBudgets: BalanceWithBudgets;
  /** Null where the key draws from a budget that does not exist: no live key does. */
  readonly holder: Holder | null;
}

type KeyPredicate = (key: Pick<Key, "hash" | "balanceId">) => boolean;

/** One key, with its balance and budgets, on its way from the store. */
class KeyRead {
  entry!: Promise<KeyringEntry | null>;
  /** Once it is known. */
  balance: BalanceId | null = null;
  isStale = false;
}

export interface KeyringBounds {
  readonly keys: number;
  readonly unknown: number;
}

/** About 1 KiB a key and 150 bytes an unknown one. */
const DEFAULT_BOUNDS: KeyringBounds = { keys: 50_000, unknown: 20_000 };
const MAX_READS = 8;

/** Not revoked, and not past its expiry, which is the end of the grace window for a key that was rotated. */
export const isLive = ({ state, expiresAt }: Pick<Key, "state" | "expiresAt">, at: EpochMs): boolean =>
  state !== "revoked" && (expiresAt === null || at < expiresAt);

function liveHolder(entry: KeyringEntry | null, at: EpochMs): Holder | null {
  if (entry === null || !isLive(entry.key, at)) return null;
  const { holder, key } = entry;
  const { balance } = entry.withBudgets;
  if (balance.closed || isOfEndedClaim(key.root, balance)) return null;
  // Serving the key without that budget would lift a cap.
  assert(holder !== null, `key ${key.id} draws from a budget that does not exist`);
  return holder;
}

const isSame = (one: BalanceWithBudgets, other: BalanceWithBudgets): boolean =>
  areSameBudgets(one.budgets, other.budgets) &&
  (Object.keys(one.balance) as (keyof Balance)[]).every(
    (field) => one.balance[field] === other.balance[field],
  );

/** Null where one is gone. */
function budgetsOf(key: Key, { budgets }: BalanceWithBudgets): readonly Budget[] | null {
  const found = key.budgets.map((name) => budgets.find((one) => one.name === name));
  return found.every((budget) => budget !== undefined) ? found : null;
}
