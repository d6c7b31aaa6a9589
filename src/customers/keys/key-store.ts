import { DAY_MS, type EpochMs } from "../../units/clock.ts";
import type { Refusal } from "../../units/errors/refusal.ts";
import type { SuspensionReason } from "../../units/errors/suspension.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { Balance, Budget, Key } from "./key.ts";
import type { RunChange, RunDecision, RunRevision, StoredRun } from "./run.ts";

/**
 * Persists keys. A change is decided by a function that gets the current state and returns what to write; the
 * store runs it and writes its result in one atomic step, durable when the promise resolves, so two changes
 * of one key never decide on the same state. `decide` may be run more than once and must have no side
 * effects.
 */
export interface KeyStore {
  keyByHash(hash: SecretHash): Promise<Key | null>;
  keyById(id: KeyId): Promise<Key | null>;
  balanceByRecovery(hash: SecretHash): Promise<Balance | null>;
  balanceWithBudgets(id: BalanceId): Promise<BalanceWithBudgets | null>;
  /** Keys of these balances, newest first; `before` is the id that the last page ended with. */
  keysOf(
    balances: readonly BalanceId[],
    limit: number,
    before: KeyId | null,
    filter?: KeyFilter,
  ): Promise<Key[]>;
  /** Keys that are neither revoked nor expired, newest first. */
  liveKeysOf(balance: BalanceId, limit: number): Promise<Key[]>;

  /**
   * The active key that a rotated one was replaced by, however often since; null for any other key, and where
   * it has ended.
   */
  activeSuccessor(id: KeyId): Promise<Key | null>;

  /** Newest first; `before` is the id that the last page ended with. `liveKeys` as in `addKey`. */
  balances(limit: number, before: BalanceId | null): Promise<{ balance: Balance; liveKeys: number }[]>;

  /** Null where there is no such balance. */
  changeBalance(balance: BalanceId, decide: BalanceDecision): Promise<Balance | Refusal | null>;

  /** Notes that both secrets of the balance were shown to be saved; returns since when that is known. */
  secretsSaved(balance: BalanceId, at: EpochMs): Promise<EpochMs>;

  addBalance(balance: Balance, key: Key): Promise<void>;
  /**
   * `liveKeys` counts those that are neither revoked nor expired, `recentKeys` all that were made within a day,
   * revoked or not.
   */
  addKey(balance: BalanceId, decide: NewKeyDecision): Promise<Key | Refusal>;
  /** `siblings` counts the live keys of the same rotation, this one included; `recentKeys` as in `addKey`. */
  changeKey(id: KeyId, decide: KeyDecision): Promise<ChangedKey | Refusal>;
  /**
   * Deletes what nobody ever used, among some of the balances that were made before then: balances without an
   * account, a claim, credit or a request, with all they have; and keys that have ended without a request. Goes
   * on behind `from`. Balances that are in use at this moment stay, with all their keys.
   */
  removeUnused(before: EpochMs, from: BalanceCursor, here: InUseHere): Promise<RemovedUnused>;
  /** `isFull`: the balance has `most` budgets or more. */
  putBudget(balance: BalanceId, name: string, most: number, decide: BudgetPut): Promise<Budget | Refusal>;
  /** `drawnFrom` counts the live keys that name it. */
  dropBudget(balance: BalanceId, name: string, decide: BudgetDrop): Promise<Budget | Refusal>;
  /** Null where the balance has none of this name. */
  run(balance: BalanceId, name: string): Promise<StoredRun | null>;
  /** A balance has at most `most` runs. The runs of a balance that was just removed are nobody's. */
  changeRun(
    balance: BalanceId,
    name: string,
    most: number,
    decide: RunDecision,
  ): Promise<RunChange | Refusal>;
  /** `decide` sees the balance as it is in the transaction that changes the run. */
  reviseRun(balance: BalanceId, name: string, decide: RunRevision): Promise<StoredRun | Refusal>;
  /**
   * A balance, or an account with all its balances, now and in future; null where nothing has the id. One may be
   * suspended for several reasons, and each stands until it is lifted. The record is kept for good.
   */
  suspend(suspension: SuspensionRecord): Promise<Suspended | null>;
  /** Newest first, at most `limit`. */
  suspensions(subject: string, limit: number): Promise<SuspensionRecord[]>;
}

