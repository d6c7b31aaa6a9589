import type { KEY_ORDERS, KEYS, KeyAnswer, MintedAnswer } from "../../api/keys.ts";
import type { Period } from "../../api/usage.ts";
import type { Minted } from "../../customers/keys/creation.ts";
import type { Key } from "../../customers/keys/key.ts";
import type { LedgerOperations } from "../../store/ledger/ledger-operations.ts";
import type { KeyActivity } from "../../store/usage/key-activity.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import type { HttpDeps } from "../deps.ts";
import type { QueryOf } from "../operation.ts";
import { page, pageBefore } from "../reply.ts";
import { periodAt, tooManyAtOnce } from "./usage.ts";

export async function keysPage(
  balances: readonly BalanceId[],
  query: QueryOf<typeof KEYS.list>,
  deps: HttpDeps,
) {
  const { limit, before, search, state, sort } = query;
  const filter = { search, state, ids: query.ids?.split(",") ?? null };
  const period = query.period ?? (sort === null ? null : "month");
  const use = period === null ? undefined : await useOf(balances, period, before !== null, deps);
  if (sort === null) {
    const keys = await deps.keyDeps.store.keysOf(balances, limit + 1, before as KeyId | null, filter);
    return pageOfKeys(keys, limit, deps, use);
  }
  if (use === null || use === undefined) return tooManyAtOnce();
  const order = [...use.values()].sort(ORDERS[sort]).map(({ keyId }) => keyId);
  // A key that is in no order now has none behind it.
  const at = before === null ? 0 : order.indexOf(before as KeyId) + 1 || order.length;
  const some = order.slice(at, at + MAX_ORDERED).filter((id) => filter.ids?.includes(id) ?? true);
  const found = await deps.keyDeps.store.keysOf(balances, MAX_ORDERED, null, { ...filter, ids: some });
  const byId = new Map(found.map((key) => [key.id, key]));
  const keys = some.flatMap((id) => byId.get(id) ?? []);
  const isWhole = keys.length <= limit && at + MAX_ORDERED >= order.length;
  const last = keys.length > limit ? keys[limit - 1]!.id : order[at + MAX_ORDERED - 1];
  const { data } = await pageOfKeys(keys, limit, deps, use);
  return pageBefore(data, isWhole ? null : last!);
}

/** Keys of the order that one page looks for among those that the filter leaves: the page may have fewer rows, or none. */
const MAX_ORDERED = 1_000;

/** A page of rows, of which one more was requested than fits on it. */
export function pageOfKeys(
  keys: readonly Key[],
  limit: number,
  { clock, ledger }: HttpDeps,
  use?: ReadonlyMap<KeyId, KeyActivity> | null,
) {
  const now = clock.now();
  return page(keys, limit, async (key) => ({
    ...(await usedKeyView(key, now, ledger)),
    ...(use === undefined ? {} : useView(use, key.id)),
  }));
}

const useView = (use: ReadonlyMap<KeyId, KeyActivity> | null, id: KeyId) => {
  const one = use?.get(id);
  return {
    used_period_usd: use === null ? null : usdFromNano((one?.chargedNano ?? 0) as NanoUsd),
    last_used_at: one === undefined ? null : isoTime(one.lastAt),
  };
};

/** Null while too many reports are computed. */
async function useOf(
  balances: readonly BalanceId[],
  name: Period,
  isNext: boolean,
  { books, clock }: HttpDeps,
) {
  const now = clock.now();
  const { since, until } = periodAt(now, name);
  const usedSince = periodAt(now, "month").since;
  const uses = new Map<KeyId, KeyActivity>();
  // One after the other: a balance has few reports at once.
  for (const balanceId of balances) {
    const some = await books.keyActivity({ balanceId, since, until, usedSince }, isNext);
    if (some === null) return null;
    for (const one of some) uses.set(one.keyId, one);
  }
  return uses;
}

const latest = (a: KeyActivity, b: KeyActivity): number =>
  b.lastAt - a.lastAt || (a.keyId < b.keyId ? -1 : 1);

const ORDERS = {
  spend: (a: KeyActivity, b: KeyActivity) => b.chargedNano - a.chargedNano || latest(a, b),
  used: latest,
} satisfies Record<(typeof KEY_ORDERS)[number], unknown>;

/** A key as its owner sees it: never the secret, never its hash. */
function keyView(key: Key, now: EpochMs): Omit<MintedAnswer, "key"> {
  return {
    id: key.id,
    object: "key",
    prefix: key.prefix,
    name: key.name,
    balance_id: key.balanceId,
    state: stateOf(key, now),
    created_at: isoTime(key.createdAt),
    expires_at: key.expiresAt === null ? null : isoTime(key.expiresAt),
    rpm_limit: key.rpmLimit,
    tpm_limit: key.tpmLimit,
    daily_limit_usd: amount(key.dailyLimit),
    monthly_limit_usd: amount(key.monthlyLimit),
    allowed_models: key.allowedModels,
    budget: budgetField(key.budgets),
    policy: key.policy ?? null,
    price_list: key.priceList,
  };
}

/** The same with what the key has used of its caps, and what its open requests hold now. */
export async function usedKeyView(key: Key, now: EpochMs, ledger: LedgerOperations): Promise<KeyAnswer> {
  const { day, month, held, heldAt } = await ledger.keyUse(key, now);
  return {
    ...keyView(key, now),
    used_day_usd: usdFromNano(day),
    used_month_usd: usdFromNano(month),
    held_usd: usdFromNano(held),
    held_at: heldAt,
  };
}

/** The one answer that holds the plaintext. */
export function mintedView({ key, secret }: Minted, now: EpochMs): MintedAnswer {
  const { id, object, ...rest } = keyView(key, now);
  return { id, object, key: secret, ...rest };
}

function stateOf({ state, expiresAt }: Key, now: EpochMs): "active" | "rotated" | "expired" | "revoked" {
  return state !== "revoked" && expiresAt !== null && expiresAt <= now ? "expired" : state;
}

const amount = (limit: NanoUsd | null): number | null => (limit === null ? null : usdFromNano(limit));

/** As it is written in requests: a name, several, or null. */
const budgetField = (names: readonly string[]): string | readonly string[] | null =>
  names.length === 0 ? null : names.length === 1 ? names[0]! : names;
