import type { Model } from "../catalog/catalog.ts";
import { NOT_SOON, type Refusal, refuse } from "../errors/refusal.ts";
import type { Budget, Key } from "../keys/key.ts";
import { affordableOutput, dearest, type PromptSize, worstCase } from "../ledger/charge.ts";
import {
  type Allowance,
  BOOKS_AWAY,
  type Lane,
  type Ledger,
  type RateShortfall,
  Reservation,
  type Shortfall,
  type Want,
} from "../ledger/ledger.ts";
import type { Plan } from "../routing/plan.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { Clock, EpochMs } from "../units/clock.ts";
import type { ReceiptId } from "../units/id.ts";
import { formatUsd, type NanoUsd, ZERO_USD } from "../units/usd.ts";
import type { PromptCount } from "./prompt-count.ts";

/**
 * Sizes the worst case of a request and holds it. The check and the take are one synchronous call of the ledger;
 * only loading what it looks at, and counting a prompt whose bound does not fit, may suspend, and both come before.
 */
export function admit(ask: Ask, desk: Desk): Admitted | Promise<Admitted | Refusal> {
  const { promptBound, promptHasFiles } = ask.request;
  const sized = size(ask, desk.defaultMaxOutputTokens, promptHasFiles ? null : promptBound);
  const taken = takeAtOnce(ask, sized, desk);
  return taken instanceof Reservation ? admitted(taken, ask, sized) : admitSlowly(taken, ask, sized, desk);
}

async function admitSlowly(
  loading: Promise<Lane> | null,
  ask: Ask,
  sized: Sized,
  desk: Desk,
): Promise<Admitted | Refusal> {
  await loading;
  const first = await take(ask, sized, desk);
  if (first instanceof Reservation) return admitted(first, ask, sized);
  if (!isMoney(first)) return explain(first, ask, sized, desk);
  // Bytes bound tokens from above by a factor of three or four, and files are not read: count before refusing for money.
  const tokens = await countedPrompt(ask);
  if (tokens === null) return explain(first, ask, sized, desk);
  const counted = size(ask, desk.defaultMaxOutputTokens, tokens);
  const second = counted.amount < sized.amount ? await take(ask, counted, desk) : first;
  return second instanceof Reservation ? admitted(second, ask, counted) : explain(second, ask, counted, desk);
}

function admitted(reservation: Reservation, { prompt }: Ask, { outputCeiling }: Sized): Admitted {
  prompt.paid();
  return { reservation, outputCeiling };
}

/** The most that the prompt comes to, once it is counted; null when that tells no more than its bound. */
async function countedPrompt({ request, prompt }: Ask): Promise<number | null> {
  const { promptBound, promptHasFiles, promptUnseen, mediaTokens } = request;
  if (promptUnseen) return null;
  const text = await prompt.text();
  if (text === null) return null;
  const files = promptHasFiles ? await prompt.files() : 0;
  return files === null ? null : Math.min(promptBound, Math.ceil(text * COUNT_MARGIN) + mediaTokens) + files;
}

/** Other vocabularies than the one that was counted with need up to half as many tokens again. */
const COUNT_MARGIN = 1.5;

/** One request at the desk. */
export interface Ask {
  readonly receipt: ReceiptId;
  readonly key: Key;
  readonly budgets: readonly Budget[];
  readonly request: GenerationRequest;
  readonly prompt: PromptCount;
  readonly plan: Plan;
  /** Open Tier allowances that it draws on; empty on the paid tier. */
  readonly allowances: readonly Allowance[];
}

export interface Desk {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly dashboardUrl: string;
  readonly defaultMaxOutputTokens: number;
  readonly openTierRpm: number | null;
}

export interface Admitted {
  readonly reservation: Reservation;
  /** Output tokens, of all choices together, that the hold covers. */
  readonly outputCeiling: number;
}

interface Sized {
  readonly amount: NanoUsd;
  readonly outputCeiling: number;
  readonly prompt: PromptSize;
}

/** A prompt whose bound is null is held at all that the model reads at once, which bounds every prompt. */
function size({ plan, request }: Ask, defaultCeiling: number, promptBound: number | null): Sized {
  const longest = longestAnswer(plan);
  const ceiling = Math.min(request.maxOutputTokens ?? defaultCeiling, longest);
  const outputCeiling = ceiling * request.choices;
  const widest = widestModel(plan).contextLength;
  const bound = promptBound === null || request.promptUnseen ? widest : Math.min(promptBound, widest);
  const prompt = { bound, cachedFor1h: request.promptCachedFor1h };
  if (plan.tier === "open") return { amount: ZERO_USD, outputCeiling, prompt };
  return { amount: worstCase(prompt, outputCeiling, dearestOf(plan)), outputCeiling, prompt };
}

