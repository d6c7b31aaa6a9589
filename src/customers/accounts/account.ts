import type { EpochMs } from "../../units/clock.ts";
import type { SuspensionReason } from "../../units/errors/suspension.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { Email } from "./email.ts";
import type { WalletName } from "./wallet-message.ts";

/** Somebody who signed in by email or wallet, or whose email a balance was claimed for. */
export interface Account {
  readonly id: AccountId;
  readonly email: Email | null;
  readonly wallet: WalletName | null;
  readonly suspended: SuspensionReason | null;
  readonly createdAt: EpochMs;
  /** Its email and wallet are erased then. */
  readonly deletedAt: EpochMs | null;
  /** Null until somebody signed in: until then nobody has proved that the email is theirs. */
  readonly provedAt: EpochMs | null;
}

/** An account with what belongs to it. */
export interface AccountBalances {
  readonly account: Account;
  /** Oldest first; the first is the one that a session acts on where none is named. */
  readonly balances: readonly BalanceId[];
  /** The claimed ones among them, and when the claim took effect. */
  readonly claimed: readonly { readonly id: BalanceId; readonly at: EpochMs }[];
  /** The newest first; those that lapsed too. */
  readonly claims: readonly Claim[];
}

/**
 * A balance that somebody with its key offered to an email address. It takes effect when a reader of that
 * mailbox confirms it; until then the balance is accountless in every respect but one: it cannot be claimed
 * again.
 */
export interface Claim {
  readonly balanceId: BalanceId;
  readonly accountId: AccountId;
  readonly at: EpochMs;
}

/** What opens an account for 30 days. The secret is kept as its hash. */
export interface Session {
  readonly hash: SecretHash;
  readonly expiresAt: EpochMs;
}
