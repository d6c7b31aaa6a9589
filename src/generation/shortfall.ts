import { bookkeepingDown } from "../errors/bookkeeping.ts";
import { NOT_SOON, type Refusal, type RefusalDetails, refuse, retryAfter } from "../errors/refusal.ts";
import { affordableOutput } from "../ledger/charge.ts";
import type { RateShortfall, Shortfall } from "../ledger/shortfall.ts";
import { asObject } from "../surfaces/json.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { budgetUnder } from "../surfaces/translation/reasoning.ts";
import type { EpochMs } from "../units/clock.ts";
import { formatUsd, type NanoUsd } from "../units/usd.ts";
import type { Ask, Sized } from "./admission.ts";

/** The refusal of a request for whose worst case, `sized`, a limit is short. */
export function shortfallRefusal(short: Shortfall, ask: Ask, sized: Sized, now: EpochMs): Refusal {
  switch (short.what) {
    case "open_tier.rpm":
      return freeRateRefusal(short);
    case "rpm_limit":
    case "tpm_limit":
      return rateRefusal(short, ask.settings.dashboardUrl);
    case "allowance": {
      const retryAfterS = secondsUntil(short.resetsAt, now);
      return refuse(
        "free_quota_exceeded",
        `The Open Tier allowance of ${short.limit} requests per day is spent. It resets at 00:00 UTC, in ${retryAfterS} s. It is shared by ${sharers(short.owner)}, so a new key does not help, and neither does added credit.`,
        { retryAfterS, shouldRetry: false },
      );
    }
    case "books":
      return bookkeepingDown();
    case "balance":
      return refuse("insufficient_credit", balanceMessage(short.available, ask, sized), {
        balance: short.available,
      });
    default: {
      const name = short.what === "budget" ? `budget \`${short.budget}\`` : `key's \`${short.what}\``;
      const used = `${formatUsd(short.spent)} is used, and ${formatUsd(short.held)} is held by open requests`;
      const alone =
        short.amount > short.cap ? " This request alone is above the cap, so waiting will not help." : "";
      const raise = `Raise the cap in the dashboard: ${ask.settings.dashboardUrl}.`;
      return refuse(
        "budget_exhausted",
        `The ${name} caps spending at ${formatUsd(short.cap)}: ${used}. This request could cost ${formatUsd(short.amount)}.${alone} ${raise}${uncounted(ask)}`,
        {
          // A window without an end has no such moment: then open requests that end make room, or a higher
          // cap.
          ...(short.resetsAt === null
            ? { retryAfterS: NOT_SOON.retryAfterS }
            : untilEnd(short.resetsAt, now)),
          // Once the window has to end first, a client that repeats by itself only wastes its time.
          ...(short.spent + short.amount > short.cap ? { shouldRetry: false as const } : {}),
        },
      );
    }
  }
}

/** The key's own requests or tokens a minute. */
export function rateRefusal(short: RateShortfall, dashboardUrl: string): Refusal {
  const counted = short.what === "rpm_limit" ? "requests" : "estimated input plus output tokens";
  const raise = `Raise the limit in the dashboard: ${dashboardUrl}.`;
  if (short.retryAfterS === null) {
    return refuse(
      "rate_limited",
      `This request alone needs ${short.wanted} of the key's \`${short.what}\` of ${short.limit} ${counted} per minute, so waiting will not help. ${raise}`,
      NOT_SOON,
    );
  }
  return refuse(
    "rate_limited",
    `The key's \`${short.what}\` of ${short.limit} ${counted} per minute is reached. Retry in ${short.retryAfterS} s. ${raise}`,
    { retryAfterS: short.retryAfterS },
  );
}

/** The operator's limit, which is the same for every key: no owner can raise it. */
function freeRateRefusal({ limit, retryAfterS }: RateShortfall): Refusal {
  const message = `The Open Tier takes at most ${limit} requests per minute from a key (\`open_tier.rpm\`), and this key has sent that many.`;
  const raise =
    "Only the gateway's operator can raise this limit; for paid models, the key's own `rpm_limit` applies.";
  return retryAfterS === null
    ? refuse("rate_limited", `${message} ${raise}`, NOT_SOON)
    : refuse("rate_limited", `${message} Retry in ${retryAfterS} s. ${raise}`, { retryAfterS });
}

function sharers(owner: string): string {
  if (owner.startsWith("acct_")) return "all keys of the account";
  if (owner.startsWith("block_")) return "all keys without an account that are used from this network";
  return "all keys of the balance";
}

function balanceMessage(available: NanoUsd, ask: Ask, { amount, prompt, price }: Sized): string {
  const { plan, request } = ask;
  const fits = affordableOutput(available, prompt, request.choices, price);
  const advice =
    fits >= 1
      ? `Add credit, or set ${ceilingField(request)} to at most ${fits}${thinkingUnder(fits, request)}.`
      : "Add credit: the balance does not even cover the prompt.";
  const { id, routes } = plan.stops[0]!.model;
  const free =
    id === request.model && routes.some((route) => route.free) ? ` \`${id}:free\` needs no credit.` : "";
  return `The balance of ${formatUsd(available)} cannot cover this request, whose worst case is ${formatUsd(amount)}. Nothing was sent or charged. ${advice}${free}${uncounted(ask)}`;
}

const uncounted = ({ prompt }: Ask): string =>
  prompt.isSpent
    ? " The prompt is estimated at one token per byte, because too many refused requests of this balance were counted within the last minute."
    : "";

/**
 * Anthropic refuses a ceiling that the budget of thoughts would fill; one above the client's own is no part of
 * it.
 */
function thinkingUnder(ceiling: number, { surface, json, maxOutputTokens }: GenerationRequest): string {
  const budget = surface === "messages" ? asObject(json.thinking)?.budget_tokens : null;
  if (typeof budget !== "number" || budget < ceiling || budget >= maxOutputTokens!) return "";
  return budgetUnder(ceiling, budget) === null
    ? " and leave `thinking` out"
    : " and `thinking.budget_tokens` to less";
}

/** What the request's language calls its output ceiling. */
const ceilingField = ({ surface }: GenerationRequest): string =>
  surface === "responses" ? "max_output_tokens" : "max_tokens";

/**
 * Open requests may make room long before a window ends, but Anthropic's client would sleep until its end, for
 * days at worst.
 */
const untilEnd = (at: EpochMs, now: EpochMs): RefusalDetails => retryAfter(secondsUntil(at, now));

const secondsUntil = (at: EpochMs, now: EpochMs): number => Math.max(1, Math.ceil((at - now) / 1_000));
