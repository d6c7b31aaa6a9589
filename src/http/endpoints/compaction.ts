import { COMPACTION } from "../../api/generation.ts";
import type { GenerationAnswer } from "../../generation/answer.ts";
import { tooMuchUnpaid } from "../../generation/refusals.ts";
import { wideNetwork } from "../../ledger/limits/wide-network.ts";
import { compactionRequest, readCompaction } from "../../surfaces/responses/compaction.ts";
import { errorObject, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { bearerOf, missingKey } from "../authentication.ts";
import { clientBlocks } from "../client-blocks.ts";
import { ClientCall } from "../client-call.ts";
import type { HttpDeps } from "../deps.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpExchange } from "../exchange.ts";
import { readSenderBody } from "../sender-body.ts";

/**
 * OpenAI's older way to have a conversation shortened: a request of its own. It is served as the newer one, an
 * ordinary request that ends in `compaction_trigger`, with everything that this brings: holds, hosts, receipt.
 */
export const compactionEndpoint = (): Endpoint => ({
  method: "POST",
  path: "/v1/responses/compact",
  about: COMPACTION,
  handle: compact,
});

async function compact(exchange: HttpExchange, deps: HttpDeps): Promise<Response | Refusal> {
  const secret = bearerOf(exchange.request);
  if (secret === null) return turnedAway(missingKey(exchange.request), deps);
  const body = await readSenderBody(exchange, secret, deps);
  if (refused(body)) return turnedAway(body, deps);
  exchange.gatewaysTurn();
  try {
    const request = exchange.isUnpaid ? await compactUnpaid(body, exchange, deps) : compactionRequest(body);
    if (request === null) return turnedAway(tooMuchUnpaid(RETRY_S), deps);
    const call = new ClientCall(secret, request, exchange, deps);
    const answer = await deps.generation.generateOnce("responses", call);
    return refused(answer) ? turnedAway(answer, deps) : compactionResponse(answer, deps);
  } finally {
    exchange.clientsTurn();
  }
}

/** Parsing ten megabytes would keep everybody else waiting. */
function compactUnpaid(body: Uint8Array, exchange: HttpExchange, deps: HttpDeps): Promise<Uint8Array | null> {
  const key = wideNetwork(clientBlocks(exchange, deps));
  return deps.generation.compaction(body, { key, signal: exchange.request.signal, withinMs: COMPACT_MS });
}

const COMPACT_MS = 10_000;
const RETRY_S = 5;

function turnedAway(refusal: Refusal, deps: HttpDeps): Refusal {
  deps.generation.turnedAway("responses", refusal.code);
  return refusal;
}

function compactionResponse(answer: GenerationAnswer, deps: HttpDeps): Response {
  const { status, headers } = answer;
  // An error, because nothing else is streamed when it is asked for whole.
  const body = answer.kind === "whole" ? (answer.body as Uint8Array<ArrayBuffer>) : null;
  if (status !== 200 || body === null) return new Response(body, { status, headers });
  const compaction = readCompaction(body);
  if (compaction !== null) return new Response(JSON.stringify(compaction), { status, headers });
  const error = errorObject(notShortened(), deps.config.settings.baseUrl);
  return new Response(JSON.stringify({ error }), { status: notShortened().status, headers });
}

const notShortened = (): Refusal =>
  refuse(
    "upstream_error",
    "The host did not shorten the conversation, or not to its end; what it wrote was charged. Send the request again, or shorten the conversation yourself.",
  );
