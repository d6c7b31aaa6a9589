import { PRESETS } from "../../config/provider-presets.ts";
import { type NanoUsd, nanoFromUsd, usdFromNano, ZERO_USD } from "../../units/usd.ts";
import { CommandFailure, EXIT } from "../failure.ts";
import type { MovedCustomer, MovedKey } from "./customer.ts";
import type { Draft } from "./draft.ts";
import { type Fields, fieldsOf, numberOf, textOf } from "./fields.ts";
import { LITELLM_PROVIDERS } from "./providers.ts";

/** Every model of OpenRouter whose price is known, at OpenRouter as the host. */
export function addOpenRouter(draft: Draft): void {
  const preset = PRESETS.find(({ id }) => id === "openrouter")!;
  for (const { id, wireName } of draft.known.of(preset))
    draft.add({
      name: id,
      provider: LITELLM_PROVIDERS.openrouter!,
      address: null,
      key: null,
      model: wireName,
      from: `model ${wireName}`,
    });
}

/** A budget a key at most, of which a balance has at most 200. */
const KEYS_A_BALANCE = 90;

/** The keys of `GET /api/v1/keys`. They share the account's credit, which that does not say: so do those made here. */
export function readKeys(rows: readonly unknown[], draft: Draft, now: number): MovedCustomer[] {
  const keys = rows.flatMap((row, at) => readKey(fieldsOf(row), `data[${at}]`, draft, now));
  const customers: MovedCustomer[] = [];
  for (let from = 0; from < keys.length; from += KEYS_A_BALANCE)
    customers.push({
      source: `account:${customers.length + 1}`,
      name: `OpenRouter ${customers.length + 1}`,
      credit: ZERO_USD,
      isSuspended: false,
      keys: keys.slice(from, from + KEYS_A_BALANCE),
    });
  if (customers.length > 0)
    draft.note(
      "credit",
      `the export names no credit: give it to ${customers.length === 1 ? "the balance" : "the balances"} with \`gateway credit\``,
    );
  return customers;
}

export function rowsOf(text: string, file: string): readonly unknown[] {
  let json: unknown = null;
  try {
    json = JSON.parse(text);
  } catch {}
  const { data } = fieldsOf(json);
  if (Array.isArray(data)) return data;
  throw new CommandFailure(
    EXIT.usage,
    `${file} is not what GET /api/v1/keys answers: it has no list \`data\``,
  );
}

function readKey(row: Fields, at: string, draft: Draft, now: number): MovedKey[] {
  const hash = textOf(row.hash);
  const name = textOf(row.name) ?? textOf(row.label) ?? "";
  const from = `${at} ${name}`.trim();
  const expiresAt = textOf(row.expires_at);
  const left = limitOf(row.limit_remaining);
  const why =
    hash === null
      ? "it has no hash, which tells it from others"
      : row.disabled === true
        ? "it is disabled"
        : expiresAt !== null && Date.parse(expiresAt) <= now
          ? "it has expired"
          : null;
  if (why !== null) {
    draft.leaveOut(from, why);
    return [];
  }
  if (row.include_byok_in_limit === true)
    draft.leaveOut(`${from}: include_byok_in_limit`, "customers bring no keys of providers here");
  const limit = limitOf(row.limit);
  const reset = textOf(row.limit_reset);
  if (limit !== null && reset !== null && (numberOf(row.usage) ?? 0) > 0)
    draft.note(from, "what it has used of the present window is not carried: its limit starts again");
  return [
    {
      source: `key:${hash}`,
      name,
      dailyLimitUsd: reset === "daily" ? limit : null,
      monthlyLimitUsd: reset === "monthly" ? limit : null,
      allowedModels: null,
      expiresAt,
      priceList: null,
      budget: budgetOf(limit, left, reset),
    },
  ];
}

function budgetOf(limit: number | null, left: number | null, reset: string | null): MovedKey["budget"] {
  if (limit === null || reset === "daily" || reset === "monthly") return null;
  return reset === "weekly" ? { capUsd: limit, window: "week" } : { capUsd: left ?? limit, window: "total" };
}

/** To the nano-dollar, down, and never below zero: a source that adds in floats may say 0.30000000000000004. */
function limitOf(value: unknown): number | null {
  const usd = numberOf(value);
  if (usd === null) return null;
  const nano = nanoFromUsd(usd) ?? (Math.floor(usd * 1e9) as NanoUsd);
  return usdFromNano(Math.max(0, nano) as NanoUsd);
}
