import { timingSafeEqual } from "node:crypto";
import { type Refusal, refuse } from "../../errors/refusal.ts";
import type { HttpDeps } from "../deps.ts";
import type { Exchange } from "../endpoint.ts";
import { bearerOf } from "../identity.ts";
import type { Reply } from "../reply.ts";

type Handle = (exchange: Exchange, deps: HttpDeps) => Promise<Reply | Refusal>;

/** The handler behind the admin token, which alone opens it. */
export const guarded =
  (handle: Handle): Handle =>
  async (exchange, deps) =>
    notAdmin(exchange.request, deps) ?? handle(exchange, deps);

export function notAdmin(request: Request, { adminToken }: HttpDeps): Refusal | null {
  const token = bearerOf(request);
  if (token === null) {
    return refuse(
      "missing_api_key",
      "This endpoint is for the operator. Send the header `Authorization: Bearer <ADMIN_TOKEN>`, with the token from GATEWAY_ADMIN_TOKEN or the data folder.",
    );
  }
  return sameSecret(token, adminToken)
    ? null
    : refuse(
        "invalid_api_key",
        "The bearer token is not this gateway's admin token, and this endpoint takes no other.",
      );
}

/**
 * Compares digests, which have one length, so that time tells neither where two secrets differ nor how long
 * they are.
 */
const sameSecret = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (secret: string): Uint8Array => new Bun.CryptoHasher("sha256").update(secret).digest();
