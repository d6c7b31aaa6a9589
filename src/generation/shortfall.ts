import { isFree } from "../catalog/availability.ts";
import type { Catalog, Model } from "../catalog/catalog.ts";
import { FREE_SUFFIX } from "../catalog/model-name.ts";
import { affordableOutput } from "../ledger/charge.ts";
import {
  type AllowanceShortfall,
  type BalanceShortfall,
  type CallsShortfall,
  type CapShortfall,
  isOnlyHeld,
  type RateShortfall,
  type Shortfall,
} from "../ledger/shortfall.ts";
import { NO_PRICE, policyAllows } from "../routing/route-filter.ts";
import { asObject } from "../surfaces/json/json.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { budgetUnder } from "../surfaces/vocabulary/reasoning.ts";
import { type EpochMs, secondsUntil } from "../units/clock.ts";
import { operatorAt } from "../units/contact.ts";
import {
  NEVER,
  NOT_SOON,
  type Refusal,
  type RefusalDetails,
  refuse,
  retryAfter,
} from "../units/errors/refusal.ts";
import { formatUsd, type NanoUsd } from "../units/usd.ts";
import type { AdmissionRequest } from "./admission-request.ts";
import type { GenerationDeps } from "./deps.ts";
import type { SizedRequest } from "./reservation-size.ts";

/** The refusal of a request for whose worst case, `sized`, a limit is short. */
export function shortfallRefusal(
  short: Exclude<Shortfall, { what: "key" | "books" }>,
  admission: AdmissionRequest,
  sized: SizedRequest,
  now: EpochMs,
  models: Models,
): Refusal {
  switch (short.what) {
    case "open_tier.rpm":
      return freeRateRefusal(short);
    case "rpm_limit":
      return rateRefusal(short, admission.settings.dashboardUrl);
    case "tpm_limit":
      return rateRefusal(short, admission.settings.dashboardUrl, shorterFor(short, admission));
    case "allowance":
      return allowanceRefusal(short, now);
    case "calls":
      return refuse("budget_exhausted", callsMessage(short), short.undecided ? UNDECIDED : NEVER);
    case "balance":
      return refuse("insufficient_credit", balanceMessage(short, admission, sized, models), {
        balance: short.available,
        lacking: Math.max(short.spent + short.worst - short.limit, short.amount - short.available) as NanoUsd,
        ...(short.undecided ? UNDECIDED : {}),
      });
    default:
      return refuse("budget_exhausted", capMessage(short, admission, sized), untilRoom(short, now));
  }
}

function allowanceRefusal({ limit, owner, resetsAt, undecided }: AllowanceShortfall, now: EpochMs): Refusal {
  const shared = `It is shared by ${sharers(owner)}, so a new key does not help, and neither does added credit.`;
  if (undecided) {
    return refuse(
      "free_quota_exceeded",
      `Open requests hold what is left of the Open Tier allowance of ${limit} requests per day. Failed ones give theirs back: retry in ${UNDECIDED_RETRY_S} s. ${shared}`,
      UNDECIDED,
    );
  }
  const retryAfterS = secondsUntil(resetsAt, now);
  return refuse(
    "free_quota_exceeded",
    `The Open Tier allowance of ${limit} requests per day is spent. It resets at 00:00 UTC, in ${retryAfterS} s. ${shared}`,
    { retryAfterS, shouldRetry: false },
  );
}

/** Other nodes have said by then what they have left. */
const UNDECIDED_RETRY_S = 2;
const UNDECIDED: RefusalDetails = { retryAfterS: UNDECIDED_RETRY_S };

/** The longest answer that fits now is named even where waiting helps: who cannot wait may shorten it. */
function capMessage(short: CapShortfall, admission: AdmissionRequest, sized: SizedRequest): string {
  const { limit, spent, held, worst } = short;
  const { what } = short;
  const used = `${formatUsd(spent)} is used, and ${formatUsd(held)} is held by open requests`;
  const alone = worst > limit ? " This request alone is above the cap, so waiting will not help." : "";
  const wait = isOnlyHeld(short)
    ? ` Open requests give back what they do not use: retry in ${HELD_RETRY_S} s.`
    : "";
  const fits = outputThatFits(short, admission, sized);
  const lower = fits >= 1 ? lowered(fits, admission.request) : null;
  const raise =
    what === "run" ? ANOTHER_RUN : `raise the cap in the dashboard: ${admission.settings.dashboardUrl}`;
  const advice = lower === null ? raise : `${lower}, or ${raise}`;
  return `The ${capName(short)} caps spending at ${formatUsd(limit)}: ${used}. This request could cost ${formatUsd(worst)}.${alone}${wait} ${capital(advice)}.${uncounted(admission)}`;
}

/** As a sentence names the limit after "the". */
export const capName = ({ what, name, of }: CapShortfall): string => {
  if (what !== "budget" && what !== "run") return `key's \`${what}\``;
  return of === undefined ? `${what} \`${name}\`` : `${what} \`${name}\` for \`${of.tag}=${of.value}\``;
};

const callsMessage = ({ run, limit, spent, held }: CallsShortfall): string =>
  `The run \`${run}\` may have ${limit === 1 ? "1 call" : `${limit} calls`}: ${spent} used, ${held} open. ${capital(ANOTHER_RUN)}.`;