/** Output tokens of one choice, of the plan's most talkative model. */
export function longestAnswer({ stops }: Plan): number {
  let longest = 0;
  for (const { model } of stops) longest = Math.max(longest, model.maxOutputTokens);
  return longest;
}

function widestModel({ stops }: Plan): Model {
  let widest = stops[0]!.model;
  for (const { model } of stops) if (model.contextLength > widest.contextLength) widest = model;
  return widest;
}

/** Null where something is short; a promise, which somebody must wait for, where something has to be loaded first. */
function takeAtOnce(ask: Ask, sized: Sized, desk: Desk): Reservation | Promise<Lane> | null {
  const at = desk.clock.now();
  const lane = desk.ledger.lane(ask.key, ask.budgets, ask.allowances, at);
  if (lane instanceof Promise) return lane;
  const outcome = desk.ledger.admit(lane, wantOf(ask, sized, at, desk));
  return outcome instanceof Reservation ? outcome : null;
}

async function take(ask: Ask, sized: Sized, desk: Desk): Promise<Reservation | Shortfall> {
  const { ledger, clock } = desk;
  const { key, budgets, allowances } = ask;
  // A lane that arrives late may be yesterday's by then, and a grant may have gone to another request.
  let isFinal = false;
  for (let round = 0; round < MAX_LANE_ROUNDS; round++) {
    const at = clock.now();
    const loading = ledger.lane(key, budgets, allowances, at);
    if (loading instanceof Promise) {
      await loading;
      continue;
    }
    const want = wantOf(ask, sized, at, desk);
    const outcome = ledger.admit(loading, want);
    if (outcome instanceof Reservation || outcome.what === "books" || isFinal) return outcome;
    const answer = ledger.replenish(loading, want);
    if (answer === null) return outcome;
    const heard = await answer;
    if (heard === "unanswered") return BOOKS_AWAY;
    // Once more, to say what is short as it stands now.
    isFinal = heard === "short";
  }
  throw new Error("lanes and grants kept changing while a request was admitted");
}

const MAX_LANE_ROUNDS = 32;

function wantOf(ask: Ask, sized: Sized, at: EpochMs, { openTierRpm }: Desk): Want {
  const { receipt, key, budgets, request, plan, allowances } = ask;
  return {
    receipt,
    at,
    key,
    budgets,
    allowances,
    rpmLimit: key.rpmLimit,
    freeRpmLimit: plan.tier === "open" ? openTierRpm : null,
    tpmLimit: key.tpmLimit,
    amount: sized.amount,
    rateTokens: request.promptEstimate + sized.outputCeiling,
    promptTokens: request.promptEstimate,
    price: dearestOf(plan),
    about: { surface: request.surface, model: request.model, stream: request.stream },
  };
}

const dearestOf = ({ stops }: Plan) =>
  stops.length === 1 ? stops[0]!.price : dearest(stops.map(({ price }) => price));

const isMoney = (short: Shortfall): boolean => !("limit" in short) && short.what !== "books";

