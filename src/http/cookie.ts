import type { HttpSettings } from "./deps.ts";

/**
 * The session as browsers hold it. `__Host-` makes a browser refuse the cookie unless it is Secure, for this
 * host alone and for all paths; localhost counts as secure, any other plain http address does not.
 */
const NAME = "__Host-session";

export const sessionCookie = (session: string, seconds: number): string =>
  `${NAME}=${session}; Path=/; Max-Age=${seconds}; Secure; HttpOnly; SameSite=Lax`;

export const noSessionCookie = (): string => sessionCookie("", 0);

export function cookieSession({ headers }: Request): string | null {
  const cookies = headers.get("cookie");
  return cookies === null ? null : (COOKIE.exec(cookies)?.[1] ?? null);
}

const COOKIE = new RegExp(`(?:^|; ?)${NAME}=([^;]*)`);

/**
 * Whether a page of this gateway's own sent the request. Browsers put `Origin` on every request that could
 * change something and that a page caused, and no page can set it. Judged by the configured addresses: `Host`
 * is whatever the client says.
 */
export function fromOwnPage(
  { headers }: Request,
  { baseUrl, dashboardUrl }: Pick<HttpSettings, "baseUrl" | "dashboardUrl">,
): boolean {
  const origin = headers.get("origin");
  return origin !== null && [baseUrl, dashboardUrl].some((own) => sameOrigin(origin, own));
}

function sameOrigin(origin: string, address: string): boolean {
  if (!URL.canParse(origin)) return false;
  const [theirs, own] = [new URL(origin), new URL(address)];
  if (theirs.origin === own.origin) return true;
  // A gateway on this machine alone is opened by any of the machine's names for itself.
  return (
    LOOPBACK.has(theirs.hostname) &&
    LOOPBACK.has(own.hostname) &&
    theirs.protocol === own.protocol &&
    theirs.port === own.port
  );
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
