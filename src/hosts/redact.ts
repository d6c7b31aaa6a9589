import type { Host } from "../catalog/catalog.ts";

/**
 * Takes out of a host's words what is the operator's: customers read them. Hosts repeat a key that they do not
 * know, proxies in front of them name the address that did not answer.
 */
export function redact(text: string, host: Host): string {
  let clean = text;
  for (const secret of secretsOf(host)) clean = clean.replaceAll(secret, HIDDEN);
  clean = clean.replace(MASKED, HIDDEN).replace(addressesOf(host), "[host]").replace(PRIVATE, "[host]");
  return withoutBeginning(clean, secretsOf(host));
}

const HIDDEN = "[hidden]";

/** What a host shows of a key it does not take: `sk-proj-****abcd`. */
const MASKED = /[\w.-]{3,}\*{3,}[\w*.-]*/g;

/** Addresses that mean something only where the gateway stands, with their ports. */
const PRIVATE =
  /(?<![\d.])(?:(?:10|127)\.\d{1,3}|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.\d{1,3}){2}(?::\d+)?(?![\d.]*\d)/g;

/** The key, and the values of the operator's headers and of its address, also as they stand in an address. */
function secretsOf({ apiKey, headers, baseUrl }: Host): string[] {
  const url = URL.parse(baseUrl);
  const values = [
    ...(apiKey === null ? [] : [apiKey]),
    ...Object.entries(headers).flatMap(([name, value]) =>
      PUBLIC.has(name) ? [] : [value, value.replace(SCHEME, "")],
    ),
    ...(url === null
      ? []
      : [url.username, url.password, plainly(url.password), ...url.searchParams.values()]),
  ];
  const found = new Set(values.filter(isSecret).flatMap((value) => [value, encodeURIComponent(value)]));
  return [...found].sort((a, b) => b.length - a.length);
}

function plainly(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** Headers that say nothing of the operator. */
const PUBLIC = new Set(["anthropic-version", "anthropic-beta", "content-type", "accept"]);
const SCHEME = /^(?:bearer|basic)\s+/i;

/** Keys such as `none`, `ollama` and `EMPTY` are words, and secret to nobody. */
const isSecret = (value: string): boolean =>
  value.length >= 12 || (value.length >= 6 && /[^A-Za-z]/.test(value));

/**
 * The host's address in whole or in part. A name of one word, such as a container has, is one only with a
 * scheme or a port.
 */
function addressesOf({ baseUrl }: Host): RegExp {
  const url = URL.parse(baseUrl);
  if (url === null) return NOTHING;
  const name = escaped(url.hostname.replace(/^\[|\]$/g, ""));
  const path = escaped(url.pathname.replace(/\/+$/, ""));
  const scheme = "[a-z][a-z0-9+.-]*:\\/\\/(?:[^\\s/@]*@)?";
  const place = `\\[?${name}\\]?`;
  const forms = /[.:]/.test(url.hostname)
    ? [`(?:${scheme})?${place}(?::\\d+)?`]
    : [`${scheme}${place}(?::\\d+)?`, `${place}:\\d+`];
  return new RegExp(`(?<![\\w.-])(?:${forms.join("|")})(?![\\w-])(?:${path}(?![\\w-]))?`, "gi");
}

const NOTHING = /(?!)/g;
const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

/** A long sentence was cut, perhaps inside a secret. */
function withoutBeginning(text: string, secrets: readonly string[]): string {
  if (!text.endsWith(CUT)) return text;
  const end = text.length - CUT.length;
  for (const secret of secrets) {
    for (let length = Math.min(secret.length, end); length >= LEAST_SHOWN; length--) {
      if (text.endsWith(secret.slice(0, length), end)) return `${text.slice(0, end - length)}${HIDDEN}${CUT}`;
    }
  }
  return text;
}

const CUT = "…";
const LEAST_SHOWN = 4;
