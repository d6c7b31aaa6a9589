import { type GrantAnswer, GrantClaim } from "../ledger/grants.ts";
import type { KeyCounters } from "../ledger/key-counters.ts";
import { Reservation, type ReservationRequest } from "../ledger/reservation.ts";
import { type BalanceShortfall, type CapShortfall, isOnlyHeld, type Shortfall } from "../ledger/shortfall.ts";
import { answersWhole, type Candidate } from "../routing/candidate.ts";
import { withoutNativeFallbacks } from "../routing/native-fallbacks.ts";
import type { Plan } from "../routing/plan.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { EpochMs } from "../units/clock.ts";
import { StoreContended, StoreUnreachable } from "../units/errors/bookkeeping.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import type { AdmissionRequest } from "./admission-request.ts";
import type { GenerationDeps } from "./deps.ts";
import { Hold } from "./hold.ts";
import { type SizedRequest, size } from "./reservation-size.ts";
import { shortfallRefusal } from "./shortfall.ts";

/** Returned when the key or its budgets have changed while the request waited: it has to be checked again. */
export const KEY_CHANGED = "key changed";

/**
 * Sizes a request, and holds what it needs. Every limit must cover its worst case next to what is spent; what is
 * held at once may be less (generation/hold). The check and the take are one synchronous call of the ledger; only
 * loading what it looks at, and counting a prompt whose bound does not fit, may suspend, and both come before.
 */
export function admit(admission: AdmissionRequest, deps: AdmissionDeps): Admitted | Promise<Outcome> {
  const { promptBound, promptHasFiles } = admission.request;
  const sized = size(admission, promptHasFiles ? null : promptBound, deps);
  const taken = takeAtOnce(admission, sized, deps);
  return taken instanceof Reservation
    ? admitted(taken, admission, sized, deps)
    : admitSlowly(taken, admission, sized, deps);
}

async function admitSlowly(
  loading: Promise<KeyCounters> | null,
  admission: AdmissionRequest,
  sized: SizedRequest,
  deps: AdmissionDeps,
): Promise<Outcome> {
  await loading;
  const first = await take(admission, sized, deps);
  if (first instanceof Reservation) return admitted(first, admission, sized, deps);
  if (!isMoney(first)) return refusalOf(first, admission, sized, deps);
  // Bytes bound tokens from above by a factor of three or four, and files are not read: count before refusing
  // for money.
  const { promptBound, promptHasFiles } = admission.request;
  const tokens = (await admission.prompt.most()) ?? (promptHasFiles ? null : promptBound);
  const counted = size(admission, tokens, deps);
  const second = counted.worst < sized.worst ? await take(admission, counted, deps) : first;
  if (second instanceof Reservation) return admitted(second, admission, counted, deps);
  if (!isMoney(second)) return refusalOf(second, admission, counted, deps);
  let least: Sized = { request: admission, sized: counted, short: second };
  for (const modest of [withoutHostsFallbacks, withoutMoreExpensive]) {
    const request = modest(least.request, tokens, deps);
    if (request === null) continue;
    const sized = size(request, tokens, deps);
    const short = await take(request, sized, deps);
    if (short instanceof Reservation) return admitted(short, request, sized, deps);
    least = { request, sized, short };
    if (!isMoney(short)) break;
  }
  return refusalOf(least.short, least.request, least.sized, deps);
}

interface Sized {
  readonly request: AdmissionRequest;
  readonly sized: SizedRequest;
  readonly short: KnownShortfall;
}

/** The gateway goes on instead of the host, which costs one model at a time; null where no host would go on. */
function withoutHostsFallbacks(request: AdmissionRequest): AdmissionRequest | null {
  const { plan } = request;
  if (plan.candidates.every(({ nativeFallbacks }) => nativeFallbacks === undefined)) return null;
  return { ...request, plan: { ...plan, candidates: plan.candidates.map(withoutNativeFallbacks) } };
}

function admitted(
  reservation: Reservation,
  admission: AdmissionRequest,
  sized: SizedRequest,
  { ledger, expected }: AdmissionDeps,
): Admitted {
  const { plan, prompt, request } = admission;
  const { outputCeiling, heldOutput, longest } = sized;
  prompt.paid();
  const isNamed = request.maxOutputTokens !== null;
  const hold = new Hold(ledger, reservation, sized.prompt, heldOutput, longest, isNamed, expected.growth);
  // Before it stands in anybody's way: its body is let go once the answer has started.
  prompt.countLater(hold);
  return { hold, outputCeiling, plan };
}

/**
 * The same request without alternatives that could cost more than its first candidate; null where there
 * are none. Who can pay for the model that they named is not refused for what might take its place.
 */
function withoutMoreExpensive(
  request: AdmissionRequest,
  promptBound: number | null,
  deps: AdmissionDeps,
): AdmissionRequest | null {
  const { plan } = request;
  const [first, ...others] = plan.candidates;
  const mostOf = (candidates: readonly Candidate[]) =>
    size({ ...request, plan: { ...plan, candidates } }, promptBound, deps).worst;
  const alone = mostOf([first!]);
  const candidates = [first!, ...others.filter((other) => mostOf([first!, other]) <= alone)];
  if (candidates.length === plan.candidates.length) return null;
  const kept = new Set(candidates.map(({ model }) => model.id));
  const dropped = new Set(others.map(({ model }) => model.id).filter((id) => !kept.has(id)));
  const skipped = [...dropped].map((id) => `${id} (more expensive than what is left to spend)`);
  const auto = plan.auto && { skipped: [...plan.auto.skipped, ...skipped] };
  return { ...request, plan: { ...plan, candidates, auto } };
}

