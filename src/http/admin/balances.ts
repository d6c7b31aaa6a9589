import type { Account } from "../../accounts/account.ts";
import { ADMIN, DEFAULT_ROWS, MAX_ROWS } from "../../api/admin.ts";
import { type Refusal, refused } from "../../errors/refusal.ts";
import type { Balance, Key } from "../../keys/key.ts";
import { revise, revoke } from "../../keys/rotation.ts";
import { isoTime } from "../../units/clock.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import { usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import { type Endpoint, type Exchange, queryOf } from "../endpoint.ts";
import { creditView } from "../endpoints/credits.ts";
import { readKeySpec } from "../endpoints/key-fields.ts";
import { usedKeyView } from "../endpoints/key-view.ts";
import { createBalance } from "../endpoints/keys.ts";
import { invalidField, readCount, repeated } from "../fields.ts";
import { ok, type Reply } from "../reply.ts";
import { guarded } from "./token.ts";

/** Who uses the gateway, for its operator: balances and their keys, never a secret or a hash. */
export const adminBalanceEndpoints = (): Endpoint[] => [
  { method: "GET", path: "/admin/balances", about: ADMIN.balances, handle: guarded(listBalances) },
  { method: "GET", path: "/admin/balances/:id", about: ADMIN.balance, handle: guarded(showBalance) },
  { method: "GET", path: "/admin/balances/:id/credits", about: ADMIN.credits, handle: guarded(listCredits) },
  { method: "GET", path: "/admin/balances/:id/keys", about: ADMIN.keys, handle: guarded(listKeys) },
  // Not throttled: where nobody else may make balances, the operator does.
  { method: "POST", path: "/admin/keys", about: ADMIN.createKey, handle: guarded(createBalance) },
  { method: "GET", path: "/admin/keys/:id", about: ADMIN.key, handle: guarded(showKey) },
  { method: "PATCH", path: "/admin/keys/:id", about: ADMIN.changeKey, handle: guarded(changeKey) },
  { method: "POST", path: "/admin/keys/:id/revoke", about: ADMIN.revoke, handle: guarded(revokeKey) },
];

async function listBalances({ request }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const query = queryOf(request);
  const limit = readCount(query, "limit", DEFAULT_ROWS, MAX_ROWS);
  if (refused(limit)) return limit;
  const before = query.get("before") as BalanceId | null;
  if (before !== null && (await deps.keyDeps.store.balanceWithBudgets(before)) === null) {
    return invalidField("before", "`before` must be the id of a balance.");
  }
  const rows = await deps.keyDeps.store.balances(limit + 1, before);
  const page = rows.slice(0, limit);
  const owners = await ownersOf(
    page.map(({ balance }) => balance),
    deps,
  );
  const data = await Promise.all(
    page.map(async ({ balance, liveKeys }) => ({
      ...(await balanceView(balance, owners, deps)),
      live_keys: liveKeys,
    })),
  );
  return ok({ object: "list", data, has_more: rows.length > limit });
}

async function showBalance({ params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const balance = await balanceNamed(params.id, deps);
  if (refused(balance)) return balance;
  return ok(await balanceView(balance, await ownersOf([balance], deps), deps));
}

async function listCredits(
  { request, params }: Exchange,
  { keyDeps, ledger }: HttpDeps,
): Promise<Reply | Refusal> {
  const balance = await balanceNamed(params.id, { keyDeps });
  if (refused(balance)) return balance;
  const limit = readCount(queryOf(request), "limit", DEFAULT_ROWS, MAX_ROWS);
  if (refused(limit)) return limit;
  const credits = await ledger.credits(balance.id, limit + 1);
  const data = credits
    .slice(0, limit)
    .map((credit) => ({ ...creditView(credit), idempotency_key: credit.idempotencyKey }));
  return ok({ object: "list", data, has_more: credits.length > limit });
}

async function listKeys({ request, params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const balance = await balanceNamed(params.id, deps);
  if (refused(balance)) return balance;
  const query = queryOf(request);
  const limit = readCount(query, "limit", DEFAULT_ROWS, MAX_ROWS);
  if (refused(limit)) return limit;
  const before = query.get("before") as KeyId | null;
  if (before !== null && (await deps.keyDeps.store.keyById(before))?.balanceId !== balance.id) {
    return invalidField("before", "`before` must be the id of a key of this balance.");
  }
  const keys = await deps.keyDeps.store.keysOf([balance.id], limit + 1, before);
  const now = deps.keyDeps.clock.now();
  const data = await Promise.all(keys.slice(0, limit).map((key) => usedKeyView(key, now, deps.ledger)));
  return ok({ object: "list", data, has_more: keys.length > limit });
}

async function showKey({ params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const key = await keyNamed(params.id, deps);
  return refused(key) ? key : ok(await usedKeyView(key, deps.keyDeps.clock.now(), deps.ledger));
}

/** For a user who asks for more: the operator raises what the owner may not be there to raise. */
async function changeKey(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const found = await keyNamed(exchange.params.id, deps);
  if (refused(found)) return found;
  const spec = await readKeySpec(exchange, deps);
  if (refused(spec)) return spec;
  const key = await revise(deps.keyDeps, found.id, spec, "operator");
  return refused(key) ? key : ok(await usedKeyView(key, deps.keyDeps.clock.now(), deps.ledger));
}

/** For a key that was reported as leaked: the operator need not wait for its owner. */
async function revokeKey({ params }: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const found = await keyNamed(params.id, deps);
  if (refused(found)) return found;
  const key = await revoke(deps.keyDeps, found.id);
  return refused(key) ? key : ok({ id: key.id, state: key.state });
}

type Owners = ReadonlyMap<AccountId, Account>;

async function ownersOf(balances: readonly Balance[], { accounts }: HttpDeps): Promise<Owners> {
  const ids = new Set(balances.flatMap(({ accountId }) => (accountId === null ? [] : [accountId])));
  const found = ids.size === 0 ? [] : await accounts.store.accounts([...ids]);
  return new Map(found.map((account) => [account.id, account]));
}

async function balanceView(
  { id, accountId, suspended, closed, createdAt }: Balance,
  owners: Owners,
  { ledger }: HttpDeps,
) {
  const money = await ledger.balance(id);
  const owner = accountId === null ? undefined : owners.get(accountId);
  return {
    id,
    object: "balance" as const,
    account_id: accountId,
    email: owner?.email ?? null,
    wallet: owner?.wallet ?? null,
    suspended,
    closed,
    created_at: isoTime(createdAt),
    balance_usd: usdFromNano(money.total),
    available_usd: usdFromNano(money.available),
    held_usd: usdFromNano(money.held),
  };
}

export async function balanceNamed(
  id: string | undefined,
  { keyDeps }: Pick<HttpDeps, "keyDeps">,
): Promise<Balance | Refusal> {
  const withBudgets = await keyDeps.store.balanceWithBudgets((id ?? "") as BalanceId);
  return withBudgets?.balance ?? invalidField("id", `There is no balance \`${repeated(id ?? "")}\`.`);
}

async function keyNamed(id: string | undefined, { keyDeps }: HttpDeps): Promise<Key | Refusal> {
  const key = await keyDeps.store.keyById((id ?? "") as KeyId);
  return key ?? invalidField("id", `There is no key \`${repeated(id ?? "")}\`.`);
}
