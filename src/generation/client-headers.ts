import { readTraceparent } from "../units/trace-context.ts";

/**
 * The client's headers that reach the host. A list of what passes, not of what is held back: credentials,
 * cookies and addresses of the client must never be sent to a host because nobody thought of their name.
 * `idempotency-key` does not pass: all clients share one account at a host, and two of them may choose the
 * same key.
 */
const PASSED = new Set([
  "user-agent",
  "http-referer",
  "x-title",
  "x-session-id",
  "x-client-request-id",
  "session_id",
  "conversation_id",
  "originator",
]);
const PASSED_PREFIXES = ["anthropic-", "openai-", "x-stainless-"];
/** They name an account at the host, or a part of one, which is the operator's there, not the client's. */
const OF_AN_ACCOUNT = /^(openai|anthropic)-(organization|project|workspace|user-profile|account)(-|$)/;

export function clientHeaders(headers: Headers): Record<string, string> {
  const passed: Record<string, string> = {};
  headers.forEach((value, name) => {
    // The server lets it through, and HTTP does not allow it: a host must not be sent it.
    if (passes(name) && !value.includes(DELETE)) passed[name] = value;
  });
  // One that is malformed ends here, and what belongs to it (W3C Trace Context, section 3.3.1.4).
  const traceparent = headers.get("traceparent");
  if (readTraceparent(traceparent) !== null) {
    passed.traceparent = traceparent!;
    const tracestate = headers.get("tracestate");
    if (tracestate !== null && tracestate.length <= MAX_TRACESTATE && !tracestate.includes(DELETE))
      passed.tracestate = tracestate;
  }
  return passed;
}

const MAX_TRACESTATE = 512;
const DELETE = "\x7f";

function passes(name: string): boolean {
  if (PASSED.has(name)) return true;
  for (const prefix of PASSED_PREFIXES) if (name.startsWith(prefix)) return !OF_AN_ACCOUNT.test(name);
  return false;
}
