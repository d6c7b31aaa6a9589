import type { Catalog } from "../catalog/catalog.ts";
import { isSession } from "../customers/accounts/secret.ts";
import type { Key } from "../customers/keys/key.ts";
import { isRecoverySecret, isShownPrefix } from "../customers/keys/secret.ts";
import type { Rejected } from "../hosts/attempt-outcome.ts";
import type { FailoverOutcome } from "../hosts/failover.ts";
import type { UnpaidRequests } from "../ledger/limits/unpaid-allowance.ts";
import type { Settled } from "../ledger/reservation.ts";
import { alternativesSentence, workingAlternatives } from "../routing/alternatives.ts";
import type { RouteState } from "../routing/candidate.ts";
import { soonestMs } from "../routing/candidate-order.ts";
import type { Plan } from "../routing/plan.ts";
import { contextLengths } from "../surfaces/context-lengths.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import { type Refusal, refuse, retryAfter, sentence } from "../units/errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import { formatUsd } from "../units/usd.ts";
import type { GenerationCall } from "./answer.ts";

/**
 * The sentences with which generation requests are refused, foremost why no host answered. Sentences about money
 * and rates are in ./shortfall.
 */
export function noAnswer(
  outcome: Exclude<FailoverOutcome, { kind: "opened" | "answered" | "abandoned" }>,
  unserved: UnservedRequest,
): Refusal {
  switch (outcome.kind) {
    case "untranslatable":
      return outcome.refusal;
    case "rejected":
      return rejection(outcome, unserved.request);
    case "crowded":
      return crowded(unserved.request, unserved.plan, unserved.chance);
    case "exhausted":
      return exhaustion(outcome, unserved);
  }
}

/** A request that was planned and could not be served. */
interface UnservedRequest {
  readonly request: GenerationRequest;
  readonly plan: Plan;
  readonly key: Key;
  readonly catalog: Catalog;
  readonly routeState: RouteState;
  readonly chance: () => number;
}

/** Nothing was tried or charged: the gateway sheds what its hosts cannot take; streams in flight continue. */
export function crowded(request: GenerationRequest, plan: Plan, chance: () => number): Refusal {
  const retryAfterS = 1 + Math.floor(chance() * MAX_RETRY_S);
  const code = plan.tier === "open" ? "no_free_route" : plan.auto ? "auto_unresolvable" : "model_unavailable";
  return refuse(
    code,
    `Every host of ${request.model} is at its limit of concurrent requests; 0 hosts were tried, and nothing was charged. Retry in ${retryAfterS} s.`,
    { retryAfterS, shouldRetry: true },
  );
}

/** Spread out, so that clients shed together do not come back together. */
const MAX_RETRY_S = 5;

function rejection({ candidate, error }: Rejected, request: GenerationRequest): Refusal {
  const { model } = candidate;
  const details = error.param === null ? {} : { param: error.param };
  if (error.contextTooLong) {
    return refuse(
      "context_too_long",
      `The prompt is too long for ${model.id}: ${lengthsOf(error.message, model.contextLength, request)} Shorten it or use a model with a larger context. The host says: ${error.message}`,
      details,
    );
  }
  return refuse("invalid_request", `The host of ${model.id} refused the request: ${error.message}`, details);
}

/** The host's own figures where it says them: the gateway's may well fit, and contradict the refusal. */
function lengthsOf(message: string, contextLength: number, { promptEstimate }: GenerationRequest): string {
  const { tokens, most } = contextLengths(message) ?? { tokens: null, most: contextLength };
  if (tokens !== null)
    return `${tokens} tokens > ${most} maximum by its host's count; this model's maximum context length is ${most} tokens there.`;
  const counted = promptEstimate > most ? "it has" : "its host counts more than the gateway, which estimates";
  return `${counted} about ${promptEstimate} tokens, and this model's maximum context length is ${most} tokens.`;
}