const ANOTHER_RUN = "start a new run, or have the owner raise this one's limits: PATCH /v1/runs/{id}";

/** Once the window has to end first, a client that repeats by itself only wastes its time. */
function untilRoom(short: CapShortfall, now: EpochMs): RefusalDetails {
  if (isOnlyHeld(short)) return { retryAfterS: HELD_RETRY_S };
  if (short.what === "run") return NEVER;
  // Without an end there is no such moment: only a higher cap makes room.
  return short.resetsAt === null ? NOT_SOON : { ...untilEnd(short.resetsAt, now), shouldRetry: false };
}

/** Requests end within seconds, and clients that wait spread out by themselves. */
const HELD_RETRY_S = 5;

/** What makes a request fit that needs more tokens by itself than a minute has; null where nothing does. */
function shorterFor({ limit }: RateShortfall, { request }: AdmissionRequest): string | null {
  const fits = Math.floor((limit - request.promptEstimate) / request.choices);
  return fits >= 1 ? lowered(fits, request) : null;
}

/** The key's own requests or tokens a minute. */
export function rateRefusal(
  short: RateShortfall,
  dashboardUrl: string,
  shorter: string | null = null,
): Refusal {
  const counted = short.what === "rpm_limit" ? "requests" : "estimated input plus output tokens";
  const where = `the limit in the dashboard: ${dashboardUrl}.`;
  const raise =
    shorter === null || short.retryAfterS !== null
      ? `Raise ${where}`
      : `${capital(shorter)}, or raise ${where}`;
  if (short.retryAfterS === null) {
    return refuse(
      "rate_limited",
      `This request alone needs ${short.requested} of the key's \`${short.what}\` of ${short.limit} ${counted} per minute, so waiting will not help. ${raise}`,
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

function balanceMessage(
  short: BalanceShortfall,
  admission: AdmissionRequest,
  sized: SizedRequest,
  models: Models,
): string {
  const { plan, request } = admission;
  const { available, held, worst } = short;
  const fits = affordableOutput(available, sized.prompt, request.choices, sized.rates);
  // A node of several does not know the whole credit: what others hold, it cannot tell from what is spent.
  const isHeld = held > 0 && isOnlyHeld(short);
  const balance = `The balance of ${formatUsd(available)}${held > 0 ? `, with ${formatUsd(held)} more held by open requests,` : ""}`;
  const wait = isHeld ? "Wait until open requests end, which give back what they do not use; or add" : "Add";
  const advice =
    fits >= 1
      ? `${wait} credit, or ${lowered(fits, request)}.`
      : isHeld
        ? `${wait} credit.`
        : "Add credit: the balance does not even cover the prompt.";
  const free = freeInstead(plan.candidates[0]!.model, admission, models);
  return `${balance} cannot cover this request, whose worst case is ${formatUsd(worst)}. Nothing was sent or charged. ${advice} ${whereCredit(admission)}${free}${uncounted(admission)}`;
}

/** Who adds credit to what: the reader may be an agent that has to ask a person. */
const whereCredit = ({ key, settings: { contact, dashboardUrl, sellsCredit } }: AdmissionRequest): string =>
  sellsCredit
    ? `Credit of balance \`${key.balanceId}\` is paid for at ${dashboardUrl}, or added by ${operatorAt(contact)}.`
    : `Credit is added to balance \`${key.balanceId}\` by ${operatorAt(contact)}; its owner sees it at ${dashboardUrl}.`;

/** The same model where it is free, else any that is. */
function freeInstead(model: Model, { key }: AdmissionRequest, { catalog, health }: Models): string {
  const isAllowed = ({ id }: Model) =>
    key.allowedModels === null ||
    key.allowedModels.some((one) => one === id || one === `${id}${FREE_SUFFIX}`);
  const allows = policyAllows(key.policy);
  const isPermitted = ({ routes }: Model) =>
    routes.some((route) => health.verifiedFree(route) && allows(route, NO_PRICE));
  const free = [model, ...catalog().models.values()].find(
    (one) => isFree(one, health) && isAllowed(one) && isPermitted(one),
  );
  return free === undefined ? "" : ` \`${free.id}${FREE_SUFFIX}\` needs no credit.`;
}

/** What is served, to look for a model that costs nothing. */
interface Models {
  catalog(): Pick<Catalog, "models">;
  readonly health: Pick<GenerationDeps["health"], "verifiedFree">;
}

/** The largest ceiling with which the request would be admitted now; 0 where not even its prompt fits. */
const outputThatFits = (
  { limit, spent, held }: CapShortfall,
  { request }: AdmissionRequest,
  { prompt, rates }: SizedRequest,
): number => affordableOutput((limit - spent - held) as NanoUsd, prompt, request.choices, rates);

const lowered = (ceiling: number, request: GenerationRequest): string =>
  `set ${ceilingField(request)} to at most ${ceiling}${thinkingUnder(ceiling, request)}`;

const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1);

const uncounted = ({ prompt }: AdmissionRequest): string =>
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

/** Anthropic's client would sleep until the window's end, for days at worst. */
const untilEnd = (at: EpochMs, now: EpochMs): RefusalDetails => retryAfter(secondsUntil(at, now));