/** Keys that a list is cut down to; null for all. */
export interface KeyFilter {
  /** In the name, the beginning or the id, in upper or lower case. */
  readonly search: string | null;
  readonly state: "active" | "ended" | null;
  readonly ids: readonly string[] | null;
}

/** Counted apart, so that claims of a balance use up nothing that its owner needs to take it back. */
export interface RecentKeys {
  readonly ofSetUp: number;
  /** In all claims together. */
  readonly ofClaims: number;
}

export type NewKeyDecision = (
  withBudgets: BalanceWithBudgets,
  liveKeys: number,
  recentKeys: RecentKeys,
) => Key | Refusal;

export type KeyDecision = (
  key: Key,
  withBudgets: BalanceWithBudgets,
  siblings: number,
  recentKeys: RecentKeys,
) => KeyChange | Refusal;

/** Only what people set may differ. */
type BalanceDecision = (balance: Balance) => Balance | Refusal;

/** `known` is the budget of that name, if there is one. */
export type BudgetPut = (state: {
  readonly balance: Balance;
  readonly known: Budget | null;
  readonly isFull: boolean;
}) => Budget | Refusal;

export type BudgetDrop = (state: {
  readonly balance: Balance;
  readonly known: Budget | null;
  readonly drawnFrom: number;
}) => Budget | Refusal;

/** A balance and what its keys share. */
export interface BalanceWithBudgets {
  readonly balance: Balance;
  readonly budgets: readonly Budget[];
}

interface KeyChange {
  readonly key: Key;
  /** The key that takes its place. */
  readonly successor?: Key;
  /** Revokes all other keys of the rotation as well. */
  readonly endsSiblings?: true;
}

export interface ChangedKey extends KeyChange {
  /** Keys that `endsSiblings` has revoked. */
  readonly ended: readonly Key[];
}

/** What a suspension, or its lifting, has come to. */
export interface Suspended {
  readonly balances: readonly BalanceId[];
  /** The gravest reason that stands. */
  readonly suspended: SuspensionReason | null;
}

/** Who suspended what, when and why; a null reason lifts a suspension. */
export interface SuspensionRecord {
  /** The id of a balance or an account. */
  readonly subject: string;
  readonly reason: SuspensionReason | null;
  /** Which of several reasons is lifted; null for all. */
  readonly lifted: SuspensionReason | null;
  readonly at: EpochMs;
  readonly by: string;
  readonly note: string | null;
}

/** Who suspends, and lifts that, where nobody decides it: that an operator suspended for the same reason still stands. */
export const BY_GATEWAY = "gateway";

/** A balance in the order in which they were made. */
export interface BalanceCursor {
  readonly createdAt: EpochMs;
  readonly id: string;
}

/** What only this process knows of requests that are under way. */
export interface InUseHere {
  isInUse(id: BalanceId): boolean;
  /** Called in the turn in which `isInUse` was: what is removed is not used from then on. */
  forget(keys: readonly Pick<Key, "hash">[], balances: readonly BalanceId[]): void;
}

export interface RemovedUnused {
  readonly balances: readonly BalanceId[];
  readonly keys: readonly Pick<Key, "hash" | "balanceId" | "rotationId">[];
  /** Where to go on; null at the end. */
  readonly next: BalanceCursor | null;
}

/** How far back `recentKeys` are counted. */
export const RECENT_MS = DAY_MS;
/** Balances that one call of `removeUnused` looks at, so that it takes a millisecond or two. */
export const SWEPT_AT_ONCE = 100;
/** Keys are looked for only among so many ends, also by one call, and ended keys of a busier balance stay. */
export const MAX_ENDS_READ = 1_000;