function exhaustion(
  { tries, timedOut, waitedMs }: Extract<FailoverOutcome, { kind: "exhausted" }>,
  { request, plan, key, catalog, routeState }: UnservedRequest,
): Refusal {
  const { model, surface } = request;
  const tried = `${tries.length} ${tries.length === 1 ? "host was" : "hosts were"} tried`;
  if (timedOut) {
    const waited = waitedMs < 1_000 ? `${Math.round(waitedMs)} ms` : `${Math.round(waitedMs / 100) / 10} s`;
    return refuse(
      "request_timeout",
      `No host produced a first token for ${model} within ${waited}; ${tried}. Retry, or choose a faster model.`,
    );
  }
  if (plan.tier === "open") {
    return refuse(
      "no_free_route",
      `No free route of ${model} answered; ${tried}. The request was not switched to a paid model, and nothing was charged. Retry later, or name a paid model; adding credit does not help.`,
    );
  }
  const restMs = soonestMs(plan.candidates, routeState);
  const rest = restMs === 0 ? {} : retryAfter(Math.ceil(restMs / 1_000));
  if (plan.auto !== null) {
    const models = [...new Set(tries.map((one) => one.model))].join(", ");
    const { skipped } = plan.auto;
    const others = skipped.length === 0 ? "" : ` Skipped: ${skipped.join(", ")}.`;
    return refuse(
      "auto_unresolvable",
      `Every candidate of ${model} failed (${models}); ${tried}.${others} Retry later, or name a model directly.`,
      rest,
    );
  }
  const { allowedModels, policy = null } = key;
  const others = workingAlternatives(model, { surface, allowedModels, policy, catalog, routeState });
  return refuse(
    "model_unavailable",
    `All hosts of ${model} failed: ${tried}. ${alternativesSentence(others)}`,
    rest,
  );
}

/** A host broke off in the middle of its answer. */
export function upstreamError(message: string, { charged, writtenOff }: Settled): Refusal {
  const money =
    writtenOff > 0 || charged === 0
      ? "Nothing was charged."
      : `The tokens delivered cost ${formatUsd(charged)}.`;
  return refuse(
    "upstream_error",
    `The host's answer broke off while it was streaming: ${sentence(message)} ${money} Send the request again.`,
  );
}

/**
 * Decides by its form alone what stands in the place of a key, where the limits of a key apply: whether it
 * is valid is not checked.
 */
export function notAKey(secret: string, dashboardUrl: string): Refusal {
  const what = ownersSecret(secret);
  if (what !== null) {
    return refuse(
      "invalid_api_key",
      `This is ${what}, and text is generated with an API key. Keys begin with \`or-live-\` and are created with it in the dashboard (${dashboardUrl}) or with POST /v1/keys.`,
    );
  }
  const part = KEY_ID.test(secret)
    ? "the id of a key"
    : isShownPrefix(secret)
      ? "the beginning of a key"
      : null;
  if (part === null) return invalidKey(dashboardUrl);
  return refuse(
    "invalid_api_key",
    `This is ${part}, not the key, which was shown once when it was created. A lost key is replaced with its balance's recovery secret, or by a new one: in the dashboard (${dashboardUrl}) or with POST /v1/keys. Keys have 32 characters after \`or-live-\`.`,
  );
}

/** A recovery link is the dashboard's address with the secret behind `#recover=`. */
function ownersSecret(secret: string): string | null {
  if (isRecoverySecret(secret)) return "a recovery secret";
  if (isRecoverySecret(secret.slice(secret.lastIndexOf("=") + 1))) return "a recovery link";
  return isSession(secret) ? "a session" : null;
}

const KEY_ID = /^key_\w+$/;

/** Unknown, revoked and expired keys have one answer. LiteLLM knows a wrong key by OpenAI's words for it. */
export const invalidKey = (dashboardUrl: string): Refusal =>
  refuse(
    "invalid_api_key",
    `Incorrect API key provided: it is unknown, revoked or expired. Keys begin with \`or-live-\` and are created in the dashboard (${dashboardUrl}) or with POST /v1/keys.`,
  );

/** Unknown, replaced and deleted with its balance: one answer. */
export const invalidRecovery = (dashboardUrl: string): Refusal =>
  refuse(
    "invalid_api_key",
    `Incorrect recovery secret provided: it is unknown or has been replaced. Send the newest one, or sign in (${dashboardUrl}) if an account has the balance. API keys begin with \`or-live-\`; new ones come from the dashboard or POST /v1/keys.`,
  );

/** A routing override where there is no choice: the Open Tier uses whatever free routes there are. */
export const noOverride = (param: string): Refusal =>
  refuse(
    "invalid_request",
    `\`${param}\` is a routing override, which the Open Tier refuses. Remove it, or name a paid model.`,
    { param },
  );

export const tooMuchUnpaid = (retryAfterS: number): Refusal =>
  refuse(
    "rate_limited",
    `Requests without credit from your balance, your network or all networks have reached what is looked at for nothing within a minute. Add credit, or retry in ${retryAfterS} s.`,
    { retryAfterS },
  );

/** The refusal of a request whose balance is known to have no credit, and has sent too many; null: go on. */
export function unpaidRefusal(
  balance: BalanceId,
  call: GenerationCall,
  unpaidRequests: Pick<UnpaidRequests, "waitS">,
): Refusal | null {
  const request = { bytes: call.body.length, writes: false };
  const waitS = unpaidRequests.waitS(balance, () => call.blocks(), request);
  return waitS === null ? null : tooMuchUnpaid(waitS);
}
