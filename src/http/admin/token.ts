import { timingSafeEqual } from "node:crypto";
import { takeOfAll, tooOften } from "../../ledger/limits/address.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import { clientBlocks } from "../client-blocks.ts";
import type { HttpDeps } from "../deps.ts";
import type { HttpExchange } from "../exchange.ts";
import { bearerOf } from "../identity.ts";

/**
 * Null for the operator. The right token is always taken, and at once, so that nobody can lock the operator out by sending
 * wrong ones. That leaves a guesser who opens many connections many tries: what stops them is the token's strength, which
 * a start weighs (`store/data-folder`).
 */
export async function notAdmin(exchange: HttpExchange, deps: HttpDeps): Promise<Refusal | null> {
  const token = bearerOf(exchange.request);
  if (token === null) {
    return refuse(
      "missing_api_key",
      "This endpoint is for the operator. Send the header `Authorization: Bearer <ADMIN_TOKEN>`, with the token from GATEWAY_ADMIN_TOKEN or the data folder.",
    );
  }
  if (sameSecret(token, deps.adminToken)) {
    exchange.author = FIRST_OPERATOR;
    return null;
  }
  const blocks = clientBlocks(exchange, deps);
  const delay = deps.wrongTokens.note(blocks[0]);
  const wait = await takeOfAll(deps.throttles.wrong_admin_tokens, blocks, MAX_WRONG_TOKENS);
  await delay;
  return wait === null
    ? refuse(
        "invalid_api_key",
        "The bearer token is not this gateway's admin token, and this endpoint takes no other.",
      )
    : tooOften(`sent ${MAX_WRONG_TOKENS} wrong admin tokens`, wait);
}

/** Who has the token of GATEWAY_ADMIN_TOKEN, or of the data folder. */
const FIRST_OPERATOR = { kind: "operator", id: "admin", name: "admin" } as const;

/** Per hour and network address. */
const MAX_WRONG_TOKENS = 60;

/**
 * Compares digests, which have one length, so that time tells neither where two secrets differ nor how long
 * they are.
 */
const sameSecret = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (secret: string): Uint8Array => new Bun.CryptoHasher("sha256").update(secret).digest();
