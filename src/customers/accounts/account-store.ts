import type { EpochMs } from "../../units/clock.ts";
import type { Refusal } from "../../units/errors/refusal.ts";
import type { SuspensionReason } from "../../units/errors/suspension.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { Account, AccountBalances, Claim, Session } from "./account.ts";
import type { Email } from "./email.ts";
import type { IssuedMessage, WalletName } from "./wallet-message.ts";

/**
 * Persists accounts. As with keys, a change is decided by a function that gets the current state and returns
 * what to write; the store runs it and writes its result in one atomic step, durable when the promise
 * resolves. `decide` may be run more than once and must have no side effects.
 */
export interface AccountStore {
  /** The link or message that is asked about is used up by a change, and left as it was by a refusal. */
  change<C extends AccountChange>(
    about: AccountQuery,
    decide: (state: AccountState) => C | Refusal,
  ): Promise<WrittenChange<C> | Refusal>;
  /** Null for somebody unknown. */
  accountBalances(about: Pick<AccountQuery, "email" | "wallet" | "account">): Promise<AccountBalances | null>;
  /** The accounts with these ids that exist, in no order. */
  accounts(ids: readonly AccountId[]): Promise<readonly Account[]>;
  message(hash: SecretHash): Promise<IssuedMessage | null>;
  /** Expired ones too. */
  session(hash: SecretHash): Promise<(AccountBalances & { readonly expiresAt: EpochMs }) | null>;
  /** Sessions that have not expired, the newest first. */
  sessions(account: AccountId): Promise<readonly Session[]>;
  endSession(hash: SecretHash): Promise<void>;
  /** All of an account; returns how many there were. */
  endSessions(account: AccountId): Promise<number>;
  /** The balance with whom it belongs to, and who it was offered to. */
  balanceRecord(balance: BalanceId): Promise<BalanceRecord | null>;
  link(hash: SecretHash): Promise<Link | null>;
}

/** Which state a change is decided on. */
export interface AccountQuery {
  readonly link?: SecretHash;
  readonly message?: SecretHash;
  /** Counts the links on their way to it, and asks nothing about its account. */
  readonly mailbox?: Email;
  /** The account with at most one of these, or with the link's email, is read. */
  readonly email?: Email;
  readonly wallet?: WalletName;
  readonly account?: AccountId;
  readonly balance?: BalanceId;
  /** Names the balance by a recovery secret, one that its account has replaced too. */
  readonly recovery?: SecretHash;
}

export interface AccountState {
  readonly link: Link | null;
  readonly message: IssuedMessage | null;
  /** How many links to the mailbox have not expired and were not used: those of claims, and the others. */
  readonly liveLinks: { readonly signIn: number; readonly claim: number };
  readonly accountBalances: AccountBalances | null;
  readonly balance: BalanceRecord | null;
}

/** A balance, and who has to do with it: what accounts/ownership decides on. */
export interface BalanceRecord {
  readonly id: BalanceId;
  /** Its own suspension, not its account's. */
  readonly suspended: SuspensionReason | null;
  /** Whose it is. */
  readonly owner: AccountBalances | null;
  /** When it became its owner's; null for one that its owner's first sign-in made. */
  readonly claimedAt: EpochMs | null;
  /** Null for one without a claim; lapsed ones are included. */
  readonly claim: Claim | null;
  /** The account that it was claimed for. */
  readonly claimant: Account | null;
  readonly recovery: SecretHash | null;
  /** The recovery secret as it was when the balance became its account's. */
  readonly undo: SecretHash | null;
  /** How many claims of it were withdrawn, undone or detached. */
  readonly reclaims: number;
}

/** A sign-in link, by the hash of its token. */
export interface Link {
  readonly hash: SecretHash;
  readonly email: Email;
  /** The claim that the link was mailed for, and confirms. */
  readonly claimed: BalanceId | null;
  readonly expiresAt: EpochMs;
}

export interface AccountChange {
  readonly account?: Account;
  /** A new balance of the account's own. */
  readonly balance?: { readonly id: BalanceId; readonly createdAt: EpochMs };
  /** Balances that become the account's, behind all that it has; their claims end. */
  readonly attach?: readonly BalanceId[];
  /**
   * Belong to nobody any more, whether their claim waits or took effect: all that derives from the claim ends, the
   * recovery secret that each was claimed with is its own again, and no key alone claims it any more.
   */
  readonly reclaim?: readonly BalanceId[];
  /** The other keys of those end as well. */
  readonly revokeKeys?: boolean;
  /** Their keys and recovery secrets end for good. */
  readonly close?: readonly BalanceId[];
  /** The recovery secret from now on; `undo` is the one that undoes the claim, where it is another. */
  readonly recovery?: {
    readonly balance: BalanceId;
    readonly hash: SecretHash;
    readonly undo: SecretHash | null;
  };
  /** Erases the account's email, wallet, sessions, links and claims. */
  readonly erase?: true;
  /** Takes the place of one that lapsed. */
  readonly claim?: Claim;
  /** A claim that ends without effect. */
  readonly decline?: BalanceId;
  readonly session?: Session;
  readonly link?: Link;
  readonly message?: IssuedMessage;
}

export type WrittenChange<C extends AccountChange> = C & {
  /** Keys that `revokeKeys` has ended. A claim's keys end with their balance's notice. */
  readonly endedKeys: readonly SecretHash[];
};
