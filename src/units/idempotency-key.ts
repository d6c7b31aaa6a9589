/**
 * What the header `Idempotency-Key` says. A quoted text, as the IETF's draft has it, is the same key as the text alone, as
 * Stripe's clients send it.
 */
export function idempotencyKeyOf(headers: Headers): string | null {
  const text = headers.get("idempotency-key");
  const quoted = text === null ? null : QUOTED.exec(text);
  return quoted === null ? text : quoted[1]!.replaceAll(/\\(["\\])/g, "$1");
}

const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;
