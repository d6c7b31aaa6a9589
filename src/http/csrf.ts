import { isIP } from "node:net";
import type { About } from "../api/about.ts";
import { type Refusal, refuse } from "../units/errors/refusal.ts";
import { fromOwnPage } from "./cookie.ts";
import type { HttpSettings } from "./deps.ts";

/**
 * Refuses what a page elsewhere makes its visitor's browser send without a credential: keys would be made and
 * mails sent in the visitor's name. Browsers send such "simple" requests without asking us first; with a
 * bearer token they ask, and endpoints that pages may call allow it (http/cors).
 */
export function csrfRefusal(about: About, request: Request, settings: HttpSettings): Refusal | null {
  if (about.anyOrigin === true || !CHANGES.has(request.method)) return null;
  const { headers } = request;
  const origin = headers.get("origin");
  if (origin === null || headers.has("authorization") || headers.has("x-api-key")) return null;
  if (fromOwnPage(request, settings) || fromSameAddress(origin, headers.get("host"))) return null;
  return refuse(
    "invalid_request",
    `Pages at other addresses than ${settings.baseUrl} cannot do this without an \`Authorization\` header. If the page is this gateway's own under another name, the operator can set \`base_url\` to that.`,
    { param: "Origin" },
  );
}

const CHANGES = new Set(["POST", "PUT", "PATCH", "DELETE"]);

/**
 * A gateway that is opened by one of its machine's addresses. A name would not do: any page can have its own
 * name point here.
 */
function fromSameAddress(origin: string, host: string | null): boolean {
  const page = URL.parse(origin);
  return page !== null && page.host === host && isIP(page.hostname.replace(/^\[|\]$/g, "")) !== 0;
}
