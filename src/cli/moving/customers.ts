import type { BudgetAnswer } from "../../api/budgets.ts";
import type { KeyAnswer, MintedAnswer, SetUpAnswer } from "../../api/keys.ts";
import type { List } from "../../api/schema.ts";
import { decimalUsd, usdFromNano } from "../../units/usd.ts";
import { Client } from "../client.ts";
import type { CommandContext } from "../console.ts";
import { withProgress } from "../progress.ts";
import type { MovedCustomer, MovedKey } from "./customer.ts";
import type { Mapping } from "./mapping.ts";

/**
 * Makes customers at a running gateway: a balance each, its keys, then its credit. What the mapping has is not made
 * again, and credit carries the source's id as its idempotency key: repeating an import, after whatever ended it, gives
 * nobody anything twice.
 */
export async function makeCustomers(
  customers: readonly MovedCustomer[],
  mapping: Mapping,
  client: Client,
  context: CommandContext,
): Promise<number> {
  let made = 0;
  await withProgress(context, async (progress) => {
    for (const [at, customer] of customers.entries()) {
      if (!mapping.isDone(customer.source)) {
        await makeCustomer(customer, mapping, client, context);
        made++;
      }
      progress(at + 1, customers.length, "customers");
    }
  });
  return made;
}

async function makeCustomer(
  customer: MovedCustomer,
  mapping: Mapping,
  client: Client,
  context: CommandContext,
): Promise<void> {
  const { source, name, credit, isSuspended, keys } = customer;
  const isResumed = mapping.has(source);
  const { balanceId, recoverySecret } = await balanceOf(customer, mapping, client);
  if (isResumed) await revokeLost(keys, balanceId, mapping, client);
  const owner = new Client(context, client.url, recoverySecret);
  for (const key of keys) await makeKey(key, balanceId, owner, mapping, client);
  // Last: what is not finished cannot spend.
  if (credit > 0)
    await client.post("/admin/credits", {
      balance_id: balanceId,
      amount_usd: usdFromNano(credit),
      idempotency_key: `import:${mapping.source}:${source}`,
      note: `carried over: ${name}`.slice(0, MAX_NOTE),
    });
  if (isSuspended)
    await client.post(`/admin/accounts/${balanceId}/suspend`, {
      reason: "acceptable_use",
      note: "suspended where it came from",
    });
  mapping.add({ source, done: true, credited_usd: decimalUsd(credit) });
}

const MAX_NOTE = 200;

async function balanceOf(
  { source, name }: MovedCustomer,
  mapping: Mapping,
  client: Client,
): Promise<{ balanceId: string; recoverySecret: string }> {
  const known = mapping.balance(source);
  if (known !== null) return known;
  // Its first key is the one with which its owner can claim the balance.
  const made = await client.post<SetUpAnswer>("/admin/keys", {
    name: `${name} (first)`.slice(0, MAX_NAME),
    ...UNLIMITED,
  });
  mapping.add({
    source,
    name,
    balance_id: made.balance_id,
    recovery_secret: made.recovery_secret,
    first_key_id: made.id,
    first_key: made.key,
  });
  return { balanceId: made.balance_id, recoverySecret: made.recovery_secret };
}

const MAX_NAME = 100;
const UNLIMITED = { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null };

/** A key that was made just before an import broke off has a secret that nobody knows: it is made again. */
async function revokeLost(
  keys: readonly MovedKey[],
  balanceId: string,
  mapping: Mapping,
  client: Client,
): Promise<void> {
  const missing = new Set(keys.filter(({ source }) => !mapping.has(source)).map(nameOf));
  const path = `/admin/balances/${balanceId}/keys`;
  const { rows } = await client.all<KeyAnswer>(path, MAX_KEYS, () => {});
  for (const { id, name, state } of rows)
    if (state === "active" && missing.has(name) && !mapping.hasSecretOf(id))
      await client.post(`/admin/keys/${id}/revoke`);
}

const MAX_KEYS = 10_000;

const nameOf = ({ name }: MovedKey): string | null => name.slice(0, MAX_NAME) || null;

async function makeKey(
  key: MovedKey,
  balanceId: string,
  owner: Client,
  mapping: Mapping,
  client: Client,
): Promise<void> {
  if (mapping.has(key.source)) return;
  const budget = key.budget === null ? null : await budgetOf(key, owner);
  const made = await client.post<MintedAnswer>(`/admin/balances/${balanceId}/keys`, {
    ...UNLIMITED,
    name: nameOf(key),
    daily_limit_usd: key.dailyLimitUsd,
    monthly_limit_usd: key.monthlyLimitUsd,
    allowed_models: key.allowedModels,
    expires_at: key.expiresAt,
    budget,
    ...(key.priceList === null ? {} : { price_list: key.priceList }),
  });
  mapping.add({ source: key.source, name: key.name, balance_id: balanceId, key_id: made.id, key: made.key });
}

/** The name of the key's own budget, which an import that broke off may have made before. */
async function budgetOf({ source, budget }: MovedKey, owner: Client): Promise<string> {
  const name = source.replaceAll(/[^A-Za-z0-9._-]+/g, "-").slice(0, MAX_BUDGET_NAME);
  const { data } = await owner.get<List<BudgetAnswer>>("/v1/budgets");
  if (!data.some((one) => one.name === name))
    await owner.post("/v1/budgets", { name, cap_usd: budget!.capUsd, window: budget!.window });
  return name;
}

const MAX_BUDGET_NAME = 64;
