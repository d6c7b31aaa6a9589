import { messageOf } from "./console.ts";

/** Why no answer came. Bun's own sentences are for the author of the program. */
export function whyUnanswered(error: unknown): string {
  const code = codeOf(error);
  const reason = code === null ? undefined : REASONS[code];
  if (reason !== undefined) return `${reason} (${code})`;
  return error instanceof Error && error.name === "TimeoutError" ? "it took too long" : messageOf(error);
}

/** Nobody listens there, so nothing was done. */
export const isRefusedConnection = (error: unknown): boolean => codeOf(error) === "ECONNREFUSED";

const codeOf = (error: unknown): string | null =>
  error instanceof Error && "code" in error ? String(error.code) : null;

const UNKNOWN_ISSUER =
  "its TLS certificate is of an issuer that this machine does not know: name it in NODE_EXTRA_CA_CERTS";

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nobody listens there",
  ECONNRESET: "the connection was closed without an answer",
  ENOTFOUND: "there is no such name",
  EPROTO: "it does not speak TLS there",
  CERT_HAS_EXPIRED: "its TLS certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its TLS certificate is for another name",
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_ISSUER,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_ISSUER,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_ISSUER,
};
