import type { AnswerTo } from "../../api/about.ts";
import { COMPATIBLE, unknowns } from "../../api/compatible.ts";
import type { ReceiptAnswer } from "../../api/receipts.ts";
import type { Key } from "../../customers/keys/key.ts";
import { DAY_MS, type EpochMs, isoTime } from "../../units/clock.ts";
import { invalidField } from "../../units/errors/refusal.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { type NanoUsd, usdFromNano } from "../../units/usd.ts";
import { windowAt } from "../../units/window.ts";
import type { KeyIdentity } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { HttpExchange } from "../exchange.ts";
import { operation } from "../operation.ts";
import { noReceipt, receiptView, visible } from "./receipts.ts";

/** What programs made for OpenRouter or LiteLLM ask for, from the same books as everything else: api/compatible. */
export const compatibleEndpoints = () => [
  // The second is the first's older name.
  ...(["GET /v1/key", "GET /v1/auth/key"] as const).map((name) =>
    operation(name, COMPATIBLE.key, async ({ who, exchange }) => ({
      data: await keyView(who, exchange),
    })),
  ),
  operation("GET /v1/generation", COMPATIBLE.generation, async ({ who, query: { id } }, deps) => {
    if (id === null) return invalidField("id", "`id` is missing; it must be the id of a receipt.");
    const stored = await visible(id, who, deps);
    if (stored === null) return noReceipt(id, ` that this credential can read. ${WHICH_ID}`, deps);
    return { data: generationView(receiptView(stored)) };
  }),
  operation("GET /key/info", COMPATIBLE.keyInfo, async ({ who, query }, deps) => {
    const { key } = who;
    if (query.key !== null && query.key !== key.id && hashSecret(query.key) !== key.hash) {
      return invalidField("key", "`key` must be the key that sends this, or be left out.");
    }
    return { key: key.id, info: await keyInfo(who, deps) };
  }),
];

/** OpenRouter's view of a key. */
async function keyView(
  { key, balance }: KeyIdentity,
  exchange: HttpExchange,
): Promise<AnswerTo<typeof COMPATIBLE.key>["data"]> {
  const { deps } = exchange;
  const now = deps.clock.now();
  const { startsAt: since } = windowAt("week", now);
  const [{ day, month, cap }, { credited }, { limit, used }, week] = await Promise.all([
    useOf(key, now, deps),
    deps.ledger.balance(balance.id),
    deps.ledger.openTier(balance, exchange.blocks(), now),
    deps.books.usage({ balanceId: balance.id, keyId: key.id, since, stretchMs: WEEK_MS }),
  ]);
  // Programs read their limit as they start, a whole fleet at once.
  const weekly = week?.stretches.reduce((sum, { chargedNano }) => sum + chargedNano, 0) ?? null;
  return {
    label: key.name ?? `${key.prefix}…`,
    limit: cap && usdFromNano(cap.limit),
    limit_reset: cap?.name ?? null,
    limit_remaining: cap && usdFromNano(Math.max(0, cap.limit - cap.used) as NanoUsd),
    usage: usdFromNano(month),
    usage_daily: usdFromNano(day),
    usage_weekly: weekly === null ? null : usdFromNano(weekly as NanoUsd),
    usage_monthly: usdFromNano(month),
    byok_usage: 0,
    byok_usage_daily: 0,
    byok_usage_weekly: 0,
    byok_usage_monthly: 0,
    include_byok_in_limit: false,
    is_free_tier: credited === 0,
    is_management_key: false,
    is_provisioning_key: false,
    free_model_daily_requests: { limit, used, remaining: Math.max(0, limit - used) },
    creator_user_id: balance.accountId,
    organization_id: null,
    workspace_id: null,
    allowed_data_regions: ["global"],
    expires_at: key.expiresAt === null ? null : isoTime(key.expiresAt),
    rate_limit: { requests: key.rpmLimit ?? -1, interval: "1m", note: "as rpm_limit of GET /v1/me" },
  };
}

/** OpenRouter's view of a receipt. */
function generationView(receipt: ReceiptAnswer): AnswerTo<typeof COMPATIBLE.generation>["data"] {
  const { tokens } = receipt;
  const prompt = tokens.input + tokens.cache_read + tokens.cache_write;
  return {
    ...unknowns(null),
    id: receipt.id,
    request_id: receipt.id,
    created_at: receipt.created_at,
    model: receipt.model ?? receipt.model_requested ?? "",
    provider_name: receipt.host,
    streamed: receipt.stream,
    cancelled: receipt.state === "cancelled",
    is_byok: false,
    data_region: "global",
    origin: "",
    total_cost: receipt.cost_usd,
    usage: receipt.cost_usd,
    latency: receipt.first_token_ms,
    generation_time: receipt.total_ms,
    tokens_prompt: prompt,
    tokens_completion: tokens.output,
    native_tokens_prompt: prompt,
    native_tokens_completion: tokens.output,
    native_tokens_cached: tokens.cache_read,
    native_tokens_reasoning: tokens.reasoning,
  };
}

/** LiteLLM's view of a key. */
async function keyInfo(
  { key, balance }: KeyIdentity,
  deps: HttpDeps,
): Promise<AnswerTo<typeof COMPATIBLE.keyInfo>["info"]> {
  const now = deps.clock.now();
  const { month, cap } = await useOf(key, now, deps);
  return {
    key_name: `${key.prefix}…`,
    key_alias: key.name,
    spend: usdFromNano(cap?.used ?? month),
    max_budget: cap && usdFromNano(cap.limit),
    budget_duration: cap && (cap.name === "daily" ? "1d" : "1mo"),
    budget_reset_at: cap && isoTime(windowAt(cap.window, now).resetsAt!),
    expires: key.expiresAt === null ? null : isoTime(key.expiresAt),
    models: key.allowedModels ?? [],
    rpm_limit: key.rpmLimit,
    tpm_limit: key.tpmLimit,
    max_parallel_requests: null,
    user_id: balance.accountId,
    team_id: null,
    blocked: balance.suspended !== null,
    aliases: {},
    config: {},
    permissions: {},
    metadata: {},
    created_at: isoTime(key.createdAt),
  };
}

const WEEK_MS = 7 * DAY_MS;
const WHICH_ID = "The id is in the answer's header x-gateway-receipt, not in its body.";

/** What a key spent, and of its caps the one with less left. */
async function useOf(key: Key, now: EpochMs, { ledger }: HttpDeps) {
  const { day, month } = await ledger.keySpending(key, now);
  const daily = capOf("daily", "day", key.dailyLimit, day);
  const monthly = capOf("monthly", "month", key.monthlyLimit, month);
  const isMonthly = daily === null || (monthly !== null && leftOf(monthly) < leftOf(daily));
  return { day, month, cap: isMonthly ? monthly : daily };
}

interface Cap {
  readonly name: "daily" | "monthly";
  readonly window: "day" | "month";
  readonly limit: NanoUsd;
  readonly used: NanoUsd;
}

const capOf = (name: Cap["name"], window: Cap["window"], limit: NanoUsd | null, used: NanoUsd): Cap | null =>
  limit === null ? null : { name, window, limit, used };

const leftOf = ({ limit, used }: Cap): number => limit - used;
