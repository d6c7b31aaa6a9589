import { isoTime } from "../../units/clock.ts";
import { invalidField, type Refusal } from "../../units/errors/refusal.ts";
import { isSamePolicy } from "../../units/key-policy.ts";
import { formatUsd, type NanoUsd } from "../../units/usd.ts";
import type { Key, KeyLimits } from "./key.ts";
import type { BalanceWithBudgets } from "./key-store.ts";

/**
 * What a creator or an editor of a key asks for, already judged for form; absent members stay as they are.
 */
export interface KeySpec extends Partial<KeyLimits & Pick<Key, "name" | "expiresAt" | "policy">> {
  /** Null: that of the balance. Only operators name one. */
  readonly priceList?: string | null;
}

/** The key with the spec granted; refused for a budget that the balance does not have. */
export function granted(key: Key, spec: KeySpec, { budgets }: BalanceWithBudgets): Key | Refusal {
  const unknown = spec.budgets?.find((name) => !budgets.some((budget) => budget.name === name));
  return unknown === undefined ? { ...key, ...spec } : missingBudget(unknown);
}

export const missingBudget = (name: string): Refusal =>
  invalidField(
    "budget",
    `\`budget\`: this balance has no budget named \`${name}\`. Create it with POST /v1/budgets.`,
  );

/**
 * Why a key may not make this change to itself; null where the change only tightens it. An agent that holds a
 * key can bind itself, and can neither lift what binds it nor draw on what others were given.
 */
export function loosens(key: Key, spec: KeySpec): Refusal | null {
  for (const [field, limit] of RAISABLE) {
    const requested = spec[limit];
    const present = key[limit];
    if (requested === undefined || requested === present) continue;
    if (requested === null || (present !== null && requested > present)) {
      return ownerOnly(field, present === null ? "no limit" : shown(limit, present), "lower it");
    }
  }
  const { allowedModels, budgets, expiresAt, name } = spec;
  if (allowedModels !== undefined && !isSubset(allowedModels, key.allowedModels)) {
    return ownerOnly("allowed_models", key.allowedModels?.join(", ") ?? "any model", "narrow it");
  }
  if (budgets !== undefined && budgets.join("\n") !== key.budgets.join("\n")) {
    return ownerOnly("budget", key.budgets.join(", ") || "none");
  }
  if (expiresAt !== undefined && expiresAt !== key.expiresAt) {
    if (expiresAt === null || (key.expiresAt !== null && expiresAt > key.expiresAt)) {
      return ownerOnly(
        "expires_at",
        key.expiresAt === null ? "never" : isoTime(key.expiresAt),
        "bring it forward",
      );
    }
  }
  if (spec.policy !== undefined && !isSamePolicy(spec.policy, key.policy ?? null))
    return ownerOnly("policy", JSON.stringify(key.policy ?? null));
  if (name !== undefined && name !== key.name) return ownerOnly("name", key.name ?? "none");
  return null;
}

const RAISABLE = [
  ["rpm_limit", "rpmLimit"],
  ["tpm_limit", "tpmLimit"],
  ["daily_limit_usd", "dailyLimit"],
  ["monthly_limit_usd", "monthlyLimit"],
] as const satisfies readonly (readonly [string, keyof KeyLimits])[];

const shown = (limit: (typeof RAISABLE)[number][1], value: number): string =>
  limit === "dailyLimit" || limit === "monthlyLimit" ? formatUsd(value as NanoUsd) : String(value);

const isSubset = (requested: readonly string[] | null, present: readonly string[] | null): boolean =>
  requested === null
    ? present === null
    : present === null || requested.every((model) => present.includes(model));

function ownerOnly(param: string, present: string, may?: string): Refusal {
  const allowed = may === undefined ? "" : ` A key may only ${may}.`;
  return invalidField(
    param,
    `\`${param}\` is ${present}, and only the owner of the balance can change that, with the recovery secret or a signed-in session.${allowed}`,
  );
}
