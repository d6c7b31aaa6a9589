import { COUNT_TOKENS, GENERATION } from "../../api/generation.ts";
import type { SurfaceName } from "../../catalog/catalog.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import { bearerOf, bearerOrApiKeyOf, identify, keysOnly, missingKey } from "../authentication.ts";
import { declaredLength } from "../body.ts";
import { clientBlocks } from "../client-blocks.ts";
import { ClientCall } from "../client-call.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { EventLoopTurn } from "../event-loop-turn.ts";
import type { HttpExchange } from "../exchange.ts";
import { type JsonReply, ok } from "../reply.ts";
import { readSenderBody, SMALL_BYTES } from "../sender-body.ts";
import { answerResponse } from "../streaming.ts";
import { webSocketEndpoint } from "../websocket/upgrade.ts";
import { compactionEndpoint } from "./compaction.ts";

/**
 * The three surfaces. Everything that is decided about a generation request is decided in
 * generation/generate.
 */
export function generationEndpoints(deps: HttpDeps): Endpoint[] {
  const turn = new EventLoopTurn();
  return [
    surface("chat.completions", "/v1/chat/completions", bearerOf, turn, deps),
    surface("responses", "/v1/responses", bearerOf, turn, deps),
    surface("messages", "/v1/messages", bearerOrApiKeyOf, turn, deps),
    webSocketEndpoint(),
    compactionEndpoint(),
    {
      method: "POST",
      path: "/v1/messages/count_tokens",
      about: COUNT_TOKENS,
      handle: countTokens,
    },
  ];
}

function surface(
  name: SurfaceName,
  path: string,
  secretOf: (request: Request) => string | null,
  turn: EventLoopTurn,
  deps: HttpDeps,
): Endpoint {
  const turnedAway = (refusal: Refusal): Refusal => {
    deps.generation.turnedAway(name, refusal.code);
    return refusal;
  };
  return {
    method: "POST",
    path,
    isBusy: true,
    about: GENERATION[name],
    async handle(exchange) {
      const { request } = exchange;
      const declared = declaredLength(request);
      // What has come of a large body is copied once more where it is read after this turn, and such bodies are no
      // faster together: each fills the processor's caches.
      if (isSmall(declared)) await turn.end();
      const secret = secretOf(request);
      if (secret === null) return turnedAway(missingKey(request));
      const body = await readSenderBody(exchange, secret, deps, declared);
      if (refused(body)) return turnedAway(body);
      exchange.gatewaysTurn();
      try {
        const answer = await deps.generation.generateOnce(name, new ClientCall(secret, body, exchange, deps));
        return refused(answer) ? turnedAway(answer) : answerResponse(answer, exchange);
      } finally {
        exchange.clientsTurn();
      }
    },
  };
}

const isSmall = (declared: number | null | Refusal): boolean =>
  typeof declared === "number" && declared <= SMALL_BYTES;

async function countTokens(exchange: HttpExchange, deps: HttpDeps): Promise<JsonReply | Refusal> {
  const identity = await identify(exchange, deps, bearerOrApiKeyOf);
  if (refused(identity)) return identity;
  if (identity.kind !== "key") return keysOnly("count tokens");
  const { suspended } = identity.balance;
  if (suspended !== null) return suspension(suspended, deps.config.settings.contact);
  const body = await readSenderBody(exchange, identity, deps);
  if (refused(body)) return body;
  const { signal } = exchange.request;
  const { isUnpaid } = exchange;
  const asker = { key: identity.key, blocks: clientBlocks(exchange, deps), isUnpaid, signal };
  const tokens = await deps.generation.countTokens(body, asker);
  return refused(tokens) ? tokens : ok({ input_tokens: tokens });
}
