import type { Candidate } from "../routing/candidate.ts";
import { readHostError } from "../surfaces/host-error.ts";
import type { Clock } from "../units/clock.ts";
import type { HostFailure, Rejected } from "./attempt-outcome.ts";
import type { HostReply } from "./transport.ts";

/** Whose fault an answer is that is not a 2xx, by its status and its body: the request's, or the host's. */
export function judgeStatus(
  reply: Pick<HostReply, "status" | "headers">,
  body: Uint8Array,
  candidate: Candidate,
  clock: Clock,
): Rejected | HostFailure {
  const { status } = reply;
  const error = readHostError(status, body);
  const isClients = status >= 400 && status <= 499 && !HOST_FAILURES.has(status);
  if (isClients && error.blames === "request") return { kind: "rejected", candidate, status, error };
  const ofAccount = error.blames === "account";
  return {
    kind: "refused",
    status,
    message: `status ${status}: ${error.kept}`,
    ofAccount,
    wholeHost: ofAccount || WHOLE_HOST_FAILURES.has(status),
    certain: !(isClients || DOUBTFUL_STATUSES.has(status)),
    // Fewer at once do not fill an account.
    overloaded: !ofAccount && OVERLOAD_STATUSES.has(status),
    restMs: REST_STATUSES.has(status) ? (retryAfterMs(reply, clock) ?? error.restMs) : null,
  };
}

/** Which models may follow is the host's own list: others are refused, whatever the request is. */
export function refusesFallbacks({ candidate: { nativeFallbacks }, status, error }: Rejected): boolean {
  if (nativeFallbacks === undefined || status !== 400) return false;
  const text = `${error.param ?? ""} ${error.message}`;
  return /fallback/i.test(text) || nativeFallbacks.some(({ route }) => text.includes(route.model));
}

/**
 * Statuses by which a host fails: its own trouble, or the gateway's standing with it, not the client's
 * request. Groq's 498 is a want of capacity, its 499 a request that it cancelled. 410 is a model that the host
 * has given up.
 */
const HOST_FAILURES = new Set([401, 402, 403, 404, 405, 407, 408, 409, 410, 421, 425, 429, 498, 499]);
/** Statuses that concern the whole host, whatever the model. */
const WHOLE_HOST_FAILURES = new Set([401, 402, 407]);
/** Statuses by which a host may speak of the request alone, or of how long it takes. */
const DOUBTFUL_STATUSES = new Set([403, 404, 405, 408, 409, 410, 421, 425, 499, 504, 524]);
/** Statuses that say: fewer at once. Anthropic's 529 is "overloaded". */
const OVERLOAD_STATUSES = new Set([408, 429, 498, 503, 504, 529]);
/** Statuses whose `Retry-After` is obeyed. */
const REST_STATUSES = new Set([429, 503]);

/**
 * Seconds or a date, as RFC 9110 has it, or OpenAI's and Azure's milliseconds; null when the host named none.
 */
function retryAfterMs({ headers }: Pick<HostReply, "headers">, clock: Clock): number | null {
  const exact = headers.get("retry-after-ms");
  if (exact !== undefined && NUMBER.test(exact)) return Math.ceil(Number(exact));
  const text = headers.get("retry-after");
  if (text === undefined) return null;
  const ms = NUMBER.test(text) ? Math.ceil(Number(text) * 1_000) : Date.parse(text) - clock.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/** Some hosts send fractions, which a date parser takes for a month and a day. */
const NUMBER = /^\d{1,9}(\.\d{1,9})?$/;
