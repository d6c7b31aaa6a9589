import type { SurfaceName } from "../catalog/catalog.ts";
import { type Refusal, refused } from "../errors/refusal.ts";
import { blocksOf } from "./address.ts";
import { readBody } from "./body.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoint, Exchange } from "./endpoint.ts";
import { COUNT_TOKENS, GENERATION } from "./generation-schemas.ts";
import { bearerOf, bearerOrApiKeyOf, identify, keysOnly, missingKey } from "./identity.ts";
import { ok, type Reply } from "./reply.ts";
import { answerResponse } from "./streaming.ts";

/** The three surfaces. Everything that is decided about a generation request is decided in generation/generate. */
export function generationEndpoints(deps: HttpDeps): Endpoint[] {
  return [
    surface("chat.completions", "/v1/chat/completions", bearerOf, deps),
    surface("responses", "/v1/responses", bearerOf, deps),
    surface("messages", "/v1/messages", bearerOrApiKeyOf, deps),
    {
      method: "POST",
      path: "/v1/messages/count_tokens",
      about: COUNT_TOKENS,
      handle: (exchange) => countTokens(exchange, deps),
    },
  ];
}

function surface(
  name: SurfaceName,
  path: string,
  secretOf: (request: Request) => string | null,
  deps: HttpDeps,
): Endpoint {
  return {
    method: "POST",
    path,
    about: GENERATION[name],
    async handle(exchange) {
      const { request } = exchange;
      const secret = secretOf(request);
      // Said here because it depends on the header that was sent instead.
      if (secret === null) return missingKey(request);
      const body = await readWanted(exchange, secret, deps);
      if (refused(body)) return body;
      const { headers, signal } = request;
      const blocks = () => blocksOf(exchange.address, headers, deps.settings().trustedProxies);
      exchange.gatewaysTurn();
      try {
        return answerResponse(await deps.generate(name, { secret, headers, body, blocks, signal }), exchange);
      } finally {
        exchange.clientsTurn();
      }
    },
  };
}

/**
 * Reads the body; of a stranger, only a small one. A large body is worth memory only for a key that is good, and the
 * generation refuses a bad key before it looks at the body.
 */
async function readWanted(exchange: Exchange, secret: string, deps: HttpDeps): Promise<Uint8Array | Refusal> {
  const { request } = exchange;
  const { bodyBytes } = deps.settings();
  if (isSmall(request)) return readBody(request, bodyBytes);
  const identity = await identify(exchange, deps, () => secret);
  return refused(identity) ? identity : readBody(request, bodyBytes);
}

const SMALL_BYTES = 65_536;

function isSmall({ headers }: Request): boolean {
  const declared = headers.get("content-length");
  return declared !== null && Number(declared) <= SMALL_BYTES;
}

async function countTokens(exchange: Exchange, deps: HttpDeps): Promise<Reply | Refusal> {
  const identity = await identify(exchange, deps, bearerOrApiKeyOf);
  if (refused(identity)) return identity;
  if (identity.kind !== "key") return keysOnly("count tokens");
  const body = await readBody(exchange.request, deps.settings().bodyBytes);
  if (refused(body)) return body;
  const tokens = await deps.countTokens(body, identity);
  return refused(tokens) ? tokens : ok({ input_tokens: tokens });
}