type AdmissionDeps = Pick<GenerationDeps, "ledger" | "clock" | "expected" | "health" | "catalog">;

export interface Admitted {
  readonly hold: Hold;
  /** Output tokens, of all choices together, that the worst case has. */
  readonly outputCeiling: number;
  /** As far as the hold covers it. */
  readonly plan: Plan;
}

type Outcome = Admitted | Refusal | typeof KEY_CHANGED;

/**
 * Null when a limit is short; a promise, which the caller must await, when something has to be loaded first.
 */
function takeAtOnce(
  admission: AdmissionRequest,
  sized: SizedRequest,
  deps: AdmissionDeps,
): Reservation | Promise<KeyCounters> | null {
  const at = deps.clock.now();
  const keyCounters = deps.ledger.counters.of(
    admission.key,
    admission.budgets,
    admission.allowances,
    at,
    admission.run,
    admission.tags,
  );
  if (keyCounters instanceof Promise) return keyCounters;
  const outcome = deps.ledger.admit(keyCounters, reservationRequest(admission, sized, at));
  return outcome instanceof Reservation ? outcome : null;
}

/** What is short once every node has said what it has left, or as far as that could be found out. */
async function take(
  admission: AdmissionRequest,
  sized: SizedRequest,
  deps: AdmissionDeps,
): Promise<Reservation | KnownShortfall> {
  const { ledger, clock } = deps;
  const { key, budgets, allowances, run, tags } = admission;
  const claim = new GrantClaim();
  let rereads = 0;
  let answer: GrantAnswer = "room";
  try {
    // Counters that took long to load may be yesterday's by now, and a grant may have gone to another request.
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const at = clock.now();
      const loading = ledger.counters.of(key, budgets, allowances, at, run, tags);
      if (loading instanceof Promise) {
        await loading;
        continue;
      }
      const request = reservationRequest(admission, sized, at);
      const outcome = ledger.admit(loading, request);
      if (outcome instanceof Reservation) return outcome;
      if (outcome.what === "key") {
        if (!(await ledger.isStillCurrent(request))) return outcome;
        // A round in which nothing changed for this request does not count.
        round -= 1;
        if (++rereads > MAX_REREADS) throw new StoreContended(`the key changed ${rereads} times meanwhile`);
        continue;
      }
      if (outcome.what !== "books") {
        // No other node can have room for what is more than the limit has left.
        if ("worst" in outcome && !isOnlyHeld(outcome)) return outcome;
        // Others may take each time what there was room for.
        if (answer !== "room" || round === MAX_ROUNDS - 1) return asItStands(outcome, answer);
      }
      const pending = ledger.replenish(loading, request, claim);
      if (pending === null) return asItStands(outcome as KnownShortfall, "short");
      answer = await pending;
      if (answer === "unanswered") throw new StoreUnreachable("parts of limits are not granted: no answer");
    }
    throw new StoreUnreachable("the lease, or a counter, was lost as often as it was regained");
  } finally {
    claim.release();
  }
}

const MAX_ROUNDS = 32;
/** Each is a read of the store, which another change has made old by the time it is done. */
const MAX_REREADS = 100;

type KnownShortfall = Exclude<Shortfall, { what: "books" }>;

const asItStands = (short: KnownShortfall, answer: GrantAnswer): KnownShortfall =>
  answer !== "short" && ("worst" in short || short.what === "allowance")
    ? { ...short, undecided: true }
    : short;

function reservationRequest(
  admission: AdmissionRequest,
  sized: SizedRequest,
  at: EpochMs,
): ReservationRequest {
  const { receipt, key, budgets, run, request, plan, allowances, settings } = admission;
  return {
    receipt,
    at,
    key,
    budgets,
    run,
    allowances,
    rpmLimit: key.rpmLimit,
    freeRpmLimit: plan.tier === "open" ? settings.openTierRpm : null,
    tpmLimit: key.tpmLimit,
    amount: sized.amount,
    worst: sized.worst,
    rateTokens: request.promptEstimate + sized.heldOutput,
    most: sized.most,
    promptTokens: request.promptEstimate,
    price: sized.price,
    about: {
      surface: request.surface,
      model: request.requestedModel,
      stream: request.stream,
      run: run?.name,
      tags: admission.tags ?? undefined,
      priceList: admission.priceList ?? undefined,
    },
  };
}

const refusalOf = (
  short: KnownShortfall,
  admission: AdmissionRequest,
  sized: SizedRequest,
  deps: AdmissionDeps,
): Refusal | typeof KEY_CHANGED =>
  short.what === "key" ? KEY_CHANGED : shortfallRefusal(short, admission, sized, deps.clock.now(), deps);

const isMoney = (short: KnownShortfall): short is BalanceShortfall | CapShortfall =>
  "worst" in short && short.what !== "calls";

/**
 * The ceiling to impose on hosts that answer whole, per choice; null for none. Their answer cannot be stopped
 * midway. If the client named no ceiling and there is plenty of room, the model's own ceiling is held;
 * otherwise the host gets the ceiling that is already held. Checking for room without taking it is not
 * enough: many requests at once would each find the same room.
 */
export function imposedCeiling(
  request: GenerationRequest,
  { hold, outputCeiling, plan }: Admitted,
): number | null {
  if (request.maxOutputTokens !== null) return null;
  if (request.stream && !plan.candidates.some(answersWhole)) return null;
  // What a stream needs is held step by step.
  const mayStream = request.stream && !plan.candidates.every(answersWhole);
  if (hold.coversLongest || (!mayStream && hold.coverLongest(PLENTY))) return null;
  return outputCeiling / request.choices;
}

/**
 * An answer that may become long leaves room for this many of its kind, so that other requests are not
 * refused.
 */
const PLENTY = 4;
