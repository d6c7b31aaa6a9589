import { timingSafeEqual } from "node:crypto";
import type { About } from "../../api/about.ts";
import { isOperatorToken, type KnownOperator, type Operator } from "../../customers/operators/operator.ts";
import { takeOfAll, tooOften } from "../../ledger/limits/address.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import { allows, type OperatorRole } from "../../units/operator-roles.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { bearerOf } from "../authentication.ts";
import type { HttpDeps } from "../deps.ts";
import type { HttpExchange } from "../exchange.ts";

/** Who has the token of GATEWAY_ADMIN_TOKEN, or of the data folder. */
export const FIRST_OPERATOR: KnownOperator = {
  name: "admin",
  role: "admin",
  source: "environment",
  createdAt: null,
  expiresAt: null,
};

/** What an endpoint asks of an operator. */
export const roleFor = ({
  method,
  about,
}: {
  readonly method: string;
  readonly about: About;
}): OperatorRole => about.role ?? (method === "GET" ? "read" : "operate");

/**
 * Null for an operator with this role. A right token is always taken, and at once, so that nobody can lock operators out by
 * sending wrong ones. That leaves a guesser who opens many connections many tries: what stops them is the token's strength,
 * which a start weighs (`store/data-folder`). A token is looked up for each request, so it ends with the next one.
 */
export async function notAdmin(exchange: HttpExchange, needed: OperatorRole): Promise<Refusal | null> {
  const token = bearerOf(exchange.request);
  if (token === null) {
    return refuse(
      "missing_api_key",
      "This endpoint is for the operator. Send the header `Authorization: Bearer <ADMIN_TOKEN>`, with the token from GATEWAY_ADMIN_TOKEN or the data folder.",
    );
  }
  const operator = await operatorWith(token, exchange.deps);
  if (operator === null) return wrongToken(exchange);
  if (!allows(operator.role, needed)) return roleTooLow(operator, needed);
  const { name } = operator;
  exchange.operator = operator;
  exchange.author = { kind: "operator", id: name, name };
  exchange.reauthenticate = async () => (await operatorWith(token, exchange.deps)) ?? wrongToken(exchange);
  return null;
}

async function operatorWith(token: string, deps: HttpDeps): Promise<KnownOperator | null> {
  if (sameSecret(token, deps.admin.token)) return FIRST_OPERATOR;
  const hash = hashSecret(token);
  const configured = deps.config.settings.operators.find(({ tokenHash }) => tokenHash === hash);
  if (configured !== undefined)
    return { ...configured, source: "configuration", createdAt: null, expiresAt: null };
  // Other texts are none of the store's, and guessing costs it nothing.
  if (!isOperatorToken(token)) return null;
  const stored = await deps.books.operators.withToken(hash);
  if (stored === null || (stored.expiresAt !== null && stored.expiresAt <= deps.clock.now())) return null;
  return { ...stored, source: "store" };
}

/** 403 has no code of its own: the request is what this operator may not send. */
const roleTooLow = ({ name, role }: Operator, needed: OperatorRole): Refusal =>
  refuse(
    "invalid_request",
    `This needs an operator with the role \`${needed}\`, and \`${name}\` has the role \`${role}\`. GET /admin/me shows the role of a token.`,
    { status: 403 },
  );

async function wrongToken(exchange: HttpExchange): Promise<Refusal> {
  const blocks = exchange.blocks();
  const delay = exchange.deps.admin.wrongTokens.note(blocks[0]);
  const wait = await takeOfAll(exchange.deps.throttles.wrong_admin_tokens, blocks, MAX_WRONG_TOKENS);
  await delay;
  return wait === null
    ? refuse(
        "invalid_api_key",
        "The bearer token is not this gateway's admin token, nor that of an operator, and this endpoint takes no other. It may have expired or been removed.",
      )
    : tooOften(`sent ${MAX_WRONG_TOKENS} wrong admin tokens`, wait);
}

/** Per hour and network address. */
const MAX_WRONG_TOKENS = 60;

/**
 * Compares digests, which have one length, so that time tells neither where two secrets differ nor how long
 * they are.
 */
const sameSecret = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (secret: string): Uint8Array => new Bun.CryptoHasher("sha256").update(secret).digest();
