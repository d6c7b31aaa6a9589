import type { EpochMs } from "../../units/clock.ts";
import type { SuspensionReason } from "../../units/errors/suspension.ts";
import type { AccountId, BalanceId, BudgetId, KeyId } from "../../units/id.ts";
import type { KeyPolicy } from "../../units/key-policy.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { NanoUsd } from "../../units/usd.ts";
import type { WindowKind } from "../../units/window.ts";

/** Limits of a key; null means none. Specification, "API key". */
export interface KeyLimits {
  readonly rpmLimit: number | null;
  readonly tpmLimit: number | null;
  readonly dailyLimit: NanoUsd | null;
  readonly monthlyLimit: NanoUsd | null;
  /** The only model ids that the key may call; null allows all. */
  readonly allowedModels: readonly string[] | null;
  /** Names of the budgets that the key draws from. */
  readonly budgets: readonly string[];
}

/** An API key as stored: immutable, replaced whole by each change. */
export interface Key extends KeyLimits {
  readonly id: KeyId;
  readonly hash: SecretHash;
  /** First 12 characters of the plaintext. */
  readonly prefix: string;
  readonly name: string | null;
  readonly balanceId: BalanceId;
  /**
   * Id of the first key of a chain of rotations. Rates and spend caps are counted under it, so that rotating
   * a key never resets them.
   */
  readonly rotationId: KeyId;
  /** The price list that its requests are charged by, set by the operator; null: the balance's. */
  readonly priceList: string | null;
  /** Which hosts may serve its requests; null or absent: all. */
  readonly policy?: KeyPolicy | null;
  /** A key that derives from a claim works only while that claim is in force. */
  readonly root: Root;
  readonly state: "active" | "rotated" | "revoked";
  readonly createdAt: EpochMs;
  /** Set by `expires_at`, and by a rotation to the end of its grace. */
  readonly expiresAt: EpochMs | null;
}

/** Prepaid credit and who it belongs to. What is left of it is the ledger's to say. */
export interface Balance {
  readonly id: BalanceId;
  /** Null while accountless. */
  readonly accountId: AccountId | null;
  readonly suspended: SuspensionReason | null;
  /** The price list that its keys are charged by, set by the operator; null: the models' own prices. */
  readonly priceList: string | null;
  /** Below so much credit its owner is notified; null: below what the operator says. */
  readonly lowCredit: NanoUsd | null;
  readonly createdAt: EpochMs;
  /** Rotation id of the key made at set-up, the only one that may claim; null where no set-up made the balance. */
  readonly setUpKey: KeyId | null;
  /** When both of its secrets were shown to be saved; null: nobody has shown that. */
  readonly secretsSavedAt: EpochMs | null;
  /** Its owner has ended it: no key of it works, and the books keep what it was. */
  readonly closed: boolean;
  /** How many claims of it were withdrawn, undone or detached. */
  readonly reclaims: number;
  /** The recovery secret. Like `undo`, it is current only where it was read for a change. */
  readonly recovery: SecretHash | null;
  /** The recovery secret from before its account replaced it: that one undoes the claim. */
  readonly undo: SecretHash | null;
}

/** A named spending cap; keys reference it by name. */
export interface Budget {
  readonly id: BudgetId;
  readonly balanceId: BalanceId;
  readonly name: string;
  readonly cap: NanoUsd;
  readonly window: WindowKind;
  /** The tag of which each value has the cap for itself; null or absent: all requests share it. Never changes. */
  readonly perTag?: string | null;
}

/** The price list that requests of the key are charged by; null: the models' own prices. */
export const priceListOf = ({
  key,
  balance,
}: {
  readonly key: Pick<Key, "priceList">;
  readonly balance: Pick<Balance, "priceList">;
}): string | null => key.priceList ?? balance.priceList;

/** Whether requests of the two keys have the same limits: a new name, for one, changes nothing for them. */
export const isLimitedAlike = (one: KeyLimits, other: KeyLimits): boolean =>
  one === other ||
  (one.rpmLimit === other.rpmLimit &&
    one.tpmLimit === other.tpmLimit &&
    one.dailyLimit === other.dailyLimit &&
    one.monthlyLimit === other.monthlyLimit &&
    `${one.allowedModels}` === `${other.allowedModels}`);

/** By what is in them: each reading makes other objects. */
export const areSameBudgets = (one: readonly Budget[], other: readonly Budget[]): boolean =>
  one === other ||
  (one.length === other.length &&
    one.every((budget, at) => {
      const { id, cap, window } = other[at]!;
      return budget.id === id && budget.cap === cap && budget.window === window;
    }));

/**
 * What a credential derives from: 0 is the set-up of its balance, or the sign-in that made it; n is the nth claim of
 * it. Whatever a credential makes derives from the same, so that undoing a claim ends all that came of it: keys that
 * the account's sessions made, recovery secrets that they issued, and what was made or rotated with those.
 */
export type Root = number;
