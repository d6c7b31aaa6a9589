import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { atMost, type Clock } from "../units/clock.ts";
import { isPublicAddress } from "./public-address.ts";

/**
 * Where owners may have events sent. `public`: https, to addresses on the internet. `loopback`: also http on this machine,
 * for tests. `off`: nowhere.
 */
export type OwnerAddresses = "public" | "loopback" | "off";

/** Why events cannot be sent to this URL, whatever its name resolves to; null where they can. */
export function urlProblem(text: string, allowed: OwnerAddresses): string | null {
  if (allowed === "off") return "This gateway sends no events to owners' webhooks.";
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || text.length > MAX_URL_LENGTH || /\s/.test(text))
    return `\`url\` must be an https:// address of at most ${MAX_URL_LENGTH} characters.`;
  if (url.username !== "" || url.password !== "" || url.hash !== "")
    return "`url` must have neither a user nor a fragment.";
  const host = hostOf(url);
  if (allowed === "loopback" && url.protocol === "http:" && isLoopbackHost(host)) return null;
  if (url.protocol !== "https:") return "`url` must begin with https://.";
  const port = url.port === "" ? HTTPS_PORT : Number(url.port);
  if (port !== HTTPS_PORT && port < FIRST_OPEN_PORT)
    return `\`url\` must have port ${HTTPS_PORT}, or one from ${FIRST_OPEN_PORT} on.`;
  if (isIP(host) === 0 ? !host.includes(".") || host.endsWith(".localhost") : !isPublicAddress(host))
    return "`url` must lead to an address on the internet.";
  return null;
}

/**
 * The address to connect to, so that nobody resolves the name a second time to something else. Null where the name has no
 * address, or one that is not allowed: which of these it is would tell strangers about the operator's network.
 */
export async function ownerAddress(
  text: string,
  allowed: OwnerAddresses,
  { resolve, clock, isPublic = isPublicAddress }: AddressDeps,
): Promise<string | null> {
  if (urlProblem(text, allowed) !== null) return null;
  const url = new URL(text);
  const host = hostOf(url);
  if (url.protocol === "http:") return host === "localhost" ? "127.0.0.1" : host;
  const found = isIP(host) === 0 ? ((await atMost(clock, RESOLVE_MS, resolve(host))) ?? []) : [host];
  return found.length > 0 && found.every(isPublic) ? found[0]! : null;
}

export interface AddressDeps {
  /** All addresses of a name; none where it has none. */
  readonly resolve: Resolve;
  readonly clock: Clock;
  readonly isPublic?: (address: string) => boolean;
}

export type Resolve = (host: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.slice(0, MAX_ADDRESSES).map(({ address }) => address);
};

const hostOf = ({ hostname }: URL): string => {
  const host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  return host.endsWith(".") ? host.slice(0, -1) : host;
};

const isLoopbackHost = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));

const MAX_URL_LENGTH = 500;
const HTTPS_PORT = 443;
/** Below are the ports of services that are not HTTP. */
const FIRST_OPEN_PORT = 1_024;
const RESOLVE_MS = 3_000;
/** Where a name has more, the others are not checked, and not used. */
const MAX_ADDRESSES = 16;
