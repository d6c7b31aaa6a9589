import { ADMIN, type BALANCE_STATES, type BalanceAnswer, type ListedBalance } from "../../api/admin.ts";
import type { Account } from "../../customers/accounts/account.ts";
import type { Balance } from "../../customers/keys/key.ts";
import { OPERATOR } from "../../customers/keys/root.ts";
import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import { usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import { creditView } from "../endpoints/credits.ts";
import { changeBalance } from "../endpoints/me.ts";
import { repeated } from "../fields.ts";
import { operation, type QueryOf } from "../operation.ts";
import { page, pageBefore } from "../reply.ts";

/** Who uses the gateway, for its operator: balances and their keys, never a secret or a hash. */
export const adminBalanceEndpoints = () => [
  operation("GET /admin/balances", ADMIN.balances, async ({ query }, deps) => {
    const { before } = query;
    if (before !== null && (await deps.keyDeps.store.balanceWithBudgets(before as BalanceId)) === null) {
      return invalidField("before", "`before` must be the id of a balance.");
    }
    return balancesPage(query, deps);
  }),
  operation("GET /admin/balances/:id", ADMIN.balance, async ({ params: { id } }, deps) => {
    const balance = await balanceNamed(id, deps);
    return refused(balance) ? balance : balanceView(balance, await ownersOf([balance], deps), deps);
  }),
  operation("PATCH /admin/balances/:id", ADMIN.changeBalance, async ({ params: { id }, fields }, deps) => {
    const balance = await changeBalance(id as BalanceId, fields, OPERATOR, deps);
    return refused(balance) ? balance : balanceView(balance, await ownersOf([balance], deps), deps);
  }),
  operation("GET /admin/balances/:id/credits", ADMIN.credits, async ({ params, query: { limit } }, deps) => {
    const balance = await balanceNamed(params.id, deps);
    if (refused(balance)) return balance;
    return page(await deps.ledger.credits(balance.id, limit + 1), limit, (credit) => ({
      ...creditView(credit),
      idempotency_key: credit.idempotencyKey,
    }));
  }),
];

/** Filters read so many balances a page: what each has left is asked of the ledger. */
const MAX_SCANNED = 1_000;

async function balancesPage(query: QueryOf<typeof ADMIN.balances>, deps: HttpDeps) {
  const { limit, below_usd: below, state } = query;
  const data: ListedBalance[] = [];
  let from = query.before as BalanceId | null;
  for (let scanned = 0; scanned < MAX_SCANNED; ) {
    const most = below === null && state === null ? limit : SCANNED_AT_ONCE;
    const rows = await deps.keyDeps.store.balances(most + 1, from);
    const owners = await ownersOf(
      rows.map(({ balance }) => balance),
      deps,
    );
    for (const { balance, liveKeys } of rows.slice(0, most)) {
      from = balance.id;
      scanned += 1;
      if (state !== null && !STATES[state](balance)) continue;
      const view = { ...(await balanceView(balance, owners, deps)), live_keys: liveKeys };
      if (below === null || (view.credited_usd > 0 && view.available_usd < below)) data.push(view);
      if (data.length === limit) break;
    }
    const isLast = rows.length <= most && (rows.at(-1)?.balance.id ?? from) === from;
    if (isLast) return pageBefore(data, null);
    if (data.length === limit) break;
  }
  return pageBefore(data, from);
}

const SCANNED_AT_ONCE = 100;

const STATES = {
  suspended: ({ suspended }) => suspended !== null,
  accountless: ({ accountId, closed }) => accountId === null && !closed,
  closed: ({ closed }) => closed,
} satisfies Record<(typeof BALANCE_STATES)[number], (balance: Balance) => boolean>;

type Owners = ReadonlyMap<AccountId, Account>;

async function ownersOf(balances: readonly Balance[], { accounts }: HttpDeps): Promise<Owners> {
  const ids = new Set(balances.flatMap(({ accountId }) => (accountId === null ? [] : [accountId])));
  const found = ids.size === 0 ? [] : await accounts.store.accounts([...ids]);
  return new Map(found.map((account) => [account.id, account]));
}

async function balanceView(
  { id, accountId, suspended, closed, priceList, lowCredit, createdAt }: Balance,
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
    price_list: priceList,
    low_credit_usd: lowCredit === null ? null : usdFromNano(lowCredit),
    created_at: isoTime(createdAt),
    credited_usd: usdFromNano(money.credited),
    balance_usd: usdFromNano(money.total),
    available_usd: usdFromNano(money.available),
    held_usd: usdFromNano(money.held),
    held_at: money.heldAt,
  };
}

/** `field` is what named it: a refusal tells. */
export async function balanceNamed(
  id: string,
  { keyDeps }: Pick<HttpDeps, "keyDeps">,
  field = "id",
): Promise<Balance | Refusal> {
  const withBudgets = await keyDeps.store.balanceWithBudgets(id as BalanceId);
  return (
    withBudgets?.balance ??
    invalidField(field, `There is no balance \`${repeated(id)}\`. GET /admin/balances lists them.`)
  );
}
