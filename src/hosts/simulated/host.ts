import { AnswerPolicy } from "../../surfaces/pairing/answer-policy.ts";
import type { Billed, GenerationRequest } from "../../surfaces/surface.ts";
import { SURFACES } from "../../surfaces/surfaces.ts";
import { type AnswerWriter, CollectedAnswer } from "../../surfaces/vocabulary/answer-writer.ts";
import type { Conversation } from "../../surfaces/vocabulary/conversation.ts";
import { ObjectReader } from "../../surfaces/vocabulary/object-reader.ts";
import { TranslationReport } from "../../surfaces/vocabulary/translation-report.ts";
import { randomBase58 } from "../../units/base58.ts";
import { type Clock, pause } from "../../units/clock.ts";
import { type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import type { RandomBytes } from "../../units/random.ts";
import { SimulatedAnswer } from "./answer.ts";

/**
 * A host that needs no provider: a real HTTP server on the loopback interface, spoken to through the same
 * sockets as any other, so that a first request works offline and shows the whole way. It serves one model,
 * which echoes, and speaks the three languages as the gateway itself speaks them to its clients.
 */
export function startSimulatedHost({ clock, random, paceMs = PACE_MS }: SimulatedOptions): SimulatedHost {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // A pause between words must not look idle; the gateway has deadlines of its own.
    idleTimeout: 0,
    maxRequestBodySize: BODY_BYTES_MAX,
    fetch: (request) => answer(request, { clock, random, paceMs }),
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    stop: () => server.stop(true),
  };
}

export interface SimulatedOptions {
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Between two words. */
  readonly paceMs?: number;
}

export interface SimulatedHost {
  /** Base address, ending in `/v1`. */
  readonly url: string;
  /** Breaks off what is being said. */
  stop(): Promise<void>;
}

export const SIMULATED_MODEL = "echo";
export const SIMULATED_LIMITS = { contextLength: 1_000_000, maxOutputTokens: 8_192 } as const;

const PACE_MS = 8;
/** Above the gateway's own limit, so that this host is never the one to refuse. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const ID_CHARACTERS = 24;

async function answer(
  call: Request,
  { clock, random, paceMs }: Required<SimulatedOptions>,
): Promise<Response> {
  const { pathname } = new URL(call.url);
  const surface = Object.values(SURFACES).find(({ path }) => pathname === `/v1${path}`);
  if (surface === undefined || call.method !== "POST")
    return Response.json(
      { error: { message: `Unknown request: ${call.method} ${pathname}` } },
      { status: 404 },
    );
  const id = randomBase58(ID_CHARACTERS, random);
  const refusal = ({ message, code, status }: Refusal) => {
    const error = { message, type: "invalid_request_error", code, param: null } as const;
    return respond(surface.errorBody(error, id), status);
  };
  const request = surface.readRequest(await call.bytes());
  if (refused(request)) return refusal(request);
  const unserved = problemOf(request);
  if (unserved !== null) return refusal(unserved);

  const simulated = new SimulatedAnswer(conversationOf(request), id, SIMULATED_LIMITS.maxOutputTokens);
  const { input } = simulated.usage;
  const { contextLength } = SIMULATED_LIMITS;
  if (input > contextLength)
    return refusal(
      refuse("context_too_long", `The prompt is too long: ${input} tokens > ${contextLength} maximum.`),
    );
  const metadata = { publicModel: SIMULATED_MODEL, atS: Math.floor(clock.now() / 1_000) };
  // Freeform tools need no wrapping here: the simulated host reads them in every language.
  const policy = (to: AnswerWriter) =>
    new AnswerPolicy(to, request, { name: request.surface, wrapsCustomTools: false });
  if (request.stream) {
    const writer = surface.openWriter(request, metadata, FAMILY);
    const telling = simulated.writeTo(policy(writer), () => writer.ping());
    return stream(writer, telling, { tokens: simulated.usage, costUsd: 0 }, clock, paceMs);
  }
  const whole = new CollectedAnswer();
  simulated.writeTo(policy(whole)).forEach(() => {});
  return Response.json(surface.writeAnswer(whole, simulated.usage, request, metadata, FAMILY));
}

/** Nothing that it says is sealed. */
const FAMILY = SIMULATED_MODEL;

function problemOf({ model, choices }: GenerationRequest): Refusal | null {
  if (choices > 1) return refuse("invalid_request", "`n` must be 1: this host gives one answer.");
  return model === SIMULATED_MODEL
    ? null
    : refuse("unknown_model", `The model '${model}' does not exist; this host serves '${SIMULATED_MODEL}'.`);
}

/** What of it has no meaning here is no reason to refuse. */
function conversationOf({ surface, json, model, stream }: GenerationRequest): Conversation {
  const target = {
    stream,
    model,
    publicModel: model,
    quirks: {},
    maxOutputTokens: null,
    defaultMaxOutputTokens: SIMULATED_LIMITS.maxOutputTokens,
  };
  const body = new ObjectReader(json, new TranslationReport(surface, surface, target));
  return SURFACES[surface].readConversation(body, json);
}

const respond = (body: Uint8Array, status: number): Response =>
  new Response(body as Uint8Array<ArrayBuffer>, { status, headers: { "content-type": "application/json" } });

/** A word leaves with whatever stands before it; the reader's pull and the pace decide when. */
function stream(
  writer: AnswerWriter,
  telling: Generator<void>,
  bill: Billed,
  clock: Clock,
  paceMs: number,
): Response {
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (telling.next().done === true) {
        writer.finish();
        controller.enqueue(writer.last(bill));
        controller.close();
        return;
      }
      controller.enqueue(writer.take());
      if (paceMs > 0) await pause(clock, paceMs);
    },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}
