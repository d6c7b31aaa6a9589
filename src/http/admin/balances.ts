import { ADMIN, type BalanceAnswer } from "../../api/admin.ts";
import type { Account } from "../../customers/accounts/account.ts";
import type { Balance, Key } from "../../customers/keys/key.ts";
import { OPERATOR } from "../../customers/keys/root.ts";
import { revoke } from "../../customers/keys/rotation.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import type { AccountId, BalanceId, KeyId } from "../../units/id.ts";
import { usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { creditView } from "../endpoints/credits.ts";
import { changedKey, newBalance, pageOfKeys, revoked, shownKey } from "../endpoints/keys.ts";
import { repeated } from "../fields.ts";
import { operation } from "../operation.ts";
import { ok, page } from "../reply.ts";

/** Who uses the gateway, for its operator: balances and their keys, never a secret or a hash. */
export const adminBalanceEndpoints = (): Endpoint[] => [
  operation("GET /admin/balances", ADMIN.balances, async ({ query: { limit, before } }, deps) => {
    const { store } = deps.keyDeps;
    if (before !== null && (await store.balanceWithBudgets(before as BalanceId)) === null) {
      return invalidField("before", "`before` must be the id of a balance.");
    }
    const rows = await store.balances(limit + 1, before as BalanceId | null);
    const owners = await ownersOf(
      rows.map(({ balance }) => balance),
      deps,
    );
    return page(rows, limit, async ({ balance, liveKeys }) => ({
      ...(await balanceView(balance, owners, deps)),
      live_keys: liveKeys,
    }));
  }),
  operation("GET /admin/balances/:id", ADMIN.balance, async ({ params: { id } }, deps) => {
    const balance = await balanceNamed(id, deps);
    if (refused(balance)) return balance;
    return ok(await balanceView(balance, await ownersOf([balance], deps), deps));
  }),
  operation("GET /admin/balances/:id/credits", ADMIN.credits, async ({ params, query: { limit } }, deps) => {
    const balance = await balanceNamed(params.id, deps);
    if (refused(balance)) return balance;
    return page(await deps.ledger.credits(balance.id, limit + 1), limit, (credit) => ({
      ...creditView(credit),
      idempotency_key: credit.idempotencyKey,
    }));
  }),
  operation("GET /admin/balances/:id/keys", ADMIN.keys, async ({ params, query }, deps) => {
    const balance = await balanceNamed(params.id, deps);
    if (refused(balance)) return balance;
    const { store } = deps.keyDeps;
    const before = query.before as KeyId | null;
    if (before !== null && (await store.keyById(before))?.balanceId !== balance.id) {
      return invalidField("before", "`before` must be the id of a key of this balance.");
    }
    return pageOfKeys(await store.keysOf([balance.id], query.limit + 1, before), query.limit, deps);
  }),
  // Not throttled: where nobody else may make balances, the operator does.
  operation("POST /admin/keys", ADMIN.createKey, ({ fields }, deps) => newBalance(fields, deps)),
  operation("GET /admin/keys/:id", ADMIN.key, async ({ params: { id } }, deps) =>
    shownKey(await keyNamed(id, deps), deps),
  ),
  // For a user who asks for more: the operator raises what the owner may not be there to raise.
  operation("PATCH /admin/keys/:id", ADMIN.changeKey, async ({ params: { id }, fields }, deps) =>
    changedKey(await keyNamed(id, deps), fields, OPERATOR, deps),
  ),
  // For a key that was reported as leaked: the operator need not wait for its owner.
  operation("POST /admin/keys/:id/revoke", ADMIN.revoke, async ({ params: { id } }, deps) => {
    const found = await keyNamed(id, deps);
    return refused(found) ? found : revoked(await revoke(deps.keyDeps, found.id, OPERATOR));
  }),
];

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
): Promise<BalanceAnswer> {
  const money = await ledger.balanceUse(id);
  const owner = accountId === null ? undefined : owners.get(accountId);
  return {
    id,
    object: "balance",
    account_id: accountId,
    email: owner?.email ?? null,
    wallet: owner?.wallet ?? null,
    suspended,
    closed,
    created_at: isoTime(createdAt),
    credited_usd: usdFromNano(money.credited),
    balance_usd: usdFromNano(money.total),
    available_usd: usdFromNano(money.available),
    held_usd: usdFromNano(money.held),
    held_at: money.heldAt,
  };
}

export async function balanceNamed(
  id: string,
  { keyDeps }: Pick<HttpDeps, "keyDeps">,
): Promise<Balance | Refusal> {
  const withBudgets = await keyDeps.store.balanceWithBudgets(id as BalanceId);
  return withBudgets?.balance ?? invalidField("id", `There is no balance \`${repeated(id)}\`.`);
}

async function keyNamed(id: string, { keyDeps }: HttpDeps): Promise<Key | Refusal> {
  const key = await keyDeps.store.keyById(id as KeyId);
  return key ?? invalidField("id", `There is no key \`${repeated(id)}\`.`);
}
