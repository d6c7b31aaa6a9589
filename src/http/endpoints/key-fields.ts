import type { AdminKeyFields, KeyFields } from "../../api/keys.ts";
import type { CatalogWithLists } from "../../catalog/catalog.ts";
import { autoVariant, FREE_AUTO_MODEL, isModelId, isVariant } from "../../catalog/model-name.ts";
import type { KeySpec } from "../../customers/keys/key-spec.ts";
import type { EpochMs } from "../../units/clock.ts";
import { invalidField, type Refusal, refused } from "../../units/errors/refusal.ts";
import type { NanoUsd } from "../../units/usd.ts";
import { readTime, readUsd } from "../fields.ts";

/** What the body of `POST /v1/keys` or `PATCH /v1/keys/{id}` asks for, or of the same of operators. */
export function keySpec(fields: AdminKeyFields, now: EpochMs, { priceLists }: Lists): KeySpec | Refusal {
  const dailyLimit = limitOf("daily_limit_usd", fields);
  if (refused(dailyLimit)) return dailyLimit;
  const monthlyLimit = limitOf("monthly_limit_usd", fields);
  if (refused(monthlyLimit)) return monthlyLimit;
  const expiresAt = expiryOf(fields.expires_at, now);
  if (refused(expiresAt)) return expiresAt;
  const allowedModels = allowedModelsOf(fields.allowed_models);
  if (refused(allowedModels)) return allowedModels;
  const priceList = namedPriceList(fields.price_list, { priceLists });
  if (refused(priceList)) return priceList;
  const { name, rpm_limit: rpmLimit, tpm_limit: tpmLimit, budget, policy } = fields;
  return {
    ...(name === undefined ? {} : { name }),
    ...(rpmLimit === undefined ? {} : { rpmLimit }),
    ...(tpmLimit === undefined ? {} : { tpmLimit }),
    ...(dailyLimit === undefined ? {} : { dailyLimit }),
    ...(monthlyLimit === undefined ? {} : { monthlyLimit }),
    ...(allowedModels === undefined ? {} : { allowedModels }),
    ...(budget === undefined ? {} : { budgets: budgetsOf(budget) }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(policy === undefined ? {} : { policy }),
    ...(priceList === undefined ? {} : { priceList }),
  };
}

type Lists = Pick<CatalogWithLists, "priceLists">;

export function namedPriceList<Name extends string | null | undefined>(
  name: Name,
  { priceLists }: Lists,
): Name | Refusal {
  if (name === undefined || name === null || priceLists.has(name)) return name;
  const known = [...priceLists.keys()].join(", ");
  return invalidField(
    "price_list",
    `\`price_list\`: the configuration has no price list of this name. ${known === "" ? "Add one under `price_lists`, and reload." : `It has: ${known}.`}`,
  );
}

function limitOf(
  field: "daily_limit_usd" | "monthly_limit_usd",
  fields: KeyFields,
): NanoUsd | null | undefined | Refusal {
  const limit = fields[field];
  return limit === undefined || limit === null ? limit : readUsd(field, limit);
}

function expiryOf(value: string | null | undefined, now: EpochMs): EpochMs | null | undefined | Refusal {
  if (value === undefined || value === null) return value;
  const at = readTime("expires_at", value);
  if (refused(at) || at > now) return at;
  return invalidField("expires_at", "`expires_at` must lie in the future. To end a key now, revoke it.");
}

const budgetsOf = (budget: string | readonly string[] | null): string[] =>
  budget === null ? [] : typeof budget === "string" ? [budget] : [...new Set(budget)];

/**
 * Specification: the only model ids that the key may call, of which Auto picks too. Models may be listed
 * before they are published; a list that could never serve anybody is a mistake, and refused here rather than
 * at the key's every request.
 */
function allowedModelsOf(names: readonly string[] | null | undefined): string[] | null | undefined | Refusal {
  if (names === undefined || names === null) return names;
  const nameless = names.find((name) => !isModelId(name) && !isVariant(autoVariant(name) ?? ""));
  if (nameless !== undefined) {
    return invalidField(
      "allowed_models",
      `\`allowed_models\` names \`${nameless}\`, which cannot be a model id: ids have the form \`<author>/<name>\` and are matched whole, without patterns.`,
    );
  }
  if (names.every(picksAmongOthers)) {
    return invalidField(
      "allowed_models",
      `\`allowed_models\` names only \`${names[0]}\`, which picks among the models on this list: add those that it may pick.`,
    );
  }
  return [...new Set(names)];
}

/** The Open Tier's route, which costs nothing, is opened to all of its models by its own name. */
const picksAmongOthers = (name: string): boolean => autoVariant(name) !== null && name !== FREE_AUTO_MODEL;
