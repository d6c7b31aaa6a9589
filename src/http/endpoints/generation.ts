import { COMPACTION, COUNT_TOKENS, GENERATION } from "../../api/generation.ts";
import type { SurfaceName } from "../../catalog/catalog.ts";
import type { GenerationAnswer, GenerationCall } from "../../generation/answer.ts";
import { tooMuchUnpaid } from "../../generation/refusals.ts";
import { wideNetwork } from "../../ledger/limits/address.ts";
import { compactionRequest, readCompaction } from "../../surfaces/responses/compaction.ts";
import { errorObject, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import { bearerOf, bearerOrApiKeyOf, identify, keysOnly, missingKey } from "../authentication.ts";
import { declaredLength } from "../body.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import { EventLoopTurn } from "../event-loop-turn.ts";
import type { HttpExchange } from "../exchange.ts";
import { readPromptBody, SMALL_BYTES } from "../prompt-body.ts";
import { answerResponse } from "../streaming.ts";
import { webSocketEndpoint } from "../websocket/upgrade.ts";

/**
 * The three surfaces. Everything that is decided about a generation request is decided in
 * generation/generate.
 */
export function generationEndpoints(): Endpoint[] {
  const loopTurn = new EventLoopTurn();
  return [
    surfaceEndpoint("chat.completions", "/v1/chat/completions", bearerOf, loopTurn),
    surfaceEndpoint("responses", "/v1/responses", bearerOf, loopTurn),
    surfaceEndpoint("messages", "/v1/messages", bearerOrApiKeyOf, loopTurn),
    webSocketEndpoint(),
    { method: "POST", path: "/v1/responses/compact", about: COMPACTION, handle: compact },
    { method: "POST", path: "/v1/messages/count_tokens", about: COUNT_TOKENS, handle: countTokens },
  ];
}

function surfaceEndpoint(
  name: SurfaceName,
  path: string,
  secretOf: (request: Request) => string | null,
  loopTurn: EventLoopTurn,
): Endpoint {
  return {
    method: "POST",
    path,
    isBusy: true,
    about: GENERATION[name],
    async handle(exchange) {
      const { request, deps } = exchange;
      const declared = declaredLength(request);
      // What has come of a large body is copied once more where it is read after this turn, and such bodies are no
      // faster together: each fills the processor's caches.
      if (isSmall(declared)) await loopTurn.end();
      const secret = secretOf(request);
      if (secret === null) return turnedAway(name, missingKey(request), deps);
      const body = await readPromptBody(exchange, secret, declared);
      if (refused(body)) return turnedAway(name, body, deps);
      exchange.gatewaysTurn();
      try {
        const answer = await deps.generation.generateOnce(name, callOf(secret, body, exchange));
        return refused(answer) ? turnedAway(name, answer, deps) : answerResponse(answer, exchange);
      } finally {
        exchange.clientsTurn();
      }
    },
  };
}

/** Call it after the body was read: before, `isUnpaid` is not known. */
const callOf = (secret: string, body: Uint8Array, exchange: HttpExchange): GenerationCall => ({
  secret,
  body,
  headers: exchange.request.headers,
  signal: exchange.signal,
  isUnpaid: exchange.isUnpaid,
  blocks: () => exchange.blocks(),
});

const isSmall = (declared: number | null | Refusal): boolean =>
  typeof declared === "number" && declared <= SMALL_BYTES;

async function countTokens(exchange: HttpExchange): Promise<{ input_tokens: number } | Refusal> {
  const identity = await identify(exchange, bearerOrApiKeyOf);
  if (refused(identity)) return identity;
  if (identity.kind !== "key") return keysOnly("count tokens");
  const { suspended } = identity.balance;
  if (suspended !== null) return suspension(suspended, exchange.deps.config.settings.contact);
  const body = await readPromptBody(exchange, identity);
  if (refused(body)) return body;
  const { isUnpaid, signal } = exchange;
  const asker = { key: identity.key, blocks: exchange.blocks(), isUnpaid, signal };
  const tokens = await exchange.deps.generation.countTokens(body, asker);
  return refused(tokens) ? tokens : { input_tokens: tokens };
}

/**
 * OpenAI's older way to have a conversation shortened: a request of its own. It is served as the newer one, an
 * ordinary request that ends in `compaction_trigger`, with everything that this brings: holds, hosts, receipt.
 */
async function compact(exchange: HttpExchange): Promise<Response | Refusal> {
  const { deps } = exchange;
  const secret = bearerOf(exchange.request);
  if (secret === null) return turnedAway("responses", missingKey(exchange.request), deps);
  const body = await readPromptBody(exchange, secret);
  if (refused(body)) return turnedAway("responses", body, deps);
  exchange.gatewaysTurn();
  try {
    const request = exchange.isUnpaid ? await compactUnpaid(body, exchange) : compactionRequest(body);
    if (request === null) return turnedAway("responses", tooMuchUnpaid(RETRY_S), deps);
    const call = callOf(secret, request, exchange);
    const answer = await deps.generation.generateOnce("responses", call);
    return refused(answer) ? turnedAway("responses", answer, deps) : compactionResponse(answer, deps);
  } finally {
    exchange.clientsTurn();
  }
}

/** Parsing ten megabytes would keep everybody else waiting. */
function compactUnpaid(body: Uint8Array, exchange: HttpExchange): Promise<Uint8Array | null> {
  const key = wideNetwork(exchange.blocks());
  return exchange.deps.generation.compaction(body, {
    key,
    signal: exchange.signal,
    withinMs: COMPACT_MS,
  });
}

const COMPACT_MS = 10_000;
const RETRY_S = 5;

function turnedAway(name: SurfaceName, refusal: Refusal, { generation }: HttpDeps): Refusal {
  generation.turnedAway(name, refusal.code);
  return refusal;
}

function compactionResponse(answer: GenerationAnswer, { config }: HttpDeps): Response {
  const { status, headers } = answer;
  // An error, because nothing else is streamed when it is asked for whole.
  const body = answer.kind === "whole" ? (answer.body as Uint8Array<ArrayBuffer>) : null;
  if (status !== 200 || body === null) return new Response(body, { status, headers });
  const compaction = readCompaction(body);
  if (compaction !== null) return new Response(JSON.stringify(compaction), { status, headers });
  const error = errorObject(notShortened(), config.settings.baseUrl);
  return new Response(JSON.stringify({ error }), { status: notShortened().status, headers });
}

const notShortened = (): Refusal =>
  refuse(
    "upstream_error",
    "The host did not shorten the conversation, or not to its end; what it wrote was charged. Send the request again, or shorten the conversation yourself.",
  );
