import type { Holdings } from "../../accounts/account.ts";
import { isPending } from "../../accounts/belonging.ts";
import { readEmail } from "../../accounts/email.ts";
import { detach } from "../../accounts/undo.ts";
import type { WalletName } from "../../accounts/wallet.ts";
import { ADMIN, DetachFields } from "../../api/admin.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { invalidField, readFields, repeated } from "../fields.ts";
import { ok, type Reply } from "../reply.ts";
import { guarded } from "./token.ts";

/** Who an operator is written to by: accounts by the address or wallet that they are known by. */
export const adminAccountEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/admin/accounts", about: ADMIN.findAccount, handle: guarded(find) },
  { method: "GET", path: "/admin/accounts/:id", about: ADMIN.account, handle: guarded(show) },
  {
    method: "POST",
    path: "/admin/accounts/:id/detach",
    about: ADMIN.detach,
    handle: guarded(takeOut),
  },
];

async function find({ request }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const about = knownBy(queryOf(request));
  if (refused(about)) return about;
  const found = await deps.accounts.store.holdings(about);
  const now = deps.keyDeps.clock.now();
  return ok({ object: "list", data: found === null ? [] : [accountView(found, now)] });
}

function knownBy(query: URLSearchParams) {
  const [email, wallet] = [query.get("email"), query.get("wallet")];
  if (wallet !== null && email === null) return { wallet: wallet as WalletName };
  const address = email === null || wallet !== null ? null : readEmail(email);
  return address === null
    ? invalidField("email", "Name either `email`, an email address, or `wallet`, as the account shows it.")
    : { email: address };
}

async function show({ params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const id = params.id ?? "";
  const found = await deps.accounts.store.holdings({ account: id as AccountId });
  return found === null
    ? invalidField("id", `There is no account \`${repeated(id)}\`.`)
    : ok(accountView(found, deps.keyDeps.clock.now()));
}

async function takeOut(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const fields = await readFields(DetachFields, exchange, deps);
  if (refused(fields)) return fields;
  const account = (exchange.params.id ?? "") as AccountId;
  const balance = await detach(deps.accounts, account, fields.balance_id as BalanceId);
  return refused(balance) ? balance : ok({ account_id: account, balance_id: balance, detached: true });
}

const accountView = ({ account, balances, claims }: Holdings, now: EpochMs) => ({
  id: account.id,
  object: "account" as const,
  email: account.email,
  wallet: account.wallet,
  suspended: account.suspended,
  created_at: isoTime(account.createdAt),
  deleted_at: account.deletedAt === null ? null : isoTime(account.deletedAt),
  first_signed_in_at: account.provedAt === null ? null : isoTime(account.provedAt),
  balance_ids: balances,
  claimed_balance_ids: claims.filter((claim) => isPending(claim, now)).map(({ balanceId }) => balanceId),
});
