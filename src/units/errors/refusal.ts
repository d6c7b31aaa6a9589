import { redacted } from "../redacted.ts";
import { decimalUsd, type NanoUsd } from "../usd.ts";
import { ERRORS, type ErrorCode, type ErrorType } from "./codes.ts";

/**
 * A request that is answered with an error of the specification. Refusals are expected, so they are returned,
 * never thrown; `refused` tells one from the value that was hoped for.
 */
export class Refusal {
  constructor(
    readonly code: ErrorCode,
    /** A sentence for a person, without the link: the edge appends it. */
    readonly message: string,
    readonly details: RefusalDetails = {},
  ) {}

  get status(): number {
    return this.details.status ?? ERRORS[this.code].status;
  }
}

export interface RefusalDetails {
  /** In the place of the code's own, for clients that go on by this one; 403 for an operator whose role is too low. */
  readonly status?: 403 | 426;
  /** With 426: what the client should speak instead. */
  readonly upgrade?: "HTTP/1.1" | "websocket";
  /** The request field at fault, as the client spelt it. */
  readonly param?: string;
  /** Whole seconds, for the header `Retry-After`; null: no time helps, so the header is left out. */
  readonly retryAfterS?: number | null;
  /**
   * Tells official clients whether to repeat the request by themselves; false where waiting a little does not help.
   * Where it is left out, a header stops them from repeating what the table of errors calls not retryable.
   */
  readonly shouldRetry?: boolean;
  /** The body was left in the client's socket, so the connection cannot take another request. */
  readonly bodyUnread?: true;
  /** What follows on the connection cannot be read. */
  readonly closing?: true;
  /** What Anthropic's clients read in `error.details`, to help themselves. */
  readonly hint?: Readonly<Record<string, unknown>>;
  /** The available balance, for the header `x-gateway-balance-usd`. */
  readonly balance?: NanoUsd;
  /** With so much more credit the request would be admitted. */
  readonly lacking?: NanoUsd;
  /** What can be paid for it, for the header `payment-required`. */
  readonly paymentRequired?: string;
}

/**
 * For a 429 or 5xx that waiting alone does not fix, such as a limit that is smaller than the request:
 * it stops clients that repeat by themselves, and slows the others down.
 */
export const NOT_SOON = { retryAfterS: 60, shouldRetry: false } as const satisfies RefusalDetails;

/**
 * For a 429 or 5xx that time fixes. Official clients keep a `Retry-After` of up to a minute, and come
 * back at once instead of waiting for a longer one: then it stops them.
 */
export const retryAfter = (seconds: number): RefusalDetails =>
  seconds > 60 ? { retryAfterS: seconds, shouldRetry: false } : { retryAfterS: seconds };

/** For a 429 that no time fixes. Codex ends at once without a `Retry-After`, and waits for as long as one says. */
export const NEVER = { retryAfterS: null, shouldRetry: false } as const satisfies RefusalDetails;

export const refused = (value: unknown): value is Refusal => value instanceof Refusal;

export const refuse = (code: ErrorCode, message: string, details?: RefusalDetails): Refusal =>
  new Refusal(code, message, details);

/** Names the request field that is wrong and what it must be, as in "`stream` must be true or false". */
export const invalid = (param: string, what: string): Refusal =>
  refuse("invalid_request", `\`${param}\` ${what}.`, { param });

/** About the request's field `param`. */
export const invalidField = (param: string, message: string): Refusal =>
  refuse("invalid_request", message, { param });

/** A fault of the gateway's own; nothing of its cause is shown. */
export const internalError = (): Refusal =>
  refuse(
    "internal_error",
    "Something failed inside the gateway. Retry, and report the receipt id from the header x-gateway-receipt.",
  );

/** The specification's error object. */
export interface ErrorObject {
  readonly message: string;
  readonly type: ErrorType;
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** `baseUrl` is the configured base address; the anchor in the message's link is the code itself. */
export function errorObject(refusal: Refusal, baseUrl: string): ErrorObject {
  const { code, message, details } = refusal;
  return {
    message: `${redacted(sentence(message))} See ${baseUrl}/docs/errors#${code}`,
    type: ERRORS[code].type,
    code,
    param: details.param === undefined ? null : redacted(details.param),
    ...(details.hint === undefined ? {} : { details: details.hint }),
  };
}

/** With its end mark: hosts word their errors as they like, and what follows must not run into them. */
export function sentence(text: string): string {
  const trimmed = text.trimEnd();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** Codex gives up at once after these where they do not say how long to wait. */
const WAITED_FOR = new Set([429, 503]);
const SOON_S = 5;

/** The headers that a refusal adds to its response. */
export function refusalHeaders({ code, details, status }: Refusal): Record<string, string> {
  const headers: Record<string, string> = {};
  const { retryAfterS = WAITED_FOR.has(status) ? SOON_S : null } = details;
  if (retryAfterS !== null) headers["retry-after"] = String(retryAfterS);
  if (details.closing === true) headers.connection = "close";
  if (details.upgrade !== undefined)
    Object.assign(headers, { connection: "upgrade", upgrade: details.upgrade });
  const { shouldRetry = ERRORS[code].retryable ? undefined : false } = details;
  if (shouldRetry !== undefined) headers["x-should-retry"] = String(shouldRetry);
  if (details.balance !== undefined) headers["x-gateway-balance-usd"] = decimalUsd(details.balance);
  if (details.paymentRequired !== undefined) headers["payment-required"] = details.paymentRequired;
  return headers;
}