function explain(short: Shortfall, ask: Ask, sized: Sized, desk: Desk): Refusal {
  switch (short.what) {
    case "open_tier.rpm":
      return freeRateRefusal(short);
    case "rpm_limit":
    case "tpm_limit":
      return rateRefusal(short, desk.dashboardUrl);
    case "allowance": {
      const retryAfterS = secondsUntil(short.resetsAt, desk.clock.now());
      return refuse(
        "free_quota_exceeded",
        `The Open Tier allowance of ${short.limit} requests a day is spent. It resets at 00:00 UTC, in ${retryAfterS} s. It is shared by ${sharers(short.owner)}, so a new key does not help, and neither does added credit.`,
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
      const used = `${formatUsd(short.spent)} is used and ${formatUsd(short.held)} is held by open requests`;
      const alone =
        short.amount > short.cap ? " This request alone is above the cap, so waiting will not help." : "";
      const now = desk.clock.now();
      return refuse(
        "budget_exhausted",
        `The ${name} has a cap of ${formatUsd(short.cap)}, of which ${used}; this request could cost ${formatUsd(short.amount)}.${alone}${uncounted(ask)}`,
        {
          // A window without an end has no such moment: then open requests that end make room, or a higher cap.
          retryAfterS: short.resetsAt === null ? NOT_SOON.retryAfterS : secondsUntil(short.resetsAt, now),
          // Once the window has to end first, a client that repeats by itself only wastes its time.
          ...(short.spent + short.amount > short.cap ? { shouldRetry: false as const } : {}),
        },
      );
    }
  }
}

export function rateRefusal(short: RateShortfall, dashboardUrl: string): Refusal {
  const counted = short.what === "rpm_limit" ? "requests" : "estimated input plus output tokens";
  const raise = `Raise it in the dashboard: ${dashboardUrl}.`;
  if (short.retryAfterS === null) {
    return refuse(
      "rate_limited",
      `This request alone needs ${short.wanted} of \`${short.what}\`, which is ${short.limit} ${counted} per minute for this key; waiting will not help. ${raise}`,
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
  const message = `The Open Tier takes at most ${limit} requests per minute from a key (\`open_tier.rpm\`), and this one has sent them.`;
  const raise = "Only the gateway's operator can raise it; paid models have the key's own `rpm_limit`.";
  return retryAfterS === null
    ? refuse("rate_limited", `${message} ${raise}`, NOT_SOON)
    : refuse("rate_limited", `${message} Retry in ${retryAfterS} s. ${raise}`, { retryAfterS });
}

function sharers(owner: string): string {
  if (owner.startsWith("acct_")) return "all keys of the account";
  if (owner.startsWith("block_")) return "all keys without an account that are used from this network";
  return "all keys of the balance";
}

function balanceMessage(available: NanoUsd, ask: Ask, { amount, prompt }: Sized): string {
  const { plan, request } = ask;
  const fits = affordableOutput(available, prompt, request.choices, dearestOf(plan));
  const advice =
    fits >= 1
      ? `Add credit, or set ${ceilingField(request)} to at most ${fits}.`
      : "Add credit: the balance does not cover the prompt alone.";
  const { id, routes } = plan.stops[0]!.model;
  const free =
    id === request.model && routes.some((route) => route.free) ? ` \`${id}:free\` needs none.` : "";
  return `The balance of ${formatUsd(available)} cannot cover this request, whose worst case is ${formatUsd(amount)}. Nothing was sent or charged. ${advice}${free}${uncounted(ask)}`;
}

const uncounted = ({ prompt }: Ask): string =>
  prompt.isSpent
    ? " The prompt is taken at a token a byte: within a minute, too many were counted for requests of this balance that were then refused."
    : "";

/** What the request's language calls its output ceiling. */
const ceilingField = ({ surface }: GenerationRequest): string =>
  surface === "responses" ? "max_output_tokens" : "max_tokens";

/** The books cannot be written, or asked: serving would be acknowledging what may be lost. */
export const bookkeepingDown = (): Refusal =>
  refuse(
    "internal_error",
    "The gateway cannot record requests right now, so none is served. Retry after a few seconds.",
    {
      retryAfterS: BOOKKEEPING_RETRY_S,
    },
  );

const BOOKKEEPING_RETRY_S = 5;

const secondsUntil = (at: EpochMs, now: EpochMs): number => Math.max(1, Math.ceil((at - now) / 1_000));

/**
 * Refuses a prompt whose text cannot fit, naming its exact count; counts only where the text's bytes leave a doubt. One that
 * nobody counts now is left to the host's judgement.
 */
export function checkContext(
  request: GenerationRequest,
  prompt: PromptCount,
  plan: Plan,
): null | Promise<Refusal | null> {
  const model = widestModel(plan);
  const textBytes = request.promptBound - request.mediaTokens;
  return textBytes <= model.contextLength ? null : compareCount(request, prompt, model);
}

async function compareCount(
  request: GenerationRequest,
  prompt: PromptCount,
  { id, contextLength: widest }: Model,
): Promise<Refusal | null> {
  const tokens = await prompt.text();
  if (tokens === null || tokens <= widest) return null;
  return refuse(
    "context_too_long",
    `The prompt has ${tokens} tokens; ${id} takes at most ${widest}. Shorten it by ${tokens - widest} tokens or use a model with a larger context.`,
    { param: request.surface === "responses" ? "input" : "messages" },
  );
}
