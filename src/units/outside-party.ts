import { unescaped } from "./percent-encoding.ts";

/**
 * Somebody whom the gateway asks with the operator's secrets: a host, a chain's node, a facilitator, Stripe. They repeat keys
 * that they do not know, and what stands in front of them names the address that did not answer. So each word of theirs
 * passes `redact` on its way to a log, the store or a customer.
 */
export class OutsideParty {
  private readonly secrets: readonly string[];
  private readonly spelled: readonly RegExp[];
  private readonly encoded: readonly RegExp[];
  private readonly addresses: readonly RegExp[];
  private readonly placeholder: string;

  /** `called` stands in place of its addresses. Values that are no secret, such as `none` or `EMPTY`, are left alone. */
  constructor({ called, secrets, addresses }: PartyFacts) {
    this.secrets = [...new Set(secrets.filter(isSecret))].sort((a, b) => b.length - a.length);
    this.spelled = this.secrets.map(spellings);
    this.encoded = this.secrets.map(inBase64);
    this.addresses = addresses.flatMap((address) => URL.parse(address) ?? []).map(addressForms);
    this.placeholder = `[${called}]`;
  }

  redact(text: string): string {
    let clean = text;
    for (const form of this.spelled) clean = clean.replace(form, HIDDEN);
    for (const form of this.encoded) clean = withoutRuns(clean, form);
    clean = clean.replace(MASKED, HIDDEN);
    for (const address of this.addresses) clean = clean.replace(address, this.placeholder);
    return this.withoutBeginning(clean.replace(PRIVATE, this.placeholder));
  }

  /** The same parts, whose methods reject with redacted errors. */
  guarded<Parts extends object>(parts: Parts): Parts {
    return new Proxy(parts, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return (...sent: unknown[]) => {
          const answer: unknown = member.apply(target, sent);
          return answer instanceof Promise
            ? answer.catch((error: unknown) => Promise.reject(this.redacted(error)))
            : answer;
        };
      },
    });
  }

  /** A new error: its cause, and what else a package hung on it, may hold the address too. */
  private redacted(error: unknown): Error {
    const { message, stack } = error instanceof Error ? error : new Error(String(error));
    const clean = new Error(this.redact(message));
    if (stack !== undefined) clean.stack = this.redact(stack);
    return clean;
  }

  /** A long sentence was cut, perhaps inside a secret. */
  private withoutBeginning(text: string): string {
    if (!text.endsWith(CUT)) return text;
    const end = text.length - CUT.length;
    for (const secret of this.secrets) {
      for (let length = Math.min(secret.length, end); length >= MIN_SHOWN; length--) {
        if (text.endsWith(secret.slice(0, length), end))
          return `${text.slice(0, end - length)}${HIDDEN}${CUT}`;
      }
    }
    return text;
  }
}

export interface PartyFacts {
  readonly called: string;
  readonly secrets: readonly string[];
  /** Where it is reached; those that are no URL are left out. */
  readonly addresses: readonly string[];
}

/** What is secret in an address: user, password and the query's values, and with `paths` long parts of its path. */
export function secretsIn(address: string, { paths = false } = {}): string[] {
  const url = URL.parse(address);
  if (url === null) return [];
  const parts = paths ? url.pathname.split("/").filter((part) => part.length >= LONG_PART) : [];
  return [url.username, url.password, unescaped(url.password), ...url.searchParams.values(), ...parts];
}

/** Keys in paths are longer than most words that stand there. */
const LONG_PART = 12;

const isSecret = (value: string): boolean =>
  value.length >= 12 || (value.length >= 6 && /[^A-Za-z]/.test(value));

const HIDDEN = "[hidden]";

/** A secret as it is, with characters escaped as in an address, or in hexadecimal. */
function spellings(secret: string): RegExp {
  const characters = [...secret].map((character) => {
    const bytes = [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`);
    return `(?:${escaped(character)}|${bytes.join("")})`;
  });
  return new RegExp(`${characters.join("")}|${Buffer.from(secret).toString("hex")}`, "gi");
}

/** A secret somewhere in base64, of which two characters are others in addresses. */
function inBase64(secret: string): RegExp {
  const bytes = Buffer.from(secret);
  const cores = [0, 1, 2].map((offset) =>
    base64Within(bytes, offset).replace(/[+/]/g, (sign) => (sign === "+" ? "[+-]" : "[/_]")),
  );
  return new RegExp(cores.join("|"), "g");
}

/** Hides all of the base64 around each match: what is next to the secret may be the rest of a credential. */
function withoutRuns(text: string, form: RegExp): string {
  let clean = "";
  let from = 0;
  for (const { index, 0: core } of text.matchAll(form)) {
    if (index < from) continue;
    let begin = index;
    let end = index + core.length;
    while (begin > from && BASE64.test(text[begin - 1]!)) begin--;
    while (end < text.length && BASE64.test(text[end]!)) end++;
    clean += text.slice(from, begin) + HIDDEN;
    from = end;
  }
  return clean + text.slice(from);
}

const BASE64 = /[\w+/=-]/;

/** The characters that the bytes have wherever they begin at this offset from a group's start: none that neighbours change. */
function base64Within(bytes: Buffer, offset: number): string {
  const whole = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
  return whole.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}

/** What is shown of a key that was not taken: `sk-proj-****abcd`. */
const MASKED = /[\w.-]{3,}\*{3,}[\w*.-]*/g;

/** Addresses that mean something only where the gateway stands, with their ports. */
const PRIVATE =
  /(?<![\d.])(?:(?:10|127)\.\d{1,3}|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.\d{1,3}){2}(?::\d+)?(?![\d.]*\d)/g;

/**
 * An address in whole or in part. A name of one word, such as a container has, is one only with a
 * scheme or a port.
 */
function addressForms({ hostname, pathname }: URL): RegExp {
  const name = escaped(hostname.replace(/^\[|\]$/g, ""));
  const path = escaped(pathname.replace(/\/+$/, ""));
  const scheme = "[a-z][a-z0-9+.-]*:\\/\\/(?:[^\\s/@]*@)?";
  const host = `\\[?${name}\\]?`;
  const forms = /[.:]/.test(hostname)
    ? [`(?:${scheme})?${host}(?::\\d+)?`]
    : [`${scheme}${host}(?::\\d+)?`, `${host}:\\d+`];
  return new RegExp(`(?<![\\w.-])(?:${forms.join("|")})(?![\\w-])(?:${path}(?![\\w-]))?`, "gi");
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

const CUT = "…";
const MIN_SHOWN = 4;
