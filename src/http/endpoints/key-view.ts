import type { KeyAnswer, MintedAnswer } from "../../api/keys.ts";
import type { Minted } from "../../customers/keys/creation.ts";
import type { Key } from "../../customers/keys/key.ts";
import type { LedgerOperations } from "../../store/ledger/ledger-operations.ts";
import { type EpochMs, isoTime } from "../../units/clock.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";

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
