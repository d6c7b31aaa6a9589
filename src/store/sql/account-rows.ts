import type { Account, Claim, Holdings } from "../../accounts/account.ts";
import type { Belongings, Link } from "../../accounts/account-store.ts";
import type { Email } from "../../accounts/email.ts";
import type { IssuedMessage, WalletName } from "../../accounts/wallet.ts";
import type { SuspensionReason } from "../../errors/suspension.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import type { Whole } from "./statement.ts";

/** A row of `accounts`. */
export interface AccountRow {
  readonly id: AccountId;
  readonly email: Email | null;
  readonly wallet: WalletName | null;
  readonly suspended: SuspensionReason | null;
  readonly created_at: Whole;
  readonly proved_at: Whole | null;
  readonly deleted_at: Whole | null;
}

export const accountFromRow = (row: AccountRow): Account => ({
  id: row.id,
  email: row.email,
  wallet: row.wallet,
  suspended: row.suspended,
  createdAt: Number(row.created_at) as EpochMs,
  provedAt: time(row.proved_at),
  deletedAt: time(row.deleted_at),
});

const time = (at: number | string | null): EpochMs | null => (at === null ? null : (Number(at) as EpochMs));

export const holdingsFromRows = (
  account: Account,
  balances: readonly BelongingRow[],
  claims: readonly ClaimRow[],
): Holdings => ({
  account,
  balances: balances.map(({ id }) => id),
  claimed: balances.flatMap((row) => {
    const at = claimedAt(row);
    return at === null ? [] : [{ id: row.id, at }];
  }),
  claims: claims.map(claimFromRow),
});

/** A row of `claims`. */
export interface ClaimRow {
  readonly balance_id: BalanceId;
  readonly account_id: AccountId;
  readonly at: Whole;
}

export const claimFromRow = (row: ClaimRow): Claim => ({
  balanceId: row.balance_id,
  accountId: row.account_id,
  at: Number(row.at) as EpochMs,
});

/** A row of `balances`, as far as accounts go. */
export interface BelongingRow {
  readonly id: BalanceId;
  readonly account_id: AccountId | null;
  readonly suspended: SuspensionReason | null;
  readonly setup_key: KeyId | null;
  readonly claimed_at: Whole | null;
  readonly attached_at: Whole | null;
  readonly recovery_hash: SecretHash | null;
  readonly undo_hash: SecretHash | null;
}

export function belongingsFromRow(
  row: BelongingRow,
  others: Pick<Belongings, "claim" | "claimant" | "owner">,
): Belongings {
  return {
    id: row.id,
    suspended: row.suspended,
    claimedAt: claimedAt(row),
    recovery: row.recovery_hash,
    undo: row.undo_hash ?? row.recovery_hash,
    ...others,
  };
}

/** A node of the version before knows no `claimed_at`. */
const claimedAt = (row: BelongingRow): EpochMs | null =>
  row.setup_key === null ? null : time(row.claimed_at ?? row.attached_at);

/** A row of `sign_in_links` without its hash. */
export interface LinkRow {
  readonly email: Email;
  readonly claimed: BalanceId | null;
  readonly expires_at: Whole;
}

export const linkFromRow = (hash: SecretHash, row: LinkRow): Link => ({
  hash,
  email: row.email,
  claimed: row.claimed,
  expiresAt: Number(row.expires_at) as EpochMs,
});

/** A row of `wallet_messages` without its hash. */
export interface MessageRow {
  readonly address: IssuedMessage["address"];
  readonly chain_id: Whole;
  readonly expires_at: Whole;
}

export const messageFromRow = (hash: SecretHash, row: MessageRow): IssuedMessage => ({
  hash,
  address: row.address,
  chainId: Number(row.chain_id),
  expiresAt: Number(row.expires_at) as EpochMs,
});
