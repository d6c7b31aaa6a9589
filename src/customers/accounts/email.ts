/** A mail address in the one form that it is stored and compared in. */
export type Email = string & { readonly __unit: "Email" };

/**
 * The address in lower case; null when it is none. Narrower than RFC 5321 allows: no quoted local parts, no
 * address literals and no comments, because a mail server reads those in ways that a pattern does not, and a
 * sign-in link must go to exactly one mailbox. Lower case throughout, because no mailbox in use tells two
 * cases apart and people mix them.
 */
export function readEmail(text: string): Email | null {
  const trimmed = text.trim();
  const at = trimmed.lastIndexOf("@");
  const [local, domain] = [trimmed.slice(0, at), trimmed.slice(at + 1)];
  const fine = at > 0 && trimmed.length <= MAX_EMAIL && LOCAL.test(local) && DOMAIN.test(domain);
  return fine ? (trimmed.toLowerCase() as Email) : null;
}

/** For people who should recognise an address and not learn it: `k***@example.com`. */
export const masked = (email: Email): string => email.replace(/^(.)[^@]*/, "$1***");

/** RFC 5321, section 4.5.3.1.3, without the angle brackets. */
export const MAX_EMAIL = 254;

const LOCAL = /^(?=.{1,64}$)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
/**
 * An international domain is written in its ASCII form. Not an IPv4 address: the last label begins with a
 * letter.
 */
const DOMAIN = new RegExp(`^(?:${LABEL}\\.)*(?=[A-Za-z])${LABEL}$`);
