import { type AccountAnswer, ADMIN } from "../../api/admin.ts";
import type { AccountBalances } from "../../customers/accounts/account.ts";
import { readEmail } from "../../customers/accounts/email.ts";
import { isPending } from "../../customers/accounts/ownership.ts";
import { detach } from "../../customers/accounts/undo.ts";
import type { WalletName } from "../../customers/accounts/wallet-message.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { invalidField, refused } from "../../units/errors/refusal.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import { liveKeys } from "../endpoints/claims.ts";
import { repeated } from "../fields.ts";
import { operation } from "../operation.ts";
import { list } from "../reply.ts";

/** Who an operator is written to by: accounts by the address or wallet that they are known by. */
export const adminAccountEndpoints = () => [
  operation("GET /admin/accounts", ADMIN.findAccount, async ({ query }, { accounts, clock }) => {
    const about = knownBy(query.email, query.wallet);
    if (refused(about)) return about;
    const found = await accounts.store.accountBalances(about);
    return list(found === null ? [] : [accountView(found, clock.now())]);
  }),
  operation("GET /admin/accounts/:id", ADMIN.account, async ({ params: { id } }, { accounts, clock }) => {
    const found = await accounts.store.accountBalances({ account: id as AccountId });
    return found === null
      ? invalidField("id", `There is no account \`${repeated(id)}\`.`)
      : accountView(found, clock.now());
  }),
  operation("POST /admin/accounts/:id/detach", ADMIN.detach, async ({ params, fields }, deps) => {
    const { balance_id, revoke_keys = false } = fields;
    const account = params.id as AccountId;
    const balance = await detach(deps.accounts, account, balance_id as BalanceId, revoke_keys);
    if (refused(balance)) return balance;
    return {
      account_id: account,
      balance_id: balance,
      detached: true as const,
      ...(await liveKeys(balance, deps)),
    };
  }),
];

function knownBy(email: string | null, wallet: string | null) {
  if (wallet !== null && email === null) return { wallet: wallet as WalletName };
  const address = email === null || wallet !== null ? null : readEmail(email);
  return address === null
    ? invalidField("email", "Name either `email`, an email address, or `wallet`, as the account shows it.")
    : { email: address };
}

const accountView = ({ account, balances, claims }: AccountBalances, now: EpochMs): AccountAnswer => ({
  id: account.id,
  object: "account",
  email: account.email,
  wallet: account.wallet,
  suspended: account.suspended,
  created_at: isoTime(account.createdAt),
  deleted_at: account.deletedAt === null ? null : isoTime(account.deletedAt),
  first_signed_in_at: account.provedAt === null ? null : isoTime(account.provedAt),
  balance_ids: balances,
  claimed_balance_ids: claims.filter((claim) => isPending(claim, now)).map(({ balanceId }) => balanceId),
});
